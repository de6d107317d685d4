/** Sessions: one open conversation with many users, closed when idle, never during a run. */
import { describe, expect, it } from 'vitest';
import { type Conversation, createAgent, LimitError, type LogStore, memoryStore } from '../../src/index.ts';
import { sessions } from '../../src/transports/index.ts';
import { during, scripted } from '../support/scriptedReplies.ts';
import { proves } from '../support/tier.ts';
import { flush, VirtualClock } from '../support/virtualClock.ts';

/** A store that counts its open handles. */
function countedStore(): LogStore & { open: LogStore['open']; now: number; most: number } {
  const store = memoryStore();
  const counted = {
    now: 0,
    most: 0,
    list: () => store.list(),
    delete: (id: string) => store.delete(id),
    async open(id: string) {
      const handle = await store.open(id);
      counted.now += 1;
      counted.most = Math.max(counted.most, counted.now);
      return {
        read: (from?: number) => handle.read(from),
        append: (entries: Parameters<typeof handle.append>[0], seq: number) => handle.append(entries, seq),
        close: async () => {
          await handle.close();
          counted.now -= 1;
        },
      };
    },
  };
  return counted;
}

function place(replies: Parameters<typeof scripted>[0] = [], options: { idleMs?: number; openMax?: number } = {}) {
  const clock = new VirtualClock();
  const store = countedStore();
  const agent = createAgent({ model: scripted(replies), store, ports: { now: clock.now, setTimer: clock.setTimer } });
  return { agent, store, clock, shared: sessions(agent, { setTimer: clock.setTimer, ...options }) };
}

/** A model call that continues when the test permits it. */
function held(text: string) {
  let goOn = (): void => {};
  const wait = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  return { reply: during(() => wait, text), goOn: () => goOn() };
}

describe('a conversation that many users acquire', () => {
  it('all users receive the same one, during its opening or afterwards', async () => {
    const { shared, store } = place();
    const [first, second] = await Promise.all([shared.acquire('a'), shared.acquire('a')]);
    expect(second).toBe(first);
    expect(await shared.acquire('a')).toBe(first);
    expect(store.now).toBe(1);
  });

  it('it stays open while one of them holds it, and is closed after it has been idle for idleMs', async () => {
    const { shared, store, clock } = place([], { idleMs: 1000 });
    const conversation = await shared.acquire('a');
    await shared.acquire('a');
    shared.release(conversation);
    await clock.advance(5000);
    expect(store.now).toBe(1);
    shared.release(conversation);
    await clock.advance(999);
    expect(store.now).toBe(1);
    await clock.advance(1);
    expect(store.now).toBe(0);
    expect(clock.waiting).toBe(0);
  });

  it('if it is acquired again before that, the idle time restarts', async () => {
    const { shared, store, clock } = place([], { idleMs: 1000 });
    shared.release(await shared.acquire('a'));
    await clock.advance(900);
    const again = await shared.acquire('a');
    await clock.advance(900);
    expect(store.now).toBe(1);
    shared.release(again);
    await clock.advance(900);
    expect(store.now).toBe(1);
    await clock.advance(100);
    expect(store.now).toBe(0);
  });

  it('if it is acquired while it closes, it is opened again', async () => {
    const { shared, store, clock } = place([], { idleMs: 10 });
    const first = await shared.acquire('a');
    shared.release(first);
    const closing = clock.advance(10);
    const second = await shared.acquire('a');
    await closing;
    expect(store.now).toBe(1);
    expect(second.status).toBe('idle');
    expect(second.log().length).toBe(1);
  });

  it('it cannot be released more often than it was acquired', async () => {
    const { shared } = place();
    const conversation = await shared.acquire('a');
    shared.release(conversation);
    expect(() => shared.release(conversation)).toThrow(/more often/);
  });

  it('it is opened again if another caller closed it', async () => {
    const { shared, store } = place();
    const first = await shared.acquire('a');
    await first.close();
    const second = await shared.acquire('a');
    expect(second).not.toBe(first);
    shared.release(first);
    expect(store.now).toBe(1);
  });

  it('a failed opening is an error for all callers, and takes no slot', async () => {
    const { agent, shared } = place([], { openMax: 1 });
    const other = await agent.open('a');
    const tries = await Promise.allSettled([shared.acquire('a'), shared.acquire('a')]);
    expect(tries.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await other.close();
    expect((await shared.acquire('a')).id).toBe('a');
  });
});

describe('a run', () => {
  it('it continues when all users have left, and its conversation is closed idleMs after its end', async () => {
    const { reply, goOn } = held('done');
    const { shared, store, clock } = place([reply], { idleMs: 1000 });
    const conversation = await shared.acquire('a');
    const run = conversation.send('go');
    shared.release(conversation);
    await clock.advance(20_000);
    expect([conversation.status, store.now]).toEqual(['active', 1]);
    goOn();
    expect((await run.result).termination).toBe('NaturalEnd');
    await clock.advance(999);
    expect(store.now).toBe(1);
    await clock.advance(1);
    expect(store.now).toBe(0);
  });

  it('a run that starts while nobody holds its conversation is not ended by the idle time', async () => {
    const { reply, goOn } = held('done');
    const { shared, store, clock } = place([reply], { idleMs: 1000 });
    const conversation = await shared.acquire('a');
    shared.release(conversation);
    const run = conversation.send('go');
    await clock.advance(20_000);
    expect([conversation.status, store.now]).toEqual(['active', 1]);
    goOn();
    expect((await run.result).termination).toBe('NaturalEnd');
    await clock.advance(1000);
    expect(store.now).toBe(0);
  });

  it('it is not ended to free a slot: another conversation waits until the run has ended', async () => {
    const { reply, goOn } = held('done');
    const { shared, clock } = place([reply], { openMax: 1 });
    const conversation = await shared.acquire('a');
    const run = conversation.send('go');
    shared.release(conversation);
    let other: Conversation | undefined;
    const waiting = shared.acquire('b').then((opened) => {
      other = opened;
    });
    await clock.advance(5000);
    expect(other).toBeUndefined();
    goOn();
    expect((await run.result).reason).toBe('completed');
    await waiting;
    expect(other?.id).toBe('b');
  });
});

describe('slots', () => {
  const sessionCount = proves ? 10_000 : 2_000;
  it(`${sessionCount} conversations are listed and at most 200 open at once`, async () => {
    const { shared, store, agent } = place();
    let next = 0;
    const visitor = async (): Promise<void> => {
      while (next < sessionCount) {
        next += 1;
        shared.release(await shared.acquire(`c${next}`));
      }
    };
    await Promise.all(Array.from({ length: 300 }, visitor));
    expect(store.most).toBe(200);
    expect((await agent.list()).length).toBeGreaterThanOrEqual(sessionCount);
    await shared.close();
    expect(store.now).toBe(0);
  });

  it('the conversation that was idle for longest is closed first', async () => {
    const { shared } = place([], { openMax: 2 });
    const [a, b] = [await shared.acquire('a'), await shared.acquire('b')];
    shared.release(b);
    shared.release(a);
    await shared.acquire('c');
    expect(await shared.acquire('a')).toBe(a);
  });

  it('waiting callers are admitted in order after a release, and refused after the time limit', async () => {
    const { shared, clock } = place([], { openMax: 1 });
    const first = await shared.acquire('a');
    const order: string[] = [];
    const waiters = ['b', 'c'].map(async (id) => {
      const opened = await shared.acquire(id);
      order.push(id);
      shared.release(opened);
    });
    const late = shared.acquire('d').catch((error: unknown) => error);
    await flush();
    shared.release(first);
    await Promise.all(waiters);
    expect(order).toEqual(['b', 'c']);
    const d = (await late) as Conversation;
    const refused = shared.acquire('e').catch((error: unknown) => error);
    await clock.advance(10_000);
    expect(await refused).toBeInstanceOf(LimitError);
    shared.release(d);
    expect((await shared.acquire('e')).id).toBe('e');
  });

  it.each([1, 2, 5])(
    'a place that %i waiters need no longer, since their conversation is open, goes to the next in line',
    async (joining) => {
      const { shared, clock } = place([], { openMax: 2 });
      const held = [await shared.acquire('x'), await shared.acquire('y')];
      const opening = [shared.acquire('b'), ...Array.from({ length: joining }, () => shared.acquire('b'))];
      const next = shared.acquire('c');
      let isIn = false;
      void next.then(() => {
        isIn = true;
      });
      for (const conversation of held) {
        shared.release(conversation);
        await flush();
      }
      const joined = await Promise.all(opening);
      await flush();
      expect([new Set(joined).size, isIn]).toEqual([1, true]);
      expect((await next).id).toBe('c');
      expect(clock.waiting).toBe(0);
      await shared.close();
    },
  );

  it('closing ends open conversations and refuses waiting and new callers', async () => {
    const { shared, store, clock } = place([], { openMax: 1 });
    await shared.acquire('a');
    const waiting = shared.acquire('b').catch((error: { code: string }) => error.code);
    await shared.close();
    expect(await waiting).toBe('closed');
    await expect(shared.acquire('a')).rejects.toMatchObject({ code: 'closed' });
    expect([store.now, clock.waiting]).toEqual([0, 0]);
  });

  it('invalid options are refused', () => {
    const { agent } = place();
    expect(() => sessions(agent, { openMax: 0 })).toThrow(/openMax/);
    expect(() => sessions(agent, { idle: 5 } as object)).toThrow(/idle/);
  });
});
