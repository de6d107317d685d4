/** Answers of plugins that are half right: what they say counts, or they are told, and it is bounded like a tool's. */
import { describe, expect, it } from 'vitest';
import type { Plugin } from '../../src/index.ts';
import { type BenchOptions, bench, entry, only, resultText } from '../support/agent.ts';
import { call } from '../support/model.ts';
import { echoTool } from '../support/tools.ts';

const plugged = (name: string, answer: unknown): Plugin => ({ name: 'odd', [name]: () => answer }) as Plugin;

/** A request with one tool round, with a plugin that says this in one phase. */
async function answering(phase: string, answer: unknown, options: BenchOptions = {}) {
  const echo = echoTool();
  const replies = [[call('c1', 'echo', { m: 'a' })], 'done'];
  const on = await bench({ ...options, replies, tools: [echo.tool], plugins: [plugged(phase, answer)] });
  const result = await on.conversation.send('hi').result;
  return { ...on, result, echo, log: on.conversation.log() };
}

describe('state that a plugin writes at the start of a run', () => {
  it.each([
    ['a text', 'abc'],
    ['a list', [1, 2]],
    ['a number', 5],
    ['null', null],
    ['a Map', new Map([['k', 1]])],
    ['what is no JSON', { k: 1n }],
  ])('that is %s ends the run and changes nothing, naming plugin, phase and field', async (_, state) => {
    const { result, conversation, model } = await answering('runStart', { state });
    expect(result).toMatchObject({ termination: 'Error', cause: 'executor', error: { code: 'plugin_error' } });
    for (const word of ['"odd"', 'runStart', 'state']) expect(result.error?.message).toContain(word);
    expect([conversation.state, model.calls]).toEqual([{}, []]);
  });

  it('is kept where it is an object of JSON', async () => {
    const { conversation } = await answering('runStart', { state: { k: [1, null] } });
    expect(conversation.state).toEqual({ k: [1, null] });
  });
});

it.each([
  ['runStart', { terminate: 'enough' }, 'terminate'],
  ['stepStart', { state: { k: 1 } }, 'state'],
  ['beforeInference', { state: { k: 1 } }, 'state'],
  ['beforeInference', { result: 'x' }, 'result'],
])('an answer of %s that would change nothing there ends the run: %j', async (phase, answer, field) => {
  const { result } = await answering(phase, answer);
  expect(result).toMatchObject({ termination: 'Error', error: { code: 'plugin_error' } });
  for (const word of ['"odd"', phase, field, 'only']) expect(result.error?.message).toContain(word);
});

describe('TOOL-4: what a plugin makes of a result', () => {
  it.each([
    ['an empty text', '', [{ type: 'text', text: '' }]],
    ['an empty list', [], []],
  ])('may be nothing: %s', async (_, result, content) => {
    const { conversation } = await answering('afterToolExecute', { result });
    expect((await entry(conversation, 'tool-result')).content).toEqual(content);
  });

  it('is cut where a result of a tool would be, as text and as parts', async () => {
    const long = 'y'.repeat(5000);
    const policies = { limits: { resultBytes: 100 } };
    for (const result of [long, [{ type: 'text', text: long }]]) {
      const { log } = await answering('afterToolExecute', { result }, { policies });
      expect(resultText(log, 'c1').length).toBeLessThanOrEqual(100);
      expect(resultText(log, 'c1')).toContain('characters left out');
    }
  });

  it('loses its secrets before it is cut, so that no half of one is left', async () => {
    const secret = 'hunter2-hunter2';
    const result = `${'y'.repeat(20)}${secret}${'z'.repeat(5000)}`;
    const options = { secrets: [secret], policies: { limits: { resultBytes: 100 } } };
    expect(resultText((await answering('afterToolExecute', { result }, options)).log, 'c1')).not.toContain('hunter');
  });

  it.each([
    [{ context: { a: 1 } }, 'context'],
    [{ context: ['a'] }, 'context'],
    [{ result: 5 }, 'result'],
    [{ result: null }, 'result'],
    [{ result: new Array(2) }, 'content part'],
    [{ terminate: 'now' }, 'terminate'],
    [{ request: { system: 'x' } }, 'request'],
  ])('that cannot be used is a diagnostic, and the result stays: %j', async (answer, word) => {
    const { result, conversation, log, model } = await answering('afterToolExecute', answer);
    expect([result.termination, resultText(log, 'c1')]).toEqual(['NaturalEnd', '{"m":"a"}']);
    const { detail } = await entry(conversation, 'diagnostic');
    expect(detail).toMatchObject({ plugin: 'odd', phase: 'afterToolExecute' });
    expect(JSON.stringify(detail)).toContain(word);
    expect(model.calls[1]?.system).toBe('');
  });

  it('that cannot be used ends the run where the plugin is required', async () => {
    const plugin = { ...plugged('afterToolExecute', { context: 7 }), required: true };
    const replies = [[call('c1', 'echo', { m: 'a' })], 'never'];
    const on = await bench({ replies, tools: [echoTool().tool], plugins: [plugin] });
    const { termination, error } = await on.conversation.send('hi').result;
    expect([termination, error?.code]).toEqual(['Error', 'plugin_error']);
    expect(error?.message).toContain('context');
  });
});

describe('a call that a plugin suspends or blocks', () => {
  const policies = { limits: { resultBytes: 1000 } };

  it('has a reason that is cut like the one of a tool', async () => {
    const suspend = { reason: 'y'.repeat(1_000_000) };
    const { conversation } = await answering('beforeToolExecute', { suspend });
    expect(conversation.pending[0]?.reason.length).toBeLessThanOrEqual(4096);
  });

  it('is not run where the payload is longer than a result may be', async () => {
    const suspend = { reason: 'r', payload: 'x'.repeat(1001) };
    const { log, echo } = await answering('beforeToolExecute', { suspend }, { policies });
    expect(only(log, 'tool-result', 'tool-suspended')).toEqual(['tool-result c1 failed plugin_error']);
    expect([resultText(log, 'c1'), echo.ran]).toEqual([expect.stringContaining('1000 bytes'), []]);
  });

  it('is blocked with a text no longer than a result', async () => {
    const { log } = await answering('beforeToolExecute', { block: 'y'.repeat(5000) }, { policies });
    expect(resultText(log, 'c1').length).toBeLessThanOrEqual(1000);
  });
});
