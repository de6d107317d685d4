/** The receipt of a message: delivered, queued, returned, or waiting (docs/internals/model.md, Queue Semantics). */
import { describe, expect, it } from 'vitest';
import { type Decision, LimitError } from '../../src/index.ts';
import { type Bench, bench, only, restart, story } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, lines } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const args = { m: 'a' };
const approve = (callId: string): Decision => ({ callId, action: 'approve' });
/** The messages of each model request. */
const shown = (on: Bench, index: number): string[] => lines(on.model.calls[index]?.messages ?? []);

describe('receipts', () => {
  it('when idle, steer and followUp are delivered at once, as direct', async () => {
    const on = await bench({ replies: ['one', 'two'] });
    for (const kind of ['steer', 'followUp'] as const) {
      expect(await on.conversation[kind](kind).delivered).toBe('delivered');
      await on.conversation.resume().result;
    }
    expect(only(on.conversation.log(), 'user-message', 'message-queued')).toEqual([
      'user-message direct steer',
      'user-message direct followUp',
    ]);
  });

  it('B18: a message that cannot be delivered before the conversation closes is returned, and the log records this', async () => {
    const on = await bench({ replies: [deaf(), 'never'] });
    const run = on.conversation.send('P');
    await on.clock.advance(0);
    const [steer, followUp] = [on.conversation.steer('S'), on.conversation.send('F', { kind: 'followUp' })];
    await on.clock.until(on.conversation.close());
    expect(await steer.delivered).toBe('returned');
    expect((await followUp.result).termination).toBe('Cancelled');
    expect((await run.result).termination).toBe('Cancelled');
    expect(on.model.calls).toHaveLength(1);
    expect(on.clock.waiting).toBe(0);
    const { conversation } = await restart(on);
    expect(conversation.queue).toEqual([]);
    expect(only(conversation.log(), 'message-returned', 'run-stop')).toEqual([
      'message-returned closed',
      'message-returned closed',
      'run-stop interrupted cancelled',
    ]);
  });

  it('a queued message is in the queue and the view until its delivery', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')], 'x', 'y'], tools: [gate.tool] });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    const { messageId } = on.conversation.followUp('F');
    const queued = [{ messageId, kind: 'followUp', content: [{ type: 'text', text: 'F' }] }];
    expect(on.conversation.queue).toEqual(queued);
    expect(on.conversation.view().queued).toEqual(queued);
    gate.release('c1');
    await run.result;
    expect(on.conversation.queue).toEqual([]);
    expect(on.conversation.view().queued).toEqual([]);
  });

  it('INV-7: the queue is bounded, and an excess message is refused before anything changes', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')]], tools: [gate.tool], policies: { limits: { queue: 2 } } });
    on.conversation.send('hi');
    await gate.begun('c1');
    on.conversation.followUp('1');
    on.conversation.steer('2');
    const before = on.conversation.log().length;
    expect(() => on.conversation.followUp('3')).toThrow(LimitError);
    expect(on.conversation.log()).toHaveLength(before);
  });

  it('INV-7: the queue has the same bound while its messages wait for a slow append', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const on = await bench({ replies: ['one'], clock, store, policies: { limits: { queue: 2 } } });
    store.trouble(() => ({ afterMs: 1_000 }));
    on.conversation.send('hi');
    on.conversation.followUp('1');
    on.conversation.steer('2');
    expect(() => on.conversation.followUp('3')).toThrow(LimitError);
    await clock.advance(10_000);
    expect(only(on.conversation.log(), 'message-queued')).toHaveLength(2);
  });

  it('INV-7, I4: a message whose return is not stored keeps its place, also where a cancel overtook the store', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const gate = gateTool();
    const policies = { limits: { queue: 2 }, whileActive: 'followUp' as const };
    const on = await bench({ replies: [[call('c1', 'gate')], 'next'], tools: [gate.tool], clock, store, policies });
    on.conversation.send('hi');
    await gate.begun('c1');
    store.trouble((entries) =>
      entries.some(({ type }) => type === 'message-returned') ? { afterMs: 9_000, fails: true } : { afterMs: 1_000 },
    );
    on.conversation.followUp('1');
    const second = on.conversation.send('2', { kind: 'followUp' });
    const cancelled = on.conversation.cancel();
    await clock.advance(60);
    void second.cancel();
    await clock.advance(60);
    on.conversation.send('3');
    expect(() => on.conversation.followUp('4')).toThrow(LimitError);
    await clock.advance(60_000);
    await cancelled;
    expect(on.conversation.queue.length).toBeLessThanOrEqual(2);
  });
});

describe('a message while the conversation waits for a person', () => {
  async function waiting() {
    const ask = echoTool('ask');
    const on = await bench({
      replies: [[call('c1', 'ask', args)], 'resumed', 'answered'],
      tools: [ask.tool],
      plugins: [asks().plugin],
    });
    await on.conversation.send('hi').result;
    return on;
  }

  it('B19: it is queued as a followUp while a call is undecided, and nothing runs', async () => {
    const on = await waiting();
    on.conversation.send('more');
    expect(on.conversation.status).toBe('waiting');
    expect(on.conversation.queue.map(({ kind }) => kind)).toEqual(['followUp']);
    expect(on.model.calls).toHaveLength(1);
  });

  it('B19: if all calls are decided, it first resumes the suspended cycle, and then becomes a separate cycle', async () => {
    const on = await waiting();
    await on.conversation.decide(approve('c1'));
    const run = on.conversation.send('more');
    expect((await run.result).text).toBe('answered');
    expect(shown(on, 1)).toEqual(['user hi', 'assistant +c1', 'c1 {"m":"a"}']);
    expect(shown(on, 2).slice(-2)).toEqual(['assistant resumed', 'user more']);
    expect(on.conversation.view().cycles.map(({ root, stop }) => [root.kind, stop?.reason])).toEqual([
      ['direct', 'completed'],
      ['followUp', 'completed'],
    ]);
  });

  it('a message queued before the decision is promoted after the cycle was resumed and has ended', async () => {
    const on = await waiting();
    const later = on.conversation.send('more');
    await on.conversation.decide(approve('c1'));
    expect(on.conversation.status).toBe('waiting');
    expect((await on.conversation.resume().result).text).toBe('resumed');
    expect((await later.result).text).toBe('answered');
  });

  it.each([1, 2])(
    'INV-7: a message that would start a run counts against limits.queue %i after an earlier message that resumes the cycle',
    async (queue) => {
      const clock = new VirtualClock();
      const store = troubledStore({ clock });
      const on = await bench({
        ...{ replies: [[call('c1', 'ask', args)], 'resumed'], tools: [echoTool('ask').tool], plugins: [asks().plugin] },
        ...{ clock, store, policies: { limits: { queue }, whileSuspended: 'denyAndRun' } },
      });
      await on.conversation.send('hi').result;
      store.trouble(() => ({ afterMs: 1_000 }));
      void on.conversation.decide(approve('c1'));
      on.conversation.followUp('1');
      if (queue === 1) expect(() => on.conversation.send('2')).toThrow(/queue holds 1/);
      else {
        on.conversation.send('2');
        expect(() => on.conversation.steer('3')).toThrow(/queue holds 2/);
      }
      await clock.advance(10_000);
      expect(only(on.conversation.log(), 'message-queued')).toHaveLength(queue);
    },
  );

  it('whileSuspended reject: it is refused, and the log is unchanged', async () => {
    const ask = echoTool('ask');
    const on = await bench({
      replies: [[call('c1', 'ask', args)]],
      tools: [ask.tool],
      plugins: [asks().plugin],
      policies: { whileSuspended: 'reject' },
    });
    await on.conversation.send('hi').result;
    const before = story(on.conversation.log());
    expect(() => on.conversation.send('more')).toThrow(/waits for a decision/);
    expect(story(on.conversation.log())).toEqual(before);
  });

  it('a steer sent during the wait can be cancelled by its run, which is the one that takes it', async () => {
    const ask = echoTool('ask');
    const on = await bench({
      replies: [[call('c1', 'ask', args)], deaf()],
      tools: [ask.tool],
      plugins: [asks().plugin],
    });
    await on.conversation.send('hi').result;
    const steered = on.conversation.send('S', { kind: 'steer' });
    await on.conversation.decide(approve('c1'));
    const run = on.conversation.resume();
    await on.clock.advance(0);
    expect(await on.clock.until(steered.cancel())).toBeLessThanOrEqual(100);
    expect((await run.result).termination).toBe('Cancelled');
    expect((await steered.result).termination).toBe('Cancelled');
  });

  it('a steer sent during the wait belongs to the run that takes it', async () => {
    const on = await waiting();
    const steered = on.conversation.send('S', { kind: 'steer' });
    await on.conversation.decide(approve('c1'));
    const run = on.conversation.resume();
    expect((await run.result).text).toBe('resumed');
    expect((await steered.result).runId).toBe(run.id);
    expect(shown(on, 1).at(-1)).toBe('user S');
  });
});

describe('INV-7: a receipt if the store fails around the end of the run that the message is for', () => {
  const fates = [{ afterMs: 40, fails: true }, 'failed'] as const;
  const cases = fates.flatMap((fate) =>
    (['steer', 'followUp'] as const).flatMap((kind) => [0, 1, 2, 3, 4, 5, 6].map((times) => ({ fate, kind, times }))),
  );
  it.each(cases)('it agrees with the log (%o)', async ({ fate, kind, times }) => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const gate = gateTool();
    const plugin = { name: 'slow', runEnd: async () => undefined };
    const replies = [[call('g', 'gate')], 'next', 'more'];
    const { conversation } = await bench({ clock, store, tools: [gate.tool], plugins: [plugin], replies });
    conversation.send('hi');
    await gate.begun('g');
    let remaining = times;
    store.trouble(() => (remaining-- > 0 ? fate : 'stored'));
    void conversation.cancel();
    const { messageId, delivered } = conversation[kind]('and');
    let receiptState = 'queued';
    delivered.then((word) => {
      receiptState = word;
    });
    await clock.advance(10_000);
    const isDelivered = conversation
      .log()
      .some((entry) => entry.type === 'user-message' && entry.messageId === messageId);
    const queued = conversation.queue.some((message) => message.messageId === messageId);
    expect(receiptState).toBe(isDelivered ? 'delivered' : queued ? 'queued' : 'returned');
  });
});
