/**
 * A cancel waits only for its own stop (docs/internals/lifecycle.md, Cancellation). The test takes orders of up to four
 * acts, at every moment, on every store that answers late, never or with an error. There are 40,000 orders, with 12
 * stores each. `npm test` takes one order in 293, and `npm run prove` one in 37. `EXHAUSTIVE=1` takes all of them, in
 * about ten minutes on one core.
 */
import { describe, expect, it } from 'vitest';
import { sendWithReceipt } from '../../src/conversation/conversation.ts';
import { type Bench, bench, only } from '../support/agentBench.ts';
import { livedWith, type Order, ordersFrom, STARTS, troublesOf } from '../support/cancelOrders.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, type Reply } from '../support/scriptedReplies.ts';
import { sampled, volume } from '../support/tier.ts';
import { type Fate, troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const NONE = { kind: 'none', at: 0, once: true } as const;
/** The report lists at most this many faults. */
const FAULTS_MOST = 5;

/** The faults of an order of acts, on any store. */
async function faultsOf(order: Order): Promise<string[]> {
  const describeFaults = (trouble: object, faults: string[]): string[] =>
    faults.map((fault) => `${fault}: ${JSON.stringify({ ...order, trouble })}`);
  const { faults, appends } = await livedWith(order, NONE);
  const found = describeFaults(NONE, faults);
  for (const trouble of troublesOf(order, appends))
    found.push(...describeFaults(trouble, (await livedWith(order, trouble)).faults));
  return found;
}

describe('INV-6, B03: up to four acts with a cancel among them', () => {
  it.each(STARTS)(
    'from %s: each cancel ends within 100 ms, nothing is lost, and log, receipts and results agree',
    async (start) => {
      const orders = sampled(ordersFrom(start), volume.cancelOrderOf);
      expect(orders.length).toBeGreaterThan(5);
      const found: string[] = [];
      for (const order of orders) {
        found.push(...(await faultsOf(order)));
        if (found.length >= FAULTS_MOST) break;
      }
      expect(found.slice(0, FAULTS_MOST)).toEqual([]);
    },
  );
});

interface Scene extends Bench {
  /** Sets the outcome of later appends by number, counted from 0; all others take 20 ms. */
  trouble(fates: { [at: number]: Fate }): void;
}

async function scene(replies: readonly Reply[], policies: object = {}): Promise<Scene> {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const around = { tools: [echoTool('ask').tool], plugins: [asks().plugin] };
  const on = await bench({ clock, store, replies, ...around, policies: { whileActive: 'followUp', ...policies } });
  const trouble = (fates: { [at: number]: Fate }): void => {
    const from = store.tried.length;
    store.trouble((_, number) => fates[number - from] ?? { afterMs: 20 });
  };
  return { ...on, trouble };
}

/** A call waits for a person. */
async function waiting(policies: object = {}): Promise<Scene> {
  const on = await scene([[call('c1', 'ask', { m: 'a' })], 'next', 'last'], policies);
  await on.conversation.send('hi').result;
  return on;
}

describe('INV-6: a stop is reported once it is durable', () => {
  it.each([
    ['followUp', 'stuck'],
    ['followUp', { afterMs: 3_000 }],
    ['send', 'stuck'],
    ['send', { afterMs: 3_000 }],
  ] as const)(
    'a cancel does not wait for the run that a %s of the same tick starts, on a store: %j',
    async (act, fate) => {
      const { conversation, clock, trouble } = await waiting();
      // The stop, the message, and the start of its run.
      trouble({ 2: fate });
      const cancelled = conversation.cancel();
      conversation[act]('more');
      expect(await clock.until(cancelled)).toBeLessThanOrEqual(100);
      expect(only(conversation.log(), 'run-stop')).toEqual(['run-stop interrupted cancelled']);
      expect(conversation.status).toBe('active');
    },
  );

  it.each(['stuck', { afterMs: 3_000 }] as const)(
    'a cancel after a steer, a followUp and a resume from idle does not wait for a store: %j',
    async (fate) => {
      for (const at of [0, 1, 2, 3]) {
        const { conversation, clock, trouble } = await scene(['one', 'two', 'three']);
        trouble({ [at]: fate });
        await conversation.cancel();
        conversation.steer('steer');
        conversation.followUp('later');
        conversation.resume();
        expect(await clock.until(conversation.cancel()), `append ${at}`).toBeLessThanOrEqual(100);
      }
    },
  );

  it('a cancel ends the waiting call even if a message was about to replace it after a followUp', async () => {
    const { conversation, clock, trouble } = await waiting({ whileSuspended: 'denyAndRun' });
    trouble({});
    conversation.followUp('later');
    conversation.send('instead');
    expect(await clock.until(conversation.cancel())).toBeLessThanOrEqual(100);
    expect(only(conversation.log(), 'tool-result', 'run-stop')).toEqual([
      'tool-result c1 cancelled cancelled',
      'run-stop interrupted cancelled',
    ]);
  });

  it('the result of a run does not wait for a followUp that arrives while its end is being stored', async () => {
    const { conversation, clock, trouble } = await scene(['one', 'two']);
    const run = conversation.send('hi');
    // The first three are the start of the run, its reply, and its end.
    trouble({ 3: 'stuck' });
    while (!conversation.log().some(({ type }) => type === 'model-reply')) await clock.advance(1);
    conversation.followUp('later');
    expect(await clock.until(run.result)).toBeLessThanOrEqual(100);
    expect(only(conversation.log(), 'run-stop', 'message-queued')).toEqual(['run-stop completed end_turn']);
  });

  it('the report of a stop precedes every report of the next run', async () => {
    const { conversation, clock, trouble } = await scene(['one', 'two']);
    const run = conversation.send('hi');
    // The first three are the start of the run, its reply, and its end. The message and the start of its run follow.
    trouble({ 4: { afterMs: 300, fails: true } });
    while (!conversation.log().some(({ type }) => type === 'model-reply')) await clock.advance(1);
    conversation.followUp('later');
    await clock.until(run.result);
    await clock.advance(100);
    // The message waits for the failing append, and is not stored together with it.
    conversation.steer('now');
    await clock.advance(1_000);
    expect(only(conversation.log(), 'run-stop', 'message-queued')).toEqual([
      'run-stop completed end_turn',
      'message-queued followUp later',
      'run-stop error store',
      'message-queued steer now',
    ]);
  });
});

describe('B18: a message whose run never starts is returned, and its receipt settles as returned', () => {
  it('if a cancel arrives before the message has replaced the waiting call', async () => {
    const { conversation, clock, trouble } = await waiting({ whileSuspended: 'denyAndRun' });
    trouble({});
    const { run, receipt } = sendWithReceipt(conversation, 'instead', {});
    expect(await clock.until(conversation.cancel())).toBeLessThanOrEqual(100);
    expect(await run.result).toMatchObject({ termination: 'Cancelled' });
    expect(await receipt.delivered).toBe('returned');
    expect(only(conversation.log(), 'user-message', 'message-queued')).toEqual(['user-message direct hi']);
  });

  it('if the store rejects the start of the run that replaces the call', async () => {
    const { conversation, clock, trouble } = await waiting({ whileSuspended: 'denyAndRun' });
    trouble({ 1: 'failed', 2: 'failed' });
    const { run, receipt } = sendWithReceipt(conversation, 'instead', {});
    await clock.advance(1_000);
    expect(await run.result).toMatchObject({ termination: 'Error', cause: 'store' });
    expect(await receipt.delivered).toBe('returned');
    expect(only(conversation.log(), 'user-message', 'run-stop')).toEqual([
      'user-message direct hi',
      'run-stop interrupted superseded',
    ]);
  });
});
