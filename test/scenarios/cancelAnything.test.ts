/**
 * A cancel waits only for itself (docs/internals/lifecycle.md, Cancellation). It ends within 100 ms, whatever is
 * active, queued or being stored.
 */
import { describe, expect, it } from 'vitest';
import type { Run } from '../../src/index.ts';
import { type Bench, bench, storeWith } from '../support/agentBench.ts';
import { appendFaults, logFaults, restFaults } from '../support/logRules.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf } from '../support/scriptedReplies.ts';
import { volume } from '../support/tier.ts';
import { type Fate, type TroubledStore, troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const args = { m: 'a' };

interface Scene extends Bench {
  store: TroubledStore;
  runs: Run[];
  /** The requests other than runs. */
  asked: Promise<unknown>[];
  gate: ReturnType<typeof gateTool>;
}

async function scene(first: 'text' | 'deaf' | 'ask' | 'gate', policies: object = {}): Promise<Scene> {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const gate = gateTool();
  const replies = { text: 'done', deaf: deaf(), ask: [call('x1', 'ask', args)], gate: [call('g1', 'gate')] };
  const options = {
    tools: [echoTool('ask').tool, gate.tool],
    plugins: [asks().plugin],
    policies: { whileActive: 'followUp' as const, ...policies },
  };
  const on = await bench({ ...options, clock, store, replies: [replies[first], 'more', 'more', 'more', 'more'] });
  return { ...on, store, gate, runs: [], asked: [] };
}

/** The first run of the scene, at its furthest state. */
async function started(on: Scene): Promise<void> {
  on.runs.push(on.conversation.send('hi'));
  await on.clock.advance(5);
}

/** The requests before the cancel. The store works when each starts, and may fail later. */
const places: { [name: string]: () => Promise<Scene> } = {
  'a new conversation': () => scene('text'),
  'a finished request': async () => {
    const on = await scene('text');
    await started(on);
    return on;
  },
  'a model that replies': async () => {
    const on = await scene('deaf');
    await started(on);
    return on;
  },
  'a model that replies, with messages queued': async () => {
    const on = await scene('deaf', { promoteFollowUpOn: ['completed'] });
    await started(on);
    on.runs.push(on.conversation.send('queued', { kind: 'followUp' }));
    await on.clock.advance(5);
    return on;
  },
  'a tool that runs': async () => {
    const on = await scene('gate');
    await started(on);
    return on;
  },
  'a call that waits': async () => {
    const on = await scene('ask');
    await started(on);
    return on;
  },
  'a call that waits, and a message that replaces it': async () => {
    const on = await scene('ask', { whileSuspended: 'denyAndRun' });
    await started(on);
    return on;
  },
  'a call that a crash interrupted': async () => {
    const before = await scene('gate');
    await started(before);
    const clock = new VirtualClock();
    const store = troubledStore({ clock, inner: await storeWith(before.conversation.log()) });
    const on = await bench({
      clock,
      store,
      tools: [gateTool().tool],
      policies: { whileActive: 'followUp' },
      replies: ['more', 'more'],
    });
    return { ...on, store, gate: before.gate, runs: [], asked: [] };
  },
};

/** The request while the store fails, which therefore waits. */
const acts: { [name: string]: (on: Scene) => void } = {
  nothing: () => undefined,
  'a diagnostic': ({ conversation }) => {
    conversation.log$().subscribe(() => {
      throw new Error('careless');
    });
  },
  'a message': (on) => void on.runs.push(on.conversation.send('more')),
  'two messages': (on) => {
    on.runs.push(on.conversation.send('more'), on.conversation.send('more', { kind: 'followUp' }));
  },
  'a steer': (on) => void on.conversation.steer('this too'),
  'a decision': (on) => {
    for (const action of ['approve', 'deny'] as const) on.asked.push(on.conversation.decide({ callId: 'x1', action }));
  },
  'a settlement': (on) => void on.asked.push(on.conversation.settle('g1', { retry: true })),
  'a resume': (on) => void on.runs.push(on.conversation.resume()),
  'a decision and a resume': (on) => {
    acts['a decision']?.(on);
    acts['a resume']?.(on);
  },
  'a decision and a message': (on) => {
    acts['a decision']?.(on);
    acts['a message']?.(on);
  },
  'a cancel': (on) => void on.asked.push(on.conversation.cancel()),
};

/** Starts an append of a diagnostic if no append is running, so that later acts wait. */
async function hold(on: Scene, fate: Fate): Promise<void> {
  on.store.trouble(() => fate);
  const tried = on.store.tried.length;
  acts['a diagnostic']?.(on);
  await on.clock.advance(1);
  expect(on.store.tried.length).toBeGreaterThan(tried);
}

const fates: [string, Fate][] = [
  ['takes 2 s', { afterMs: 2000 }],
  ['takes 70 ms', { afterMs: 70 }],
  ['fails after 70 ms', { afterMs: 70, fails: true }],
  ['never answers', 'stuck'],
];

const cancels: { [name: string]: (on: Scene) => Promise<unknown> } = {
  'the conversation': ({ conversation }) => conversation.cancel(),
  'the conversation, twice': ({ conversation }) => Promise.all([conversation.cancel(), conversation.cancel()]),
  'its last run': ({ runs }) => runs.at(-1)?.cancel() ?? Promise.resolve(),
  'every run': ({ runs }) => Promise.all(runs.map((run) => run.cancel())),
  'the conversation, which closes': ({ conversation }) => {
    conversation.close().catch(() => undefined);
    // A call that waits for a person is left as it is.
    return conversation.cancel().catch((error: { code?: string }) => expect(error.code).toBe('closed'));
  },
  'the last run, while the conversation closes': ({ conversation, runs }) => {
    conversation.close().catch(() => undefined);
    return runs.at(-1)?.cancel() ?? Promise.resolve();
  },
};

/** Waits until everything is settled, on a store that works again. */
async function rests(on: Scene, heals: boolean): Promise<void> {
  const { conversation, clock, store, runs, asked } = on;
  if (heals) store.trouble(() => 'stored');
  await clock.advance(10_000);
  await clock.until(
    conversation.close().catch(() => undefined),
    60_000,
  );
  await clock.until(Promise.allSettled([...asked, ...runs.map(({ result }) => result)]), 1);
  expect(clock.waiting).toBe(0);
  expect(logFaults(conversation.log())).toEqual([]);
  expect(appendFaults(store.tried)).toEqual([]);
  const reopened = await bench({ store: await storeWith(conversation.log()), tools: [echoTool('ask').tool] });
  expect(restFaults(reopened.conversation.log())).toEqual([]);
}

/**
 * The acts that a cancel meets. The first tier takes one in so many, so that each occurs after each place and on each
 * store.
 */
function actsOf(place: string, fate: Fate, which: string): string[] {
  const turn =
    Object.keys(places).indexOf(place) +
    fates.findIndex(([, each]) => each === fate) +
    Object.keys(cancels).indexOf(which);
  return Object.keys(acts).filter((_, index) => (turn + index) % volume.cancelOf === 0);
}

describe.each(Object.keys(places))('INV-6: after %s', (place) => {
  describe.each(fates)('on a store that %s', (_, fate) => {
    it.each(Object.keys(cancels))('a cancel of %s ends within 100 ms, whatever else waits', async (which) => {
      for (const act of actsOf(place, fate, which)) {
        const on = await places[place]?.();
        if (!on) throw new Error(place);
        await hold(on, fate);
        acts[act]?.(on);
        for (const asked of on.asked) asked.catch(() => undefined);
        const where = `${act} after ${place}`;
        await on.clock.advance(3);
        const took = await on.clock.until(cancels[which]?.(on) ?? Promise.resolve(), 20_000);
        expect(took, where).toBeLessThanOrEqual(100);
        if (which.startsWith('the conversation') && !which.endsWith('closes')) {
          expect(['idle', 'error'], where).toContain(on.conversation.status);
        }
        if (which === 'its last run') {
          const last = on.runs.at(-1)?.result ?? Promise.resolve();
          expect(took + (await on.clock.until(last, 20_000)), `the result, ${where}`).toBeLessThanOrEqual(100);
        }
        await rests(on, fate !== 'stuck');
      }
    });
  });
});
