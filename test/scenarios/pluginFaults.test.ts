/** Plugins that throw, hang or are required, in each phase (docs/internals/lifecycle.md, Phases). */
import { describe, expect, it } from 'vitest';
import type { Plugin } from '../../src/index.ts';
import { type BenchOptions, bench, only, resultText } from '../support/agentBench.ts';
import { echoTool, recorder } from '../support/scenarioTools.ts';
import { call, deaf } from '../support/scriptedReplies.ts';

const args = { m: 'a' };
const never = (): Promise<never> => new Promise(() => undefined);
const anyPhase = ['runStart', 'stepStart', 'beforeInference', 'afterInference', 'afterToolExecute', 'stepEnd'] as const;
const faults = {
  throws: (): never => {
    throw new Error('broken');
  },
  hangs: never,
};
const ways = ['throws', 'hangs'] as const;

/** A request with one tool round and a plugin that fails in one phase. Another plugin records. */
async function faulty(phase: string, way: 'throws' | 'hangs', options: { required?: boolean } = {}) {
  const echo = echoTool();
  const seen = recorder();
  const plugin: Plugin = { name: 'faulty', ...options, [phase]: faults[way] };
  const setup: BenchOptions = {
    replies: [[call('c1', 'echo', args)], 'done'],
    tools: [echo.tool],
    plugins: [plugin, seen.plugin],
  };
  const on = await bench(setup);
  const run = on.conversation.send('hi');
  const tookMs = await on.clock.until(run.result, 1_000_000);
  return { ...on, result: await run.result, tookMs, echo, seen };
}

describe('a plugin that is not required', () => {
  it.each(anyPhase.flatMap((phase) => ways.map((way) => ({ phase, way }))))(
    'a plugin that $way in $phase is a diagnostic; the others are called, and the run continues',
    async ({ phase, way }) => {
      const { conversation, result, seen, clock } = await faulty(phase, way);
      expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
      expect(new Set(only(conversation.log(), 'diagnostic'))).toEqual(new Set(['diagnostic plugin_error']));
      expect(seen.phases).toHaveLength(12);
      expect(clock.waiting).toBe(0);
    },
  );

  it.each(ways)('a plugin that %s in beforeToolExecute blocks the call with plugin_error', async (way) => {
    const { conversation, result, echo, tookMs } = await faulty('beforeToolExecute', way);
    expect(result.termination).toBe('NaturalEnd');
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed plugin_error']);
    expect(resultText(conversation.log(), 'c1')).toContain('faulty');
    expect(echo.ran).toEqual([]);
    expect(tookMs).toBe(way === 'hangs' ? 30_000 : 0);
  });

  it('a long error in beforeToolExecute is cut at limits.resultBytes', async () => {
    const beforeToolExecute = (): never => {
      throw new Error('long '.repeat(1_000));
    };
    const { conversation } = await bench({
      replies: [[call('c1', 'echo', args)], 'done'],
      tools: [echoTool().tool],
      plugins: [{ name: 'faulty', beforeToolExecute }],
      policies: { limits: { resultBytes: 1_000 } },
    });
    await conversation.send('hi').result;
    const blockedText = resultText(conversation.log(), 'c1');
    expect(blockedText).toContain('The check of faulty failed');
    expect(Buffer.byteLength(blockedText ?? '')).toBeLessThan(1_200);
  });

  it.each(ways)('a plugin that %s in runEnd does not change the end', async (way) => {
    const { conversation, result, tookMs } = await faulty('runEnd', way);
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
    expect(only(conversation.log(), 'diagnostic')).toEqual(['diagnostic plugin_error']);
    expect(tookMs).toBeLessThanOrEqual(5000);
  });
});

describe('a required plugin', () => {
  it.each(anyPhase.flatMap((phase) => ways.map((way) => ({ phase, way }))))(
    'a plugin that $way in $phase ends the run with Error, and each call has its result',
    async ({ phase, way }) => {
      const { conversation, result, clock } = await faulty(phase, way, { required: true });
      expect(result).toMatchObject({ termination: 'Error', reason: 'error', error: { code: 'plugin_error' } });
      expect(result.error?.message).toContain('faulty');
      const calls = only(conversation.log(), 'agent-output');
      expect(only(conversation.log(), 'tool-result')).toHaveLength(calls.length);
      expect(only(conversation.log(), 'run-stop')).toHaveLength(1);
      expect(conversation.status).toBe('error');
      expect(clock.waiting).toBe(0);
    },
  );

  it('an error in beforeToolExecute blocks the call, and the run continues', async () => {
    const { conversation, result } = await faulty('beforeToolExecute', 'throws', { required: true });
    expect(result.termination).toBe('NaturalEnd');
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed plugin_error']);
  });

  it('an error in runEnd is a diagnostic like any other', async () => {
    const { result } = await faulty('runEnd', 'throws', { required: true });
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
  });

  it('after its failure the next message works', async () => {
    let healed = false;
    const healing: Plugin = { name: 'faulty', required: true, stepStart: () => (healed ? undefined : faults.throws()) };
    const on = await bench({ replies: ['ok'], plugins: [healing] });
    expect((await on.conversation.send('hi').result).termination).toBe('Error');
    healed = true;
    expect((await on.conversation.send('again').result).text).toBe('ok');
  });
});

describe('a phase with an invalid answer', () => {
  const spec = { name: 'echo', description: 'echoes', parameters: {} };
  it.each([
    ['beforeInference', { request: { tools: 'x' } }, 'request.tools', 'a list of', 'got string'],
    ['beforeInference', { request: { tools: [spec, { name: 'y' }] } }, 'request.tools', 'a list of', 'something else'],
    ['beforeInference', { request: { system: 7 } }, 'request.system', 'a text', 'got number'],
    ['beforeInference', { request: { temperature: Number.NaN } }, 'request.temperature', 'a number', 'got number'],
    ['beforeInference', { request: { maxOutputTokens: 0.5 } }, 'request.maxOutputTokens', 'whole number', 'got number'],
    ['beforeInference', { request: null }, 'request', 'an object', 'got null'],
    ['beforeInference', { terminate: true }, 'terminate', 'a text', 'got boolean'],
    ['runStart', { context: ['a'] }, 'context', 'a text', 'list'],
  ])(
    'it ends the run before a model is called, with an error that names plugin, phase and field: %s %j',
    async (phase, answer, ...words) => {
      const plugin = { name: 'odd', [phase]: () => answer } as Plugin;
      const { conversation, model } = await bench({ replies: ['never'], plugins: [plugin] });
      const { termination, cause, error } = await conversation.send('hi').result;
      expect({ termination, cause, code: error?.code }).toEqual({
        termination: 'Error',
        cause: 'executor',
        code: 'plugin_error',
      });
      for (const word of ['"odd"', phase, ...words]) expect(error?.message).toContain(word);
      expect(model.calls).toHaveLength(0);
      expect(only(conversation.log(), 'run-stop')).toEqual(['run-stop error executor']);
    },
  );

  it('it changes nothing in a run that has ended', async () => {
    const plugin = { name: 'odd', runEnd: () => ({ request: 7 }) } as unknown as Plugin;
    const { conversation } = await bench({ replies: ['done'], plugins: [plugin] });
    expect((await conversation.send('hi').result).termination).toBe('NaturalEnd');
  });
});

describe('a late answer of a phase', () => {
  it('a patch and a context of a cancelled run are ignored in the next request', async () => {
    let first = true;
    const plugins: Plugin[] = [
      { name: 'patches', beforeInference: () => (first ? { request: { system: 'patched' } } : undefined) },
      { name: 'hangs', beforeInference: () => (first ? never() : undefined) },
    ];
    const on = await bench({ replies: ['ok'], instructions: 'own', plugins });
    on.conversation.send('hi');
    await on.clock.advance(0);
    await on.conversation.cancel();
    first = false;
    await on.conversation.send('again').result;
    expect(on.model.calls.map(({ system }) => system)).toEqual(['own']);
  });

  it('the answer of a phase after its time limit is ignored', async () => {
    let answer = (_: { terminate: string }): void => {};
    const plugin: Plugin = {
      name: 'late',
      beforeInference: () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    };
    const on = await bench({ replies: [deaf(), 'never'], plugins: [plugin] });
    const run = on.conversation.send('hi');
    await on.clock.advance(30_000);
    expect(on.model.calls).toHaveLength(1);
    answer({ terminate: 'now' });
    await on.clock.advance(0);
    expect(on.conversation.status).toBe('active');
    await on.clock.until(run.cancel());
    expect((await run.result).termination).toBe('Cancelled');
  });
});
