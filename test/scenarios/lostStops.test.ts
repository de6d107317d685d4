/** A store that accepts a stop late, or never (docs/internals/lifecycle.md, Checkpoint Triggers). */
import { describe, expect, it } from 'vitest';
import type { LogEntry } from '../../src/index.ts';
import { bench, only, restart, storeWith } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf } from '../support/scriptedReplies.ts';
import { commits, type Fate, troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const args = { m: 'a' };
const CLOSED = ['tool-result c1 cancelled cancelled', 'run-stop interrupted cancelled'];
const finishes = (entries: readonly LogEntry[]): boolean => commits(entries, 'RunFinished');

/** The first append that matches `wanted` has this outcome; every other one is stored. */
function once(wanted: (entries: readonly LogEntry[]) => boolean, fate: Fate) {
  let met = false;
  return (entries: readonly LogEntry[]): Fate => {
    if (met || !wanted(entries)) return 'stored';
    met = true;
    return fate;
  };
}

async function waiting() {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const options = { clock, store, tools: [echoTool('ask').tool], plugins: [asks().plugin] };
  const on = await bench({ ...options, replies: [[call('c1', 'ask', args)], 'next'] });
  await on.conversation.send('hi').result;
  return { ...on, store };
}

describe('a waiting conversation on a store that takes 300 ms for each append', () => {
  it('INV-1, INV-3: two cancels write its stop and the results of its calls once', async () => {
    const { conversation, store, clock } = await waiting();
    store.trouble(() => ({ afterMs: 300 }));
    expect(await clock.until(conversation.cancel())).toBeLessThanOrEqual(100);
    expect(await clock.until(conversation.cancel())).toBeLessThanOrEqual(100);
    await clock.advance(2_000);
    expect(only(conversation.log(), 'tool-result', 'run-stop')).toEqual(CLOSED);
    expect(conversation.status).toBe('idle');
    expect(conversation.pending).toEqual([]);
    expect(clock.waiting).toBe(0);
  });

  it('a message that arrives in between is accepted as the next request', async () => {
    const { conversation, store, clock } = await waiting();
    store.trouble(() => ({ afterMs: 300 }));
    await clock.until(conversation.cancel());
    const next = conversation.send('and now', { kind: 'followUp' });
    expect(await clock.until(next.result, 10_000)).toBeGreaterThan(300);
    expect(await next.result).toMatchObject({ termination: 'NaturalEnd', text: 'next' });
    expect(only(conversation.log(), 'tool-result', 'run-stop')).toEqual([...CLOSED, 'run-stop completed end_turn']);
  });

  it('it continues to wait if the append finally fails, and the next cancel ends it', async () => {
    const { conversation, store, clock } = await waiting();
    store.trouble(() => ({ afterMs: 300, fails: true }));
    await clock.until(conversation.cancel());
    await clock.advance(2_000);
    expect(conversation.status).toBe('waiting');
    expect(conversation.pending.map(({ callId }) => callId)).toEqual(['c1']);
    store.trouble(() => 'stored');
    await conversation.cancel();
    expect(only(conversation.log(), 'tool-result', 'run-stop')).toEqual(CLOSED);
  });
});

describe.each([{ synchronous: true }, { synchronous: false }])('an end that cannot be stored once (%o)', (kind) => {
  const failing = async () => {
    const store = troubledStore({ ...kind, fates: once(finishes, 'failed') });
    const on = await bench({ store, replies: ['one', 'two'] });
    const result = await on.conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Error', cause: 'store', error: { code: 'store' } });
    expect(on.conversation.status).toBe('error');
    expect(only(on.conversation.log(), 'run-stop')).toEqual([]);
    return on;
  };

  it('INV-3: the next opening writes the stop', async () => {
    const { conversation } = await restart(await failing());
    expect(only(conversation.log(), 'run-stop')).toEqual(['run-stop interrupted crash']);
  });

  it('INV-3: the next request in the same process writes the stop, before its own start', async () => {
    const on = await failing();
    expect(await on.conversation.send('again').result).toMatchObject({ termination: 'NaturalEnd', text: 'two' });
    const stops = ['run-stop error store', 'run-stop completed end_turn'];
    expect(only(on.conversation.log(), 'run-stop')).toEqual(stops);
    const { conversation } = await restart(on);
    expect(only(conversation.log(), 'run-stop')).toEqual(stops);
    expect(conversation.view().cycles.map(({ stop }) => stop?.reason)).toEqual(['error', 'completed']);
  });

  it('INV-3: a resume in the same process writes the stop and reopens the cycle', async () => {
    const on = await failing();
    await on.conversation.resume().result;
    const { conversation } = await restart(on);
    expect(only(conversation.log(), 'run-stop', 'run-resumed')).toEqual([
      'run-stop error store',
      'run-resumed',
      'run-stop completed end_turn',
    ]);
    expect(conversation.view().cycles).toHaveLength(1);
  });
});

it('INV-1: calls whose results were lost with the end of their run receive one when the next run starts', async () => {
  const gate = gateTool();
  const store = troubledStore();
  const { conversation } = await bench({
    store,
    replies: [[call('c1', 'gate'), call('c2', 'gate')], 'two'],
    tools: [gate.tool],
  });
  const run = conversation.send('hi');
  await Promise.all([gate.begun('c1'), gate.begun('c2')]);
  store.trouble(once(finishes, 'failed'));
  await conversation.cancel();
  expect(await run.result).toMatchObject({ termination: 'Error', cause: 'store' });
  expect((await conversation.send('again').result).text).toBe('two');
  expect(only(conversation.log(), 'tool-result', 'run-stop')).toEqual([
    'tool-result c1 unknown',
    'tool-result c2 unknown',
    'run-stop error store',
    'run-stop completed end_turn',
  ]);
  expect(conversation.unsettled.map(({ callId }) => callId)).toEqual(['c1', 'c2']);
});

it('INV-3: an abandoned end that is stored later is the only one', async () => {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const gate = gateTool();
  const on = await bench({ clock, store, replies: [[call('c1', 'gate')], 'two'], tools: [gate.tool] });
  const run = on.conversation.send('hi');
  await gate.begun('c1');
  store.trouble(() => ({ afterMs: 300 }));
  expect(await clock.until(run.cancel())).toBeLessThanOrEqual(100);
  const next = on.conversation.send('again');
  await clock.until(next.result, 10_000);
  expect((await next.result).text).toBe('two');
  const stops = ['run-stop interrupted cancelled', 'run-stop completed end_turn'];
  expect(only(on.conversation.log(), 'run-stop')).toEqual(stops);
  expect(only(on.conversation.log(), 'tool-result')).toEqual(['tool-result c1 cancelled cancelled']);
  const store2 = await storeWith(on.conversation.log());
  expect(only((await bench({ store: store2 })).conversation.log(), 'run-stop')).toEqual(stops);
});

it('INV-3: an abandoned end that fails later is written with the start of the next run', async () => {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const gate = gateTool();
  const on = await bench({ clock, store, replies: [[call('c1', 'gate')], 'two'], tools: [gate.tool] });
  const run = on.conversation.send('hi');
  await gate.begun('c1');
  store.trouble(once(finishes, { afterMs: 300, fails: true }));
  await clock.until(run.cancel());
  const next = on.conversation.send('again');
  await clock.until(next.result, 10_000);
  expect(only(on.conversation.log(), 'tool-result', 'run-stop')).toEqual([
    'tool-result c1 cancelled cancelled',
    'run-stop interrupted cancelled',
    'run-stop completed end_turn',
  ]);
});

it('INV-3: entries that a cancelled run could not store do not end the next run', async () => {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const { conversation } = await bench({ clock, store, replies: [deaf(), 'next'] });
  const first = conversation.send('hi');
  await clock.advance(0);
  // The cancel overtakes the append of the steer after 50 ms.
  const fates: Fate[] = [{ afterMs: 60, fails: true }, 'failed'];
  store.trouble(() => fates.shift() ?? 'stored');
  const steered = conversation.steer('more');
  const cancelled = conversation.cancel();
  await clock.advance(55);
  const next = conversation.send('and', { kind: 'followUp' });
  await clock.until(Promise.all([cancelled, next.result]), 5_000);
  // The append was tried again with the end of its run, and then with the start of the next one, which succeeded.
  expect(await steered.delivered).toBe('delivered');
  expect(only(conversation.log(), 'user-message').at(-1)).toBe('user-message steer more');
  expect((await next.result).termination).toBe('NaturalEnd');
  const runs = conversation.log().map(({ runId }) => runId);
  expect(runs.slice(runs.indexOf(next.id))).not.toContain(first.id);
  expect(conversation.status).toBe('idle');
});
