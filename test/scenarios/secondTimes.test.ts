/**
 * Acts of a host that are done twice with a conversation: attach, detach, close, open, act after the end. Invariant:
 * the second time neither repeats nor breaks the first. A row contains an act and its second result.
 */
import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Conversation, type LogStore, memoryStore } from '../../src/index.ts';
import { type Bench, bench, restart } from '../support/agentBench.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, deaf, t } from '../support/scriptedReplies.ts';

type Stream = 'log$' | 'live$' | 'view$';
const STREAMS: readonly Stream[] = ['log$', 'live$', 'view$'];

/** Counts the values that a subscriber receives. */
function attach(conversation: Conversation, stream: Stream) {
  const seen = { values: 0, completed: 0 };
  const source = (stream === 'log$' ? conversation.log$() : conversation[stream]) as Observable<unknown>;
  const subscription = source.subscribe({
    next: () => {
      seen.values += 1;
    },
    complete: () => {
      seen.completed += 1;
    },
  });
  return { seen, detach: () => subscription.unsubscribe() };
}

describe.each(STREAMS)('%s', (stream) => {
  it('it continues for the second subscriber when the first one leaves, in either order', async () => {
    for (const leaving of [0, 1]) {
      const { conversation } = await bench({ replies: [[t('a'), t('b')], [t('c')]] });
      const both = [attach(conversation, stream), attach(conversation, stream)] as const;
      await conversation.send('one').result;
      const values = both.map(({ seen }) => seen.values);
      expect(values[0]).toBe(values[1]);
      both[leaving]?.detach();
      both[leaving]?.detach();
      await conversation.send('two').result;
      expect(both[leaving]?.seen.values).toBe(values[0]);
      expect(both[1 - leaving]?.seen.values).toBeGreaterThan(values[0] ?? 0);
      await conversation.close();
    }
  });

  it('a subscriber that attaches again receives the later values', async () => {
    const { conversation } = await bench({ replies: ['a', 'b'] });
    attach(conversation, stream).detach();
    await conversation.send('one').result;
    const again = attach(conversation, stream);
    const before = again.seen.values;
    await conversation.send('two').result;
    expect(again.seen.values).toBeGreaterThan(before);
    await conversation.close();
  });

  it('it completes once for each subscriber when the conversation is closed, idle, waiting or during a reply', async () => {
    const ways: (() => Promise<Bench>)[] = [
      () => bench({ replies: ['a'] }),
      async () => {
        const { tool } = echoTool('ask', { needsApproval: true });
        const on = await bench({ replies: [[call('c1', 'ask', { m: 'a' })]], tools: [tool] });
        await on.conversation.send('one').result;
        return on;
      },
      async () => {
        const on = await bench({ replies: [deaf(t('a'))] });
        on.conversation.send('one');
        await on.clock.advance(0);
        return on;
      },
    ];
    for (const way of ways) {
      const { conversation, clock } = await way();
      const both = [attach(conversation, stream), attach(conversation, stream)];
      await clock.until(conversation.close());
      await conversation.close();
      expect(both.map(({ seen }) => seen.completed)).toEqual([1, 1]);
    }
  });

  it('it completes at once for a subscriber that arrives after the end', async () => {
    const { conversation } = await bench({ replies: ['a'] });
    await conversation.send('one').result;
    await conversation.close();
    expect(attach(conversation, stream).seen.completed).toBe(1);
  });
});

describe('a conversation that is closed', () => {
  it('it closes once: every close resolves, even one inside another, and the store releases the log once', async () => {
    const store = memoryStore();
    let closed = 0;
    const counted: LogStore = {
      list: () => store.list(),
      delete: (id) => store.delete(id),
      async open(id, options) {
        const handle = await store.open(id, options);
        return {
          read: (from) => handle.read(from),
          append: (entries, seq) => handle.append(entries, seq),
          close: async () => {
            closed += 1;
            await handle.close();
          },
        };
      },
    };
    const { conversation, agent } = await bench({ replies: ['a'], store: counted });
    await conversation.send('one').result;
    await Promise.all([conversation.close(), conversation.close(), agent.close()]);
    await conversation.close();
    await agent.close();
    expect(closed).toBe(1);
  });

  it('it refuses every request with the same code each time, and its log stays readable', async () => {
    const { conversation } = await bench({ replies: ['a'] });
    await conversation.send('one').result;
    const { length } = conversation.log();
    await conversation.close();
    for (const _ of ['first', 'second']) {
      expect(() => conversation.send('two')).toThrow(expect.objectContaining({ code: 'closed' }));
      await expect(conversation.decide({ callId: 'c1', action: 'approve' })).rejects.toMatchObject({ code: 'closed' });
      await expect(conversation.cancel()).resolves.toBeUndefined();
    }
    expect(conversation.log()).toHaveLength(length);
  });

  it('the same agent may open it again after each close, and it continues each time', async () => {
    const { agent, conversation, model } = await bench({ replies: ['a', 'b', 'c'] });
    let open = conversation;
    for (const text of ['one', 'two', 'three']) {
      await expect(agent.open('c')).rejects.toMatchObject({ code: 'session_busy' });
      await open.send(text).result;
      await open.close();
      open = await agent.open('c');
      expect(open.view().cycles.at(-1)?.stop?.reason).toBe('completed');
    }
    expect(model.calls.map(({ messages }) => messages.length)).toEqual([1, 3, 5]);
    await agent.close();
  });

  it('after a failed opening the next one succeeds', async () => {
    const store = memoryStore();
    let tries = 0;
    const failing: LogStore = {
      list: () => store.list(),
      delete: (id) => store.delete(id),
      open: (id, options) => {
        tries += 1;
        if (tries === 2) throw new Error('not now');
        return store.open(id, options);
      },
    };
    const { agent } = await bench({ replies: ['a'], store: failing });
    await expect(agent.open('d')).rejects.toThrow('not now');
    const second = await agent.open('d');
    expect((await second.send('hi').result).text).toBe('a');
    await agent.close();
  });
});

describe('an act that is done twice', () => {
  it('a call that is decided twice runs once, in this process and in the next', async () => {
    const { ran, tool } = echoTool('ask', { needsApproval: true });
    const options = { tools: [tool] };
    const first = await bench({ ...options, replies: [[call('c1', 'ask', { m: 'a' })], 'done'] });
    await first.conversation.send('go').result;
    expect(await first.conversation.decide({ callId: 'c1', action: 'approve' })).toBe('applied');
    expect(await first.conversation.decide({ callId: 'c1', action: 'approve' })).toBe('duplicate');
    const second = await restart(first, { ...options, replies: ['done'] });
    expect(await second.conversation.decide({ callId: 'c1', action: 'approve' })).toBe('duplicate');
    await second.conversation.resume().result;
    await second.conversation.resume().result;
    expect(ran).toHaveLength(1);
    await second.agent.close();
  });

  it('a run that is cancelled twice stops once', async () => {
    const { conversation, clock } = await bench({ replies: [deaf(), 'after'] });
    const run = conversation.send('go');
    await clock.advance(0);
    const both = Promise.all([conversation.cancel(), run.cancel(), conversation.cancel()]);
    await clock.until(both);
    await conversation.cancel();
    const stops = conversation.log().filter(({ type }) => type === 'run-stop');
    expect(stops).toHaveLength(1);
    expect((await conversation.send('again').result).text).toBe('after');
    await conversation.close();
  });
});
