/** A close while the store is slow, has failed, or no longer answers. */
import { describe, expect, it } from 'vitest';
import { bench, only, storeWith } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, during } from '../support/scriptedReplies.ts';
import { type Fates, troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

/** A run that continues until it is cancelled, on a store whose later appends have this outcome. */
async function running(fates: Fates) {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const on = await bench({ clock, store, replies: [deaf(), 'next'] });
  const run = on.conversation.send('go');
  await clock.advance(0);
  return { ...on, store, run, trouble: () => store.trouble(fates) };
}
const silent: Fates = () => 'stuck';

describe('a close on a store that never answers', () => {
  it('every pending act is answered: decisions and settlements reject, and undelivered messages are returned', async () => {
    const tools = [echoTool('ask').tool, gateTool('lost').tool];
    const before = await bench({
      tools,
      plugins: [asks().plugin],
      replies: [[...['a', 'b'].map((id) => call(id, 'ask', { m: 'x' })), ...['l', 'm'].map((id) => call(id, 'lost'))]],
    });
    before.conversation.send('go');
    await before.clock.advance(0);
    const clock = new VirtualClock();
    const durableStore = await storeWith(before.conversation.log());
    const after = troubledStore({ clock, inner: durableStore });
    const { conversation } = await bench({ clock, store: after, tools, plugins: [asks().plugin], replies: ['next'] });
    expect([conversation.pending.length, conversation.unsettled.length]).toEqual([2, 2]);
    after.trouble(silent);
    const judged: Promise<unknown>[] = [
      conversation.decide({ callId: 'a', action: 'approve' }),
      conversation.decide({ callId: 'b', action: 'deny' }),
      conversation.settle('l', { ran: 'it did' }),
      conversation.settle('m', { didNotRun: true }),
    ];
    const sent = [conversation.steer('S').delivered, conversation.followUp('F').delivered];
    const run = conversation.send('one more', { kind: 'followUp' });
    const settled = Promise.allSettled(judged);
    await clock.until(
      conversation.close().catch(() => undefined),
      20_000,
    );
    const late = conversation.decide({ callId: 'a', action: 'approve' });
    await expect(late).rejects.toMatchObject({ code: 'closed' });
    const silence = { status: 'rejected', reason: expect.objectContaining({ code: 'store' }) };
    expect(await settled).toEqual(judged.map(() => silence));
    expect(await Promise.all(sent)).toEqual(['returned', 'returned']);
    expect((await run.result).termination).not.toBe('Completed');
    expect(clock.waiting).toBe(0);
  });

  it('the close ends after 5 s with an error; every promise is settled and no timer remains', async () => {
    const on = await running(silent);
    on.trouble();
    const steer = on.conversation.steer('S');
    const closed = expect(on.conversation.close()).rejects.toMatchObject({ code: 'store' });
    const took = await on.clock.until(closed, 20_000);
    expect(took).toBeGreaterThanOrEqual(5000);
    expect(took).toBeLessThan(5200);
    await closed;
    await expect(steer.delivered).rejects.toMatchObject({ code: 'store' });
    expect(await on.run.result).toMatchObject({ termination: 'Error', cause: 'store' });
    expect(on.clock.waiting).toBe(0);
    expect(on.alive()).toEqual([]);
  });

  it('the log is released, and the next opening continues from the durable entries', async () => {
    const on = await running(silent);
    on.trouble();
    await on.clock.until(
      on.conversation.close().catch(() => undefined),
      20_000,
    );
    on.store.trouble(() => 'stored');
    const conversation = await on.agent.open('c');
    expect(only(conversation.log(), 'run-stop')).toEqual(['run-stop interrupted crash']);
    await conversation.close();
  });

  it('a store that does not release its log is abandoned too', async () => {
    const clock = new VirtualClock();
    const inner = troubledStore({ clock });
    const open = async (id: string) => ({ ...(await inner.open(id)), close: () => new Promise<void>(() => undefined) });
    const { conversation } = await bench({ clock, store: { ...inner, open } });
    const closed = expect(conversation.close()).rejects.toMatchObject({ code: 'store' });
    expect(await clock.until(closed, 20_000)).toBe(5000);
    await closed;
    expect(clock.waiting).toBe(0);
  });
});

it('a close waits for a store that takes 3 s for each append, however many appends there are', async () => {
  const on = await running(() => ({ afterMs: 3000 }));
  on.trouble();
  const receipts = [on.conversation.followUp('1'), on.conversation.followUp('2'), on.conversation.steer('3')];
  expect(await on.clock.until(on.conversation.close(), 60_000)).toBeGreaterThan(6000);
  expect(await Promise.all(receipts.map(({ delivered }) => delivered))).toEqual(['returned', 'returned', 'returned']);
  expect(on.conversation.view().queued).toEqual([]);
  expect(only(on.conversation.log(), 'run-stop')).toEqual(['run-stop interrupted cancelled']);
});

it.each([{ synchronous: true }, { synchronous: false }])(
  'B18: a receipt rejects if the message cannot be returned: it stays queued, and the next opening lists it (%o)',
  async ({ synchronous }) => {
    const store = troubledStore({ synchronous });
    const on = await bench({ store, replies: [deaf()] });
    on.conversation.send('go');
    await on.clock.advance(0);
    const receipt = on.conversation.followUp('pay the bill');
    const run = on.conversation.send('second', { kind: 'followUp' });
    await on.clock.advance(0);
    store.trouble(() => 'failed');
    await on.clock.until(on.conversation.close());
    await expect(receipt.delivered).rejects.toMatchObject({ code: 'store' });
    expect(await run.result).toMatchObject({ termination: 'Error', cause: 'store' });
    store.trouble(() => 'stored');
    const again = await bench({ store });
    expect(again.conversation.queue.map(({ messageId }) => messageId)[0]).toBe(receipt.messageId);
    expect(again.conversation.queue).toHaveLength(2);
  },
);

it('a message that its run cannot withdraw from a failing store is not reported as returned', async () => {
  const store = troubledStore();
  const on = await bench({ store, replies: [deaf()] });
  on.conversation.send('go');
  await on.clock.advance(0);
  const later = on.conversation.send('later', { kind: 'followUp' });
  await on.clock.advance(0);
  store.trouble(() => 'failed');
  await later.cancel();
  expect(await later.result).toMatchObject({ termination: 'Error', cause: 'store' });
  expect(on.conversation.view().queued).toHaveLength(1);
});

describe('a conversation that is closed while it waits', () => {
  const waiting = async () => {
    const replies = [[call('c1', 'ask', { m: 'a' })], 'done'];
    const on = await bench({ replies, tools: [echoTool('ask').tool], plugins: [asks().plugin] });
    const run = on.conversation.send('hi');
    await run.result;
    return { ...on, run };
  };

  it('it refuses a cancel as closed, at once and later, and still waits when it is opened again', async () => {
    const { conversation, agent, run } = await waiting();
    const closed = conversation.close();
    await expect(conversation.cancel()).rejects.toMatchObject({ code: 'closed' });
    await closed;
    await expect(conversation.cancel()).rejects.toMatchObject({ code: 'closed' });
    await run.cancel();
    const again = await agent.open('c');
    expect(again.status).toBe('waiting');
    expect(again.pending.map(({ callId }) => callId)).toEqual(['c1']);
  });

  it('it performs a cancel that arrived before', async () => {
    const { conversation } = await waiting();
    const cancelled = conversation.cancel();
    await Promise.all([conversation.close(), cancelled]);
    expect(only(conversation.log(), 'run-stop')).toEqual(['run-stop interrupted cancelled']);
    await conversation.cancel();
  });
});

it('a close inside a subscriber at the stop of a run leaves the run completed', async () => {
  const on = await bench({ replies: [during(() => undefined, 'done')], store: troubledStore() });
  let closed: Promise<void> | undefined;
  on.conversation.log$().subscribe(({ type }) => {
    if (type === 'run-stop') closed = on.conversation.close();
  });
  expect(await on.conversation.send('hi').result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
  await closed;
});
