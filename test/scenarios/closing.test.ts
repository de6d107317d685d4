/** A close answers every pending request of the conversation, and each answer is true. */
import { describe, expect, it } from 'vitest';
import { watchersOf } from '../../src/agent.ts';
import { createAgent, type LogEntry, type LogStore, memoryStore } from '../../src/index.ts';
import { bench, only } from '../support/agentBench.ts';
import { restFaults } from '../support/logRules.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, deaf, scripted } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { flush, VirtualClock } from '../support/virtualClock.ts';

it.each([{ synchronous: true }, { synchronous: false }])(
  'decisions that are being stored when a conversation closes are durable before it is closed (%o)',
  async (how) => {
    const on = await bench({
      replies: [['c1', 'c2', 'c3'].map((callId) => call(callId, 'ask', { m: 'a' }))],
      tools: [echoTool('ask').tool],
      plugins: [asks().plugin],
      store: troubledStore(how),
    });
    await on.conversation.send('hi').result;
    const decisions = ['c1', 'c2', 'c3'].map((callId) => on.conversation.decide({ callId, action: 'approve' }));
    const closed = on.conversation.close();
    // A second close waits for the same end.
    await on.conversation.close();
    await closed;
    expect(await Promise.all(decisions)).toEqual(['applied', 'applied', 'applied']);
    expect(only(on.conversation.log(), 'decision')).toEqual(['decision c1 1', 'decision c2 1', 'decision c3 1']);
    await expect(on.conversation.decide({ callId: 'c1', action: 'approve' })).rejects.toThrow(/closed/);
  },
);

it.each([{ synchronous: true }, { synchronous: false }])(
  'a close returns every message of the queue, ends the run, and starts no other (%o)',
  async (how) => {
    const { conversation, model } = await bench({ replies: [deaf()], store: troubledStore(how) });
    const run = conversation.send('hi');
    while (model.calls.length === 0) await flush();
    const receipts = [conversation.followUp('later'), conversation.steer('now'), conversation.followUp('last')];
    while (conversation.queue.length < 3) await flush();
    await conversation.close();
    expect(await Promise.all(receipts.map(({ delivered }) => delivered))).toEqual(['returned', 'returned', 'returned']);
    expect((await run.result).termination).toBe('Cancelled');
    const types = conversation.log().map(({ type }) => type);
    expect(types.filter((type) => type === 'message-returned')).toHaveLength(3);
    expect(types.filter((type) => type === 'run-started' || type === 'run-stop')).toEqual(['run-started', 'run-stop']);
  },
);

/** A store whose opening waits until the test permits it. */
function slowStore() {
  const inner = memoryStore();
  let pass = (): void => {};
  const passed = new Promise<void>((resolve) => (pass = resolve));
  const store: LogStore = {
    ...inner,
    async open(id) {
      await passed;
      return inner.open(id);
    },
  };
  return { inner, store, pass };
}

describe('an agent that is closed', () => {
  it('it releases a conversation that is still being opened: the open rejects, and another agent may open it', async () => {
    const { inner, store, pass } = slowStore();
    const model = scripted(['late']);
    const agent = createAgent({ model, store });
    const rejection = expect(agent.open('y')).rejects.toMatchObject({ code: 'closed' });
    let over = false;
    const closed = agent.close().then(() => (over = true));
    await Promise.resolve();
    expect(over).toBe(false);
    pass();
    await Promise.all([closed, rejection]);
    const other = createAgent({ model, store: inner });
    expect((await other.open('y')).status).toBe('idle');
    await other.close();
  });

  it('on a store that opens at once, an opening of the same tick ends with the agent too', async () => {
    const agent = createAgent({ model: scripted(['late']) });
    const rejection = expect(agent.open('y')).rejects.toMatchObject({ code: 'closed' });
    await agent.close();
    await rejection;
  });

  it('it calls no model for a request of the same tick', async () => {
    const model = scripted(['late']);
    const agent = createAgent({ model });
    const rejection = expect(agent.run('x')).rejects.toMatchObject({ code: 'closed' });
    await agent.close();
    await rejection;
    expect(model.calls).toHaveLength(0);
  });

  it('it closes even if an opening fails', async () => {
    const agent = createAgent({
      model: scripted([]),
      store: { ...memoryStore(), open: () => Promise.reject(new Error('no disk')) },
    });
    const rejection = expect(agent.open('y')).rejects.toThrow('no disk');
    await agent.close();
    await rejection;
  });

  it('it releases every conversation before it reports one that cannot be released', async () => {
    const inner = memoryStore();
    let release = (): void => {};
    const slow = new Promise<void>((resolve) => {
      release = resolve;
    });
    const store: LogStore = {
      ...inner,
      async open(id, options) {
        const handle = await inner.open(id, options);
        const close = async (): Promise<void> => {
          if (id === 'slow') await slow;
          await handle.close();
          if (id.startsWith('broken')) throw new Error(`${id} is not released`);
        };
        return { ...handle, close };
      },
    };
    const agent = createAgent({ model: scripted([]), store });
    for (const id of ['broken', 'slow', 'broken too']) await agent.open(id);
    const events: string[] = [];
    watchersOf(agent).add({ opened: () => {}, closed: () => void events.push('closed') });
    const closing = agent.close().catch((error: Error) => void events.push(error.message));
    await flush();
    expect(events).toEqual([]);
    release();
    await closing;
    expect(events).toEqual(['closed', 'broken is not released']);
    await (await inner.open('slow')).close();
  });

  it('a second close resolves after its conversations are closed', async () => {
    const { store, pass } = slowStore();
    const agent = createAgent({ model: scripted([]), store });
    const rejection = expect(agent.open('y')).rejects.toMatchObject({ code: 'closed' });
    const closings = [agent.close(), agent.close()];
    pass();
    await Promise.all([...closings, rejection]);
    await expect(agent.open('z')).rejects.toMatchObject({ code: 'closed' });
  });
});

const MOMENTS = 60;
const ON: readonly LogEntry['type'][] = ['decision', 'run-suspended', 'run-stop', 'tool-result'];

describe('INV-1, I22: a close', () => {
  it.each(ON)('a close at any moment ends what a subscriber started on %s', async (type) => {
    for (let moment = 0; moment < MOMENTS; moment++) {
      const clock = new VirtualClock();
      const store = troubledStore({ clock });
      const promoteFollowUpOn = ['completed', 'interrupted', 'error'] as const;
      const { conversation } = await bench({
        clock,
        store,
        tools: [echoTool('ask').tool],
        plugins: [asks().plugin],
        policies: { promoteFollowUpOn: [...promoteFollowUpOn] },
        replies: [[call('c1', 'ask', { m: 'a' })], 'two', 'three', 'four', 'five', 'six', 'seven'],
      });
      let sent = 0;
      conversation.log$().subscribe((entry) => {
        if (entry.type !== type || sent > 1) return;
        sent += 1;
        for (const text of ['a', 'b']) void conversation.send(text, { kind: 'followUp' }).result;
      });
      void conversation.send('hi').result.then(() => {
        void conversation.decide({ callId: 'c1', action: 'deny' }).catch(() => undefined);
        void conversation.cancel().catch(() => undefined);
      });
      for (let step = 0; step < moment; step++) await undefined;
      await conversation.close();
      expect(restFaults(conversation.log()), `closed at moment ${moment}`).toEqual([]);
    }
  });
});
