/** Partly valid answers of plugins: an answer is used or reported, and has the same size limit as a tool's. */
import { describe, expect, it } from 'vitest';
import type { Plugin } from '../../src/index.ts';
import { type BenchOptions, bench, entry, only, resultText } from '../support/agentBench.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call } from '../support/scriptedReplies.ts';

const plugged = (name: string, answer: unknown): Plugin => ({ name: 'odd', [name]: () => answer }) as Plugin;

/** A request with one tool round, and a plugin with this answer in one phase. */
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
    ['not JSON', { k: 1n }],
  ])(
    'state that is %s ends the run and changes nothing, with an error that names plugin, phase and field',
    async (_, state) => {
      const { result, conversation, model } = await answering('runStart', { state });
      expect(result).toMatchObject({ termination: 'Error', cause: 'executor', error: { code: 'plugin_error' } });
      for (const word of ['"odd"', 'runStart', 'state']) expect(result.error?.message).toContain(word);
      expect([conversation.state, model.calls]).toEqual([{}, []]);
    },
  );

  it('a JSON object is kept', async () => {
    const { conversation } = await answering('runStart', { state: { k: [1, null] } });
    expect(conversation.state).toEqual({ k: [1, null] });
  });
});

it.each([
  ['runStart', { terminate: 'enough' }, 'terminate'],
  ['stepStart', { state: { k: 1 } }, 'state'],
  ['beforeInference', { state: { k: 1 } }, 'state'],
  ['beforeInference', { result: 'x' }, 'result'],
])('an answer of %s that has no effect in this phase ends the run: %j', async (phase, answer, field) => {
  const { result } = await answering(phase, answer);
  expect(result).toMatchObject({ termination: 'Error', error: { code: 'plugin_error' } });
  for (const word of ['"odd"', phase, field, 'only']) expect(result.error?.message).toContain(word);
});

describe("TOOL-4: a plugin's change of a result", () => {
  it.each([
    ['an empty text', '', [{ type: 'text', text: '' }]],
    ['an empty list', [], []],
  ])('it may be empty: %s', async (_, result, content) => {
    const { conversation } = await answering('afterToolExecute', { result });
    expect((await entry(conversation, 'tool-result')).content).toEqual(content);
  });

  it("text and parts are cut at the same length as a tool's result", async () => {
    const long = 'y'.repeat(5000);
    const policies = { limits: { resultBytes: 100 } };
    for (const result of [long, [{ type: 'text', text: long }]]) {
      const { log } = await answering('afterToolExecute', { result }, { policies });
      expect(resultText(log, 'c1').length).toBeLessThanOrEqual(100);
      expect(resultText(log, 'c1')).toContain('characters left out');
    }
  });

  it('secrets are redacted before the cut, so that no half of one remains', async () => {
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
  ])('an invalid change is a diagnostic, and the result stays: %j', async (answer, word) => {
    const { result, conversation, log, model } = await answering('afterToolExecute', answer);
    expect([result.termination, resultText(log, 'c1')]).toEqual(['NaturalEnd', '{"m":"a"}']);
    const { detail } = await entry(conversation, 'diagnostic');
    expect(detail).toMatchObject({ plugin: 'odd', phase: 'afterToolExecute' });
    expect(JSON.stringify(detail)).toContain(word);
    expect(model.calls[1]?.system).toBe('');
  });

  it('an invalid change ends the run if the plugin is required', async () => {
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

  it('its reason is cut like that of a tool', async () => {
    const suspend = { reason: 'y'.repeat(1_000_000) };
    const { conversation } = await answering('beforeToolExecute', { suspend });
    expect(conversation.pending[0]?.reason.length).toBeLessThanOrEqual(4096);
  });

  it('it is not run if the payload is longer than a result may be', async () => {
    const suspend = { reason: 'r', payload: 'x'.repeat(1001) };
    const { log, echo } = await answering('beforeToolExecute', { suspend }, { policies });
    expect(only(log, 'tool-result', 'tool-suspended')).toEqual(['tool-result c1 failed plugin_error']);
    expect([resultText(log, 'c1'), echo.ran]).toEqual([expect.stringContaining('1000 bytes'), []]);
  });

  it('its text is cut at the length of a result', async () => {
    const { log } = await answering('beforeToolExecute', { block: 'y'.repeat(5000) }, { policies });
    expect(resultText(log, 'c1').length).toBeLessThanOrEqual(1000);
  });
});
