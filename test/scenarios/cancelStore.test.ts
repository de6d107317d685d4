/** A cancel while the store is slow or never answers (docs/internals/lifecycle.md, Cancellation). */
import { describe, expect, it } from 'vitest';
import type { Boundary, LogEntry } from '../../src/index.ts';
import { type Bench, bench, only, story } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, finish, lines, t } from '../support/scriptedReplies.ts';
import { commits, type Fate, troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const args = { m: 'a' };

/** A conversation on the store under test; the run reaches each of the four checkpoints. */
async function onStore() {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const replies = [[call('c1', 'echo', args)], 'done', 'next'];
  const echo = echoTool();
  return { ...(await bench({ clock, store, replies, tools: [echo.tool] })), store, echo };
}

/** Moves time until the append of the checkpoint `boundary` was attempted. */
async function reaches(on: Bench & { store: ReturnType<typeof troubledStore> }, boundary: Boundary): Promise<void> {
  for (let waited = 0; waited < 500; waited++) {
    if (on.store.tried.some((entries) => commits(entries, boundary))) return;
    await on.clock.advance(1);
  }
  throw new Error(`${boundary} was never tried`);
}

const boundaries = ['UserMessage', 'AssistantTurnCommitted', 'ToolResultsCommitted', 'RunFinished'] as const;

describe.each(boundaries)('a cancel during the commit of %s', (boundary) => {
  it('INV-6: a store that takes 30 ms is awaited: the stop is durable, the history is complete, the next message works', async () => {
    const on = await onStore();
    on.store.trouble(() => ({ afterMs: 30 }));
    const run = on.conversation.send('hi');
    await reaches(on, boundary);
    await on.clock.advance(10);
    expect(await on.clock.until(on.conversation.cancel())).toBeLessThanOrEqual(100);
    const result = await run.result;
    expect(result.termination).toBe(boundary === 'RunFinished' ? 'NaturalEnd' : 'Cancelled');
    expect(on.conversation.status).toBe('idle');
    expect(on.clock.waiting).toBe(0);
    expect(on.alive()).toEqual([]);
    expect(only(on.conversation.log(), 'run-stop')).toHaveLength(1);
    on.store.trouble(() => 'stored');
    const again = on.conversation.send('again');
    expect((await again.result).termination).toBe('NaturalEnd');
    const pairs = on.conversation.messages();
    expect(new Set(lines(pairs)).size).toBe(pairs.length);
  });

  it('INV-6: a store that never answers delays the run by 100 ms at most, and the result reports it', async () => {
    const on = await onStore();
    on.store.trouble((entries) => (commits(entries, boundary) ? 'stuck' : 'stored'));
    const run = on.conversation.send('hi');
    await reaches(on, boundary);
    const before = on.conversation.log().length;
    expect(await on.clock.until(on.conversation.cancel())).toBeLessThanOrEqual(100);
    const result = await run.result;
    expect(result).toMatchObject({ termination: 'Error', cause: 'store' });
    expect(on.conversation.status).toBe('error');
    expect(on.clock.waiting).toBe(0);
    expect(on.alive()).toEqual([]);
    expect(on.conversation.log().length).toBe(before);
    expect(on.conversation.view().cycles.filter(({ stop }) => stop !== null)).toEqual([]);
  });
});

describe('a cancel on a store that answers late', () => {
  it('B03: the entries of the cancel itself may take up to 100 ms', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const gate = gateTool();
    const on = await bench({ clock, store, replies: [[call('c1', 'gate')]], tools: [gate.tool] });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    store.trouble(() => ({ afterMs: 60 }));
    expect(await clock.until(on.conversation.cancel())).toBeLessThanOrEqual(100);
    expect((await run.result).termination).toBe('Cancelled');
    expect(clock.waiting).toBe(0);
  });

  it.each([
    ['the end', 'RunFinished'],
    ['anything', ''],
  ])(
    'INV-6: a store that never answers %s and a hook that hangs in runEnd delay it by 100 ms at most',
    async (_, what) => {
      const clock = new VirtualClock();
      const store = troubledStore({ clock });
      const gate = gateTool();
      const plugins = [{ name: 'hangs', runEnd: () => new Promise<never>(() => undefined) }];
      const on = await bench({ clock, store, replies: [[call('c1', 'gate')]], tools: [gate.tool], plugins });
      const run = on.conversation.send('hi');
      await gate.begun('c1');
      store.trouble((entries) => (what === '' || commits(entries, what) ? 'stuck' : 'stored'));
      expect(await clock.until(on.conversation.cancel())).toBeLessThanOrEqual(100);
      expect(await run.result).toMatchObject({ termination: 'Error', cause: 'store' });
      expect(clock.waiting).toBe(0);
      expect(on.alive()).toEqual([]);
    },
  );

  it('no request that waits for a late append starts after the cancel', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const echo = echoTool();
    const on = await bench({ clock, store, replies: [[call('c1', 'echo', args)]], tools: [echo.tool] });
    store.trouble((entries) => (entries.some(({ type }) => type === 'tool-started') ? { afterMs: 70 } : 'stored'));
    const run = on.conversation.send('hi');
    while (!store.tried.some((entries) => entries.some(({ type }) => type === 'tool-started'))) await clock.advance(1);
    expect(await clock.until(on.conversation.cancel())).toBeLessThanOrEqual(100);
    expect((await run.result).termination).toBe('Cancelled');
    await clock.advance(1000);
    expect(echo.ran).toEqual([]);
    expect(only(on.conversation.log(), 'tool-started', 'tool-result', 'run-stop')).toEqual([
      'tool-started c1',
      'tool-result c1 cancelled cancelled',
      'run-stop interrupted cancelled',
    ]);
  });

  it('the tokens of a reply whose append was abandoned count in the next run', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const reply = [t('a'), finish('stop', 60)];
    const options = { clock, store, policies: { limits: { tokens: 100 } } };
    const { conversation, model } = await bench({ ...options, replies: [reply, 'next'] });
    const isReply = (entries: readonly LogEntry[]) => entries.some(({ type }) => type === 'model-reply');
    store.trouble((entries) => (isReply(entries) ? { afterMs: 400 } : 'stored'));
    const run = conversation.send('hi');
    while (!store.tried.some(isReply)) await clock.advance(1);
    await clock.until(Promise.all([conversation.cancel(), run.result]));
    const next = conversation.send('on');
    await clock.advance(1000);
    expect(await next.result).toMatchObject({ termination: 'Stopped', cause: 'max_total_tokens', turns: 0 });
    expect(model.calls).toHaveLength(1);
  });

  it('in waiting, the suspended call and the stop are durable when cancel() resolves, and a second cancel is a no-op', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const ask = echoTool('ask');
    const options = { clock, store, tools: [ask.tool], plugins: [asks().plugin] };
    const on = await bench({ ...options, replies: [[call('c1', 'ask', args)], 'next'] });
    await on.conversation.send('hi').result;
    store.trouble(() => ({ afterMs: 30 }));
    const both = Promise.all([on.conversation.cancel(), on.conversation.cancel()]);
    expect(await clock.until(both)).toBeLessThanOrEqual(100);
    expect(only(on.conversation.log(), 'tool-result', 'run-stop')).toEqual([
      'tool-result c1 cancelled cancelled',
      'run-stop interrupted cancelled',
    ]);
    expect(on.conversation.status).toBe('idle');
    expect(clock.waiting).toBe(0);
  });
});

describe('a cancel of a run whose suspension is being stored', () => {
  /** The conversation, and the duration of the cancel. */
  async function cancelled(fate: Fate, callIds = ['c1']) {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const options = { clock, store, tools: [echoTool('ask').tool], plugins: [asks().plugin] };
    const calls = callIds.map((callId) => call(callId, 'ask', args));
    const policies = { toolExecution: 'sequential' as const };
    const on = await bench({ ...options, policies, replies: [calls, 'next'] });
    const suspends = (entries: readonly LogEntry[]) => entries.some(({ type }) => type === 'run-suspended');
    store.trouble((entries) => (suspends(entries) ? fate : 'stored'));
    const run = on.conversation.send('hi');
    while (!store.tried.some(suspends)) await clock.advance(1);
    const took = await clock.until(Promise.all([on.conversation.cancel(), run.result]));
    return { ...on, took, result: await run.result };
  }

  it.each([20, 60, 85, 95, 2000])('after %i ms no call waits, however long the store takes', async (afterMs) => {
    const { conversation, clock, took, result } = await cancelled({ afterMs });
    expect(took).toBeLessThanOrEqual(100);
    // Nothing that the store has not answered by then is reported as done.
    expect(result.termination).toBe(afterMs < 90 ? 'Suspended' : 'Error');
    expect([result.cause, result.error?.code]).toEqual(afterMs < 90 ? [undefined, undefined] : ['store', 'store']);
    expect(['idle', 'error']).toContain(conversation.status);
    await clock.advance(afterMs);
    expect(only(conversation.log(), 'run-suspended', 'tool-result', 'run-stop')).toEqual([
      'run-suspended c1',
      'tool-result c1 cancelled cancelled',
      'run-stop interrupted cancelled',
    ]);
    expect([conversation.status, conversation.pending]).toEqual(['idle', []]);
    expect(await conversation.decide({ callId: 'c1', action: 'approve' })).toBe('stale');
    expect((await conversation.send('on').result).text).toBe('next');
    expect(clock.waiting).toBe(0);
  });

  it('no call remains open that kept its turn after the waiting one', async () => {
    const { conversation, clock } = await cancelled({ afterMs: 2000 }, ['c1', 'c2']);
    await clock.advance(2000);
    expect(only(conversation.log(), 'run-suspended', 'tool-result', 'run-stop')).toEqual([
      'run-suspended c1',
      'tool-result c1 cancelled cancelled',
      'tool-result c2 cancelled skipped',
      'run-stop interrupted cancelled',
    ]);
    expect((await conversation.send('on').result).text).toBe('next');
  });

  it('if the store finally rejects the suspension and the stop, the cancel has failed, and the call can be decided', async () => {
    const { conversation, clock } = await cancelled({ afterMs: 200, fails: true });
    await clock.advance(400);
    // The log contains no waiting cycle.
    expect(only(conversation.log(), 'run-suspended', 'run-stop')).toEqual([]);
    expect([conversation.status, conversation.pending.length]).toEqual(['error', 1]);
    expect(await conversation.decide({ callId: 'c1', action: 'approve' })).toBe('applied');
    expect((await conversation.resume().result).text).toBe('next');
    expect(only(conversation.log(), 'tool-result', 'run-stop')).toEqual([
      'run-stop error store',
      'tool-result c1 succeeded',
      'run-stop completed end_turn',
    ]);
    expect([conversation.status, conversation.pending]).toEqual(['idle', []]);
  });
});

describe('a cancel before the first answer of the store', () => {
  const slow = async (reply = deaf()) => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const on = await bench({ clock, store, replies: [reply, 'next'] });
    store.trouble(() => ({ afterMs: 10 }));
    return { ...on, store };
  };

  it('conversation.cancel() directly after send() ends that run', async () => {
    const on = await slow();
    const run = on.conversation.send('hi');
    expect(on.conversation.status).toBe('active');
    expect(await on.clock.until(on.conversation.cancel())).toBeLessThanOrEqual(100);
    expect((await run.result).termination).toBe('Cancelled');
    expect(on.model.calls).toHaveLength(0);
    expect(on.conversation.status).toBe('idle');
    expect(on.clock.waiting).toBe(0);
  });

  it('run.cancel() directly after send() ends that run', async () => {
    const on = await slow();
    const run = on.conversation.send('hi');
    expect(await on.clock.until(run.cancel())).toBeLessThanOrEqual(100);
    expect((await run.result).termination).toBe('Cancelled');
    expect(on.model.calls).toHaveLength(0);
  });

  it('the caller’s signal directly after send() ends that run', async () => {
    const on = await slow();
    const caller = new AbortController();
    const run = on.conversation.send('hi', { signal: caller.signal });
    caller.abort();
    expect(await on.clock.until(run.result)).toBeLessThanOrEqual(100);
    expect((await run.result).termination).toBe('Cancelled');
  });

  it('run.cancel() of a newly accepted followUp returns the message, and the active run continues', async () => {
    const on = await slow();
    const first = on.conversation.send('hi');
    await on.clock.advance(50);
    const second = on.conversation.send('later', { kind: 'followUp' });
    await on.clock.until(second.cancel());
    expect((await second.result).termination).toBe('Cancelled');
    expect(on.conversation.status).toBe('active');
    expect(only(on.conversation.log(), 'message-queued', 'message-returned')).toEqual([
      'message-queued followUp later',
      'message-returned cancelled',
    ]);
    await on.clock.until(first.cancel());
    expect(story(on.conversation.log()).at(-1)).toBe('checkpoint RunFinished');
    expect(on.model.calls).toHaveLength(1);
  });

  it('S003-20: if a completion and a cancel wait for the same append, the cancel is first and the result is late', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const gate = gateTool();
    const on = await bench({ clock, store, replies: [[call('c1', 'gate'), call('c2', 'gate')]], tools: [gate.tool] });
    const run = on.conversation.send('hi');
    await Promise.all([gate.begun('c1'), gate.begun('c2')]);
    store.trouble(() => ({ afterMs: 20 }));
    gate.release('c1');
    await clock.advance(5);
    gate.release('c2');
    await clock.advance(5);
    expect(await clock.until(on.conversation.cancel())).toBeLessThanOrEqual(100);
    expect((await run.result).termination).toBe('Cancelled');
    await clock.advance(100);
    expect(only(on.conversation.log(), 'tool-result', 'diagnostic')).toEqual([
      'tool-result c1 succeeded',
      'tool-result c2 cancelled cancelled',
      'diagnostic late_result',
    ]);
  });

  it('resume() while a run starts returns that run, and a steer sent at that time belongs to it', async () => {
    const on = await slow();
    const run = on.conversation.send('hi');
    expect(on.conversation.resume()).toBe(run);
    expect(on.conversation.send('this too', { kind: 'steer' })).toBe(run);
    await on.clock.advance(50);
    expect(only(on.conversation.log(), 'user-message', 'message-queued')).toEqual([
      'user-message direct hi',
      'message-queued steer this too',
      'user-message steer this too',
    ]);
    await on.clock.until(run.cancel());
    expect((await run.result).termination).toBe('Cancelled');
  });
});

it('INV-6: a run whose signal was aborted before its start ends in time on a store that never answers', async () => {
  const on = await onStore();
  on.store.trouble(() => 'stuck');
  const run = on.conversation.send('hi', { signal: AbortSignal.abort() });
  expect(await on.clock.until(run.result)).toBeLessThanOrEqual(100);
  expect(on.clock.waiting).toBe(0);
  expect(on.model.calls).toHaveLength(0);
});

it('INV-6: a cancel does not wait for what a later cancel ends', async () => {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const { conversation } = await bench({ clock, store, replies: ['one', 'two', 'three'] });
  // The stop of the first run takes 10 ms. Later entries are not stored.
  store.trouble((entries) => {
    if (entries[0]?.type === 'message-queued') return 'stuck';
    return commits(entries, 'RunFinished') ? { afterMs: 10 } : 'stored';
  });
  conversation.send('hi');
  while (!store.tried.some((entries) => commits(entries, 'RunFinished'))) await clock.advance(1);
  conversation.steer('first');
  const later: Promise<void>[] = [];
  conversation.log$(conversation.log().length).subscribe((entry) => {
    if (entry.type === 'run-stop') later.push(conversation.cancel());
  });
  const cancelled = conversation.cancel();
  await clock.advance(20);
  conversation.steer('second');
  expect(await clock.until(cancelled)).toBeLessThanOrEqual(100);
  expect(later).toHaveLength(1);
  expect(await clock.until(Promise.all(later))).toBeLessThanOrEqual(100);
});
