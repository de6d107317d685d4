/**
 * A cancel makes the conversation idle within 100 ms, whatever the run does, and nothing remains running
 * (docs/internals/lifecycle.md, Cancellation).
 */
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { Plugin } from '../../src/index.ts';
import { type Bench, type BenchOptions, bench, entry, only, resultText, story } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, lines, t } from '../support/scriptedReplies.ts';

const args = { m: 'a' };
const never = (): Promise<never> => new Promise(() => undefined);

/**
 * Cancels, and checks the rules of every cancel: fast, idle, no timers or actors remain, and the next message works.
 */
async function cancelled(on: Bench): Promise<void> {
  const { conversation, clock, alive } = on;
  expect(await clock.until(conversation.cancel())).toBeLessThanOrEqual(100);
  expect(conversation.status).toBe('idle');
  expect(alive()).toEqual([]);
  expect(clock.waiting).toBe(0);
  expect(only(conversation.log(), 'run-stop').at(-1)).toBe('run-stop interrupted cancelled');
  const open = conversation.view().cycles.filter(({ stop }) => stop === null);
  expect(open).toEqual([]);
}

async function hung(options: BenchOptions): Promise<Bench> {
  return bench({ ...options, replies: [...(options.replies ?? []), 'next'] });
}

describe('INV-6: a cancel ends within 100 ms, nothing remains running, and the next message works', () => {
  it('S003-19, B03: with a tool that ignores its signal; its late result is one diagnostic', async () => {
    const gate = gateTool();
    const on = await hung({ replies: [[call('c1', 'gate')]], tools: [gate.tool] });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    await cancelled(on);
    expect(gate.context('c1').signal.aborted).toBe(true);
    const result = await run.result;
    expect(result).toMatchObject({ termination: 'Cancelled', cause: 'cancelled', reason: 'interrupted' });
    expect(result.calls).toEqual([{ callId: 'c1', name: 'gate', outcome: 'cancelled', code: 'cancelled' }]);
    const late = entry(on.conversation, 'diagnostic');
    gate.release('c1');
    expect(await late).toMatchObject({ code: 'late_result', detail: { callId: 'c1' } });
    expect((await on.conversation.send('again').result).text).toBe('next');
    expect(only(on.conversation.log(), 'tool-result', 'diagnostic')).toEqual([
      'tool-result c1 cancelled cancelled',
      'diagnostic late_result',
    ]);
    expect(lines(on.model.calls[1]?.messages ?? [])).toEqual([
      'user hi',
      'assistant +c1',
      expect.stringMatching(/^c1! .*cancelled/),
      'user again',
    ]);
  });

  it('S003-19: with a tool that obeys its signal; its rejection is not reported', async () => {
    const gate = gateTool('gate', { hearsAbort: true });
    const on = await hung({ replies: [[call('c1', 'gate')]], tools: [gate.tool] });
    on.conversation.send('hi');
    await gate.begun('c1');
    await cancelled(on);
    expect((await on.conversation.send('again').result).text).toBe('next');
    expect(only(on.conversation.log(), 'tool-result', 'diagnostic')).toEqual(['tool-result c1 cancelled cancelled']);
  });

  it('S002-19: with a model stream that ignores its signal', async () => {
    const on = await hung({ replies: [deaf(t('par'))] });
    const run = on.conversation.send('hi');
    await on.clock.advance(0);
    await cancelled(on);
    expect(on.model.signals[0]?.aborted).toBe(true);
    expect((await run.result).text).toBe('');
    expect(story(on.conversation.log())).not.toContain('agent-output par');
    expect((await on.conversation.send('again').result).text).toBe('next');
    expect(lines(on.model.calls[1]?.messages ?? [])).toEqual(['user hi', 'user again']);
  });

  const phases = [
    'runStart',
    'stepStart',
    'beforeInference',
    'afterInference',
    'stepEnd',
    'beforeToolExecute',
    'afterToolExecute',
  ] as const;
  it.each(phases)('B03: with a hook that hangs in %s', async (phase) => {
    const hang = { yes: true };
    let reached = (): void => {};
    const there = new Promise<void>((resolve) => {
      reached = resolve;
    });
    const plugin: Plugin = {
      name: 'hangs',
      [phase]: () => {
        if (!hang.yes) return undefined;
        reached();
        return never();
      },
    };
    const echo = echoTool();
    const on = await hung({ replies: [[call('c1', 'echo', args)]], tools: [echo.tool], plugins: [plugin] });
    on.conversation.send('hi');
    await there;
    await cancelled(on);
    hang.yes = false;
    if (phase === 'runStart' || phase === 'stepStart' || phase === 'beforeInference') return;
    expect((await on.conversation.send('again').result).text).toBe('next');
  });

  it('B03: with a hook that hangs in runEnd after a natural end; the run keeps its end', async () => {
    const plugin: Plugin = { name: 'hangs', runEnd: never };
    const on = await bench({ replies: ['done'], plugins: [plugin] });
    const run = on.conversation.send('hi');
    await entry(on.conversation, 'checkpoint', ({ boundary }) => boundary === 'AssistantTurnCommitted');
    expect(await on.clock.until(on.conversation.cancel())).toBeLessThanOrEqual(100);
    expect(await run.result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
    expect(on.conversation.status).toBe('idle');
    expect(on.clock.waiting).toBe(0);
    expect(on.alive()).toEqual([]);
  });

  it('with a hook that hangs in runEnd of the cancelled run itself', async () => {
    const gate = gateTool();
    const plugin: Plugin = { name: 'hangs', runEnd: never };
    const on = await hung({ replies: [[call('c1', 'gate')]], tools: [gate.tool], plugins: [plugin] });
    on.conversation.send('hi');
    await gate.begun('c1');
    await cancelled(on);
    expect(only(on.conversation.log(), 'diagnostic')).toEqual(['diagnostic plugin_error']);
  });

  it('with hooks that hang while a failed run ends; it ends as failed, at once', async () => {
    const plugin: Plugin = { name: 'hangs', stepEnd: never, runEnd: never };
    const policies = { modelRetry: { attempts: 1 } };
    const on = await bench({ replies: [new Error('connection lost')], plugins: [plugin], policies });
    const run = on.conversation.send('hi');
    while (on.model.calls.length === 0) await on.clock.advance(1);
    await on.clock.advance(1);
    expect(await on.clock.until(on.conversation.cancel())).toBeLessThanOrEqual(100);
    expect(await run.result).toMatchObject({ termination: 'Error', cause: 'model' });
    expect(on.conversation.status).toBe('error');
    expect(on.clock.waiting).toBe(0);
    expect(on.alive()).toEqual([]);
  });

  it('with an approval predicate that hangs', async () => {
    const gate = echoTool('ask', { needsApproval: never });
    const on = await hung({ replies: [[call('c1', 'ask', args)]], tools: [gate.tool] });
    on.conversation.send('hi');
    await entry(on.conversation, 'checkpoint', ({ boundary }) => boundary === 'AssistantTurnCommitted');
    await on.clock.advance(1);
    await cancelled(on);
  });

  it('S003-16: during a retry delay', async () => {
    const on = await hung({ replies: [new Error('connection lost')] });
    const run = on.conversation.send('hi');
    await entry(on.conversation, 'model-retry');
    await on.clock.advance(500);
    expect(on.clock.waiting).toBe(1);
    await cancelled(on);
    expect((await run.result).termination).toBe('Cancelled');
    await on.clock.advance(100_000);
    expect(on.model.calls).toHaveLength(1);
  });

  it('during a replay; the replayed call is cancelled and never run again', async () => {
    const gate = gateTool();
    const on = await hung({ replies: [[call('c1', 'gate')]], tools: [gate.tool], plugins: [asks('gate').plugin] });
    await on.conversation.send('hi').result;
    await on.conversation.decide({ callId: 'c1', action: 'approve' });
    const run = on.conversation.resume();
    await gate.begun('c1');
    await cancelled(on);
    expect(await run.result).toMatchObject({ termination: 'Cancelled', pending: [] });
    expect(only(on.conversation.log(), 'tool-result')).toEqual(['tool-result c1 cancelled cancelled']);
    expect(await on.conversation.decide({ callId: 'c1', action: 'approve' })).toBe('duplicate');
    expect((await on.conversation.send('again').result).text).toBe('next');
    expect(gate.started).toEqual(['c1']);
  });

  it('while it waits for a person; the call is cancelled, and a later decision is stale', async () => {
    const ask = echoTool('ask');
    const on = await hung({ replies: [[call('c1', 'ask', args)]], tools: [ask.tool], plugins: [asks().plugin] });
    await on.conversation.send('hi').result;
    await cancelled(on);
    expect(await on.conversation.decide({ callId: 'c1', action: 'approve' })).toBe('stale');
    expect(only(on.conversation.log(), 'tool-result')).toEqual(['tool-result c1 cancelled cancelled']);
    expect((await on.conversation.send('again').result).text).toBe('next');
    expect(ask.ran).toEqual([]);
  });

  it('while a call of the round waits for a person and its sibling runs', async () => {
    const [ask, gate] = [echoTool('ask'), gateTool()];
    const on = await hung({
      replies: [[call('c1', 'ask', args), call('c2', 'gate')]],
      tools: [ask.tool, gate.tool],
      plugins: [asks().plugin],
    });
    const run = on.conversation.send('hi');
    await gate.begun('c2');
    await entry(on.conversation, 'tool-suspended');
    await cancelled(on);
    expect((await run.result).pending).toEqual([]);
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result c1 cancelled cancelled',
      'tool-result c2 cancelled cancelled',
    ]);
    expect((await on.conversation.send('again').result).text).toBe('next');
  });
});

describe('the log after a cancelled round', () => {
  it('S003-17: finished, running and queued calls each have exactly one result, in call order', async () => {
    const [echo, gate] = [echoTool(), gateTool()];
    const on = await hung({
      replies: [[call('t1', 'echo', args), call('t2', 'gate'), call('t3', 'echo', args), call('t4', 'echo', args)]],
      tools: [echo.tool, gate.tool],
      policies: { toolExecution: 'sequential' },
    });
    const run = on.conversation.send('hi');
    await gate.begun('t2');
    await cancelled(on);
    expect(only(on.conversation.log(), 'tool-result')).toEqual([
      'tool-result t1 succeeded',
      'tool-result t2 cancelled cancelled',
      'tool-result t3 cancelled skipped',
      'tool-result t4 cancelled skipped',
    ]);
    expect((await run.result).calls.map(({ code }) => code)).toEqual([undefined, 'cancelled', 'skipped', 'skipped']);
    expect((await on.conversation.send('again').result).text).toBe('next');
    expect(echo.ran).toEqual(['t1']);
  });

  it('S001-33: two parallel calls are cancelled, not failed, and no after-hook receives them', async () => {
    const gate = gateTool();
    const after: string[] = [];
    const on = await hung({
      replies: [[call('c1', 'gate'), call('c2', 'gate')]],
      tools: [gate.tool],
      plugins: [{ name: 'after', afterToolExecute: ({ call: { callId } }) => void after.push(callId) }],
    });
    const run = on.conversation.send('hi');
    await Promise.all([gate.begun('c1'), gate.begun('c2')]);
    await cancelled(on);
    expect((await run.result).calls.map(({ outcome }) => outcome)).toEqual(['cancelled', 'cancelled']);
    expect(after).toEqual([]);
  });

  it('INV-1: a late failure of a cancelled call adds nothing to the log', async () => {
    const gate = gateTool();
    const on = await hung({ replies: [[call('c1', 'gate')]], tools: [gate.tool] });
    on.conversation.send('hi');
    await gate.begun('c1');
    await cancelled(on);
    const before = on.conversation.log().length;
    gate.fail('c1', new Error('too late'));
    await on.clock.advance(0);
    expect(story(on.conversation.log(before))).toEqual([]);
    expect(resultText(on.conversation.log(), 'c1')).toContain('cancelled');
  });
});

describe('the caller’s AbortSignal', () => {
  it('TRC-5 S002-19: a signal aborted before the start gives a Cancelled run without a model call', async () => {
    const on = await bench({ replies: ['never'] });
    const result = await on.conversation.send('hi', { signal: AbortSignal.abort() }).result;
    expect(result).toMatchObject({ termination: 'Cancelled', cause: 'cancelled', turns: 0 });
    expect(on.model.calls).toHaveLength(0);
    expect(only(on.conversation.log(), 'user-message', 'run-stop')).toEqual([
      'user-message direct hi',
      'run-stop interrupted cancelled',
    ]);
  });

  it('S002-19: a signal that fires while the model hangs gives Cancelled after one model call, and its listener is removed', async () => {
    const caller = new AbortController();
    const on = await bench({ replies: [deaf()] });
    const run = on.conversation.send('hi', { signal: caller.signal });
    await on.clock.advance(0);
    expect(getEventListeners(caller.signal, 'abort')).toHaveLength(1);
    caller.abort();
    expect(await on.clock.until(run.result)).toBeLessThanOrEqual(100);
    expect((await run.result).termination).toBe('Cancelled');
    expect(on.model.calls).toHaveLength(1);
    expect(getEventListeners(caller.signal, 'abort')).toHaveLength(0);
  });

  it('H-337, B17: many runs on one signal leave no listener', async () => {
    const caller = new AbortController();
    const on = await bench({ replies: Array.from({ length: 50 }, () => 'ok') });
    for (let run = 0; run < 50; run++) await on.conversation.send('hi', { signal: caller.signal }).result;
    expect(getEventListeners(caller.signal, 'abort')).toHaveLength(0);
  });
});

it('a cancel aborts tools in reverse order of their start', async () => {
  const gate = gateTool();
  const on = await bench({ replies: [['c1', 'c2', 'c3'].map((id) => call(id, 'gate'))], tools: [gate.tool] });
  on.conversation.send('hi');
  const aborted: string[] = [];
  for (const id of ['c1', 'c2', 'c3']) {
    await gate.begun(id);
    gate.context(id).signal.addEventListener('abort', () => aborted.push(id));
  }
  await on.conversation.cancel();
  expect(aborted).toEqual(['c3', 'c2', 'c1']);
});
