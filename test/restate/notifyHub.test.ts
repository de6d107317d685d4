/**
 * The hub over notifications of PostgreSQL, with a database that the test plays: order, batches, size, gaps, invalid messages and its
 * end.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Live } from '../../src/live.ts';
import { type NotifyHub, notifyHub } from '../../src/restate/hub/notifyHub.ts';
import type { HubSignal } from '../../src/restate/liveHub.ts';
import { byteLength } from '../../src/stores/postgres/channelConnection.ts';

type Listener = (value: { payload?: string }) => void;
type Text = Extract<Live, { text: string }>;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A database that carries notifications. `fail` makes statements fail, `hold` delays notifications. */
function database() {
  const payloads: string[] = [];
  const connections = new Set<Map<string, Set<Listener>>>();
  const state = { connects: 0, released: 0, isDown: false, held: undefined as Promise<void> | undefined };
  let running = 0;
  let mostRunning = 0;
  const notify = async (payload: string) => {
    running += 1;
    mostRunning = Math.max(mostRunning, running);
    await state.held;
    running -= 1;
    if (state.isDown) throw new Error('no database');
    payloads.push(payload);
    for (const listeners of [...connections])
      for (const listener of listeners.get('notification') ?? []) listener({ payload });
  };
  const connect = async () => {
    state.connects += 1;
    if (state.isDown) throw new Error('no database');
    const listeners = new Map<string, Set<Listener>>();
    return {
      async query(text: string, values: unknown[] = []) {
        if (text === 'listen "runchart_live"') connections.add(listeners);
        else await notify(String(values[1]));
        return { rows: [] };
      },
      on: (event: string, listener: Listener) =>
        listeners.set(event, (listeners.get(event) ?? new Set()).add(listener)),
      off: (event: string, listener: Listener) => listeners.get(event)?.delete(listener),
      release() {
        state.released += 1;
        connections.delete(listeners);
      },
    };
  };
  const pool = { connect, query: async () => ({ rows: [] }) };
  return {
    state,
    payloads,
    pool,
    /** The connections that listen. */
    listening: () => connections.size,
    mostRunning: () => mostRunning,
    cut() {
      for (const listeners of [...connections]) {
        connections.delete(listeners);
        for (const listener of [...(listeners.get('end') ?? [])]) listener({});
      }
    },
    send(payload: string) {
      for (const listeners of [...connections])
        for (const listener of listeners.get('notification') ?? []) listener({ payload });
    },
  };
}

const delta = (text: string, next = 1, more: object = {}): HubSignal => ({
  ...{ type: 'live', next, signal: { type: 'text-delta', runId: 'r', text, ...more } as Live },
});
const reset = (next = 1): HubSignal => ({ type: 'live', next, signal: { type: 'reset', runId: 'r' } });
const passed = (ms = 60) => vi.advanceTimersByTimeAsync(ms);

async function watching(hub: NotifyHub, id = 'one') {
  const received: HubSignal[] = [];
  const leave = hub.subscribe(id, (signal) => void received.push(signal));
  await passed(0);
  return { received, leave, text: () => shown(received) };
}

/** The text that a client shows after these signals. */
function shown(signals: readonly HubSignal[]): string {
  let text = '';
  for (const each of signals) {
    if (each.type === 'appended') continue;
    if (each.signal.type === 'reset') text = '';
    else text += (each.signal as Text).text;
  }
  return text;
}

/** A worker and a client in two processes. */
async function twoProcesses() {
  const base = database();
  const [worker, client] = [notifyHub(base.pool), notifyHub(base.pool)];
  return { base, worker, client, watcher: await watching(client) };
}

describe('a hub over notifications', () => {
  it('carries signals to another process in their order, in one notification a turn', async () => {
    const { base, worker, watcher } = await twoProcesses();
    for (const letter of 'abcdef') worker.publish('one', delta(letter));
    worker.publish('one', { type: 'appended', length: 2 });
    worker.publish('one', delta('g', 2));
    await passed();
    expect(base.payloads).toHaveLength(1);
    expect(watcher.received).toEqual([delta('abcdef'), { type: 'appended', length: 2 }, delta('g', 2)]);
  });

  it('sends text after 50 ms, and an announced entry with what came before it at once', async () => {
    const { base, worker } = await twoProcesses();
    worker.publish('one', delta('a'));
    await passed(49);
    expect(base.payloads).toHaveLength(0);
    await passed(1);
    expect(base.payloads).toHaveLength(1);
    worker.publish('one', delta('b'));
    worker.publish('one', { type: 'appended', length: 2 });
    await passed(0);
    expect(base.payloads).toHaveLength(2);
  });

  it('sends one query at a time, and what comes meanwhile in the next one', async () => {
    const { base, worker, watcher } = await twoProcesses();
    let release = (): void => {};
    base.state.held = new Promise((resolve) => (release = resolve));
    worker.publish('one', delta('a'));
    await passed();
    for (const letter of 'bcd') {
      worker.publish('one', delta(letter));
      worker.publish('two', delta(letter));
      await passed();
    }
    base.state.held = undefined;
    release();
    await passed();
    expect([base.mostRunning(), base.payloads.length, watcher.text()]).toEqual([1, 2, 'abcd']);
  });

  it('carries each signal once where worker and watcher are one process, also over a connection that listens', async () => {
    const base = database();
    const hub = notifyHub(base.pool);
    const watcher = await watching(hub);
    hub.publish('one', delta('a'));
    expect(watcher.received).toEqual([delta('a')]);
    await passed();
    expect([base.payloads.length, watcher.received]).toEqual([1, [delta('a')]]);
  });

  it.each(['a', 'ü', '€', '😀', '\0', '\ud800'])(
    'carries 100,000 characters of %j in pieces that fit',
    async (letter) => {
      const { base, worker, watcher } = await twoProcesses();
      const text = letter.repeat(100_000 / letter.length);
      worker.publish('one', delta(text));
      worker.publish('one', delta('end'));
      await passed();
      expect(watcher.text() === `${text}end`).toBe(true);
      expect(Math.max(...base.payloads.map(byteLength))).toBeLessThan(8000);
      if (letter === '😀') expect(JSON.stringify(watcher.received)).not.toMatch(/\\ud/);
    },
  );

  it('leaves out what no notification can contain, and shows no reply with a gap', async () => {
    const { worker, watcher, client } = await twoProcesses();
    const progress = {
      type: 'tool-progress',
      runId: 'r',
      callId: 'c',
      elapsedMs: 1,
      update: 'x'.repeat(9000),
    } as const;
    worker.publish('one', { type: 'live', next: 1, signal: progress });
    const long = 'x'.repeat(9000);
    const other = await watching(client, long);
    worker.publish(long, delta('a'));
    worker.publish('one', delta('a'));
    await passed();
    expect([watcher.received, other.received]).toEqual([[delta('a')], []]);
  });

  it('gives whoever begins to watch in the middle a reset and the reply so far, within about a second', async () => {
    const { base, worker, client, watcher } = await twoProcesses();
    for (const letter of 'abc') {
      worker.publish('one', delta(letter));
      await passed();
    }
    const late = await watching(notifyHub(base.pool));
    worker.publish('one', delta('d'));
    await passed();
    expect(late.received).toEqual([]);
    await passed(1000);
    worker.publish('one', delta('e'));
    await passed();
    expect(late.received).toEqual([reset(), delta('abcde')]);
    worker.publish('one', delta('f'));
    await passed();
    expect([late.text(), watcher.text()]).toEqual(['abcdef', 'abcdef']);
    expect(watcher.received).not.toContainEqual(reset());
    // Its process has the reply.
    expect((await watching(client)).received).toEqual([reset(), delta('abcdef')]);
    expect((await watching(worker)).received).toEqual([reset(), delta('abcdef')]);
  });

  it('gives a copy of a long reply whole, and a reply of more than 200,000 characters only to its first watchers', async () => {
    const { base, worker, watcher } = await twoProcesses();
    const page = '0123456789'.repeat(5000);
    worker.publish('one', delta(page));
    await passed(3000);
    const late = await watching(notifyHub(base.pool));
    worker.publish('one', delta('.'));
    await passed();
    expect(late.text() === `${page}.`).toBe(true);
    for (let pages = 1; pages < 5; pages += 1) worker.publish('one', delta(page));
    await passed(30_000);
    const later = await watching(notifyHub(base.pool));
    worker.publish('one', delta('!'));
    await passed();
    expect([later.text(), watcher.text().length, late.text().length]).toEqual(['', 250_002, 250_002]);
    worker.publish('one', { type: 'appended', length: 2 });
    worker.publish('one', delta('next', 2));
    await passed();
    expect(later.text()).toBe('next');
  });

  it('begins the next reply after the entry that ends the one before, and not after any other entry', async () => {
    const { base, worker, watcher } = await twoProcesses();
    worker.publish('one', delta('a', 1));
    worker.publish('one', { type: 'appended', length: 2, isReplyOpen: true });
    await passed(1100);
    const late = await watching(notifyHub(base.pool));
    worker.publish('one', delta('b', 2));
    await passed();
    expect(late.received).toEqual([reset(2), delta('ab', 2)]);
    // The text of the next reply may come before the entry of this one is announced.
    worker.publish('one', delta('c', 3));
    worker.publish('one', { type: 'appended', length: 3 });
    await passed(1100);
    const next = await watching(notifyHub(base.pool));
    worker.publish('one', delta('d', 3));
    await passed();
    expect(next.received).toEqual([reset(3), delta('cd', 3)]);
    worker.publish('one', { type: 'appended', length: 4 });
    await passed(1100);
    expect((await watching(notifyHub(base.pool))).received).toEqual([]);
    expect(watcher.received).not.toContainEqual(reset(3));
  });

  it('removes what it has shown when another worker repeats the reply, and shows no signal of the first one any more', async () => {
    const { base, worker, watcher } = await twoProcesses();
    worker.publish('one', delta('half'));
    await passed();
    const second = notifyHub(base.pool);
    second.publish('one', delta('whole'));
    await passed();
    worker.publish('one', delta(' a'));
    await passed();
    second.publish('one', delta(' reply'));
    await passed();
    expect(watcher.received).toEqual([delta('half'), reset(), delta('whole'), delta(' reply')]);
  });

  it('keeps sub-agents apart: the reset of one removes nothing of another', async () => {
    const { base, worker } = await twoProcesses();
    for (const path of [['a'], ['b']]) worker.publish('one', delta('x', 1, { path }));
    worker.publish('one', { type: 'live', next: 1, signal: { type: 'reset', runId: 'r', path: ['a'] } });
    await passed(1100);
    const late = await watching(notifyHub(base.pool));
    worker.publish('one', delta('y', 1, { path: ['b'] }));
    await passed();
    const resetOfB = { type: 'live', next: 1, signal: { type: 'reset', runId: 'r', path: ['b'] } };
    expect(late.received).toEqual([resetOfB, delta('xy', 1, { path: ['b'] })]);
  });

  it('carries status, state and progress also to whoever has no reply', async () => {
    const { worker, watcher } = await twoProcesses();
    const signals = [
      { type: 'status', status: 'active' },
      { type: 'state', state: { a: 1 } },
      { type: 'tool-progress', runId: 'r', callId: 'c', elapsedMs: 5, update: { waiting: true }, path: ['p'] },
    ] as const;
    for (const signal of signals) worker.publish('one', { type: 'live', next: 1, signal });
    await passed();
    expect(watcher.received).toEqual(signals.map((signal) => ({ type: 'live', next: 1, signal })));
  });
});

describe('a hub that loses signals', () => {
  it('removes a reply with a gap, and shows it whole again', async () => {
    const { base, worker, watcher } = await twoProcesses();
    worker.publish('one', delta('a'));
    await passed();
    base.state.isDown = true;
    worker.publish('one', delta('b'));
    await passed(500);
    worker.publish('one', delta('c'));
    base.state.isDown = false;
    await passed(2000);
    expect(watcher.text()).toBe('a');
    worker.publish('one', delta('d'));
    await passed();
    expect(watcher.received).toEqual([delta('a'), reset(), reset(), delta('abcd')]);
  });

  it('listens again after a lost connection, with a pause while there is no database', async () => {
    const { base, worker, watcher } = await twoProcesses();
    worker.publish('one', delta('a'));
    await passed();
    base.cut();
    worker.publish('one', delta('b'));
    await passed(1100);
    expect(base.listening()).toBe(1);
    worker.publish('one', delta('c'));
    await passed();
    expect(watcher.text()).toBe('abc');
    base.state.isDown = true;
    const before = base.state.connects;
    base.cut();
    await passed(5000);
    expect(base.state.connects - before).toBe(6);
    base.state.isDown = false;
    await passed(1000);
    expect(base.listening()).toBe(1);
    worker.publish('one', { type: 'appended', length: 2 });
    await passed();
    expect(watcher.received.at(-1)).toEqual({ type: 'appended', length: 2 });
  });

  it('asks a database that is down once a second, however much is published', async () => {
    const { base, worker } = await twoProcesses();
    base.state.isDown = true;
    const before = base.state.connects;
    for (let turn = 0; turn < 100; turn += 1) {
      worker.publish('one', turn % 2 === 0 ? delta('a') : { type: 'appended', length: turn });
      await passed(50);
    }
    expect(base.state.connects - before).toBeLessThan(7);
  });

  it('ignores payloads of others', async () => {
    const { base, watcher } = await twoProcesses();
    const hub = 'x';
    const text = { id: 'one', type: 'text', reply: 1, from: 0, next: 1 };
    const of = (signal: unknown) => ({ hub, messages: [{ ...text, signals: [signal] }] });
    const rubbish: unknown[] = [
      ...[null, 1, 'a', [], {}, { hub }, { hub: 1, messages: [] }, { hub, messages: {} }, { hub, messages: [null, 1] }],
      ...[{ hub, messages: [{ id: 'one' }, { id: 1, type: 'appended', length: 1 }] }],
      ...[-1, 1.5, '1', null, 1e300].map((length) => ({ hub, messages: [{ id: 'one', type: 'appended', length }] })),
      ...[null, 'a', {}, { type: 'text-delta' }, { type: 'text-delta', runId: 'r' }].map(of),
      ...[
        { type: 'reset', runId: '' },
        { type: 'status', status: 'gone' },
        { type: 'state', state: [] },
      ].map(of),
      ...[
        { type: 'tool-input-delta', runId: 'r', text: 'a', index: -1 },
        { type: 'new', runId: 'r' },
      ].map(of),
      of({ type: 'text-delta', runId: 'r', text: 'a', path: [1] }),
      { hub, messages: [{ ...text, from: -1, signals: [] }] },
      { hub, messages: [{ ...text, signals: 'a' }] },
      { hub, messages: [{ id: 'one', type: 'so-far', reply: 1, upTo: 1, part: 5, parts: 1, next: 1, signals: [] }] },
      { hub, messages: [{ id: 'one', type: 'single', next: 1 }] },
    ];
    for (const payload of rubbish) base.send(JSON.stringify(payload));
    for (const payload of ['', '{', 'hello', '"', '\0']) base.send(payload);
    expect(watcher.received).toEqual([]);
  });

  it('copies only the fields of a signal, and changes no prototype', async () => {
    const { base, watcher } = await twoProcesses();
    const signal = '{"type":"state","state":{"__proto__":{"bad":1},"a":1},"__proto__":{"bad":1},"more":1}';
    base.send(`{"hub":"x","messages":[{"id":"one","type":"single","next":1,"signal":${signal}}]}`);
    base.send('{"hub":"x","messages":[{"id":"__proto__","type":"appended","length":1}]}');
    expect(JSON.stringify(watcher.received)).toBe(
      '[{"type":"live","next":1,"signal":{"type":"state","state":{"a":1}}}]',
    );
    expect(({} as { bad?: unknown }).bad).toBeUndefined();
  });

  it('lets no watcher that throws keep a signal from another one', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const base = database();
    const hub = notifyHub(base.pool);
    const error = new Error('no');
    hub.subscribe('one', () => {
      throw error;
    });
    const watcher = await watching(hub);
    hub.publish('one', delta('a'));
    expect([watcher.text(), warn.mock.calls]).toEqual(['a', [[{ event: 'subscriber-failed', error }]]]);
    warn.mockRestore();
  });
});

describe('the connection of a hub', () => {
  it('is opened by the first subscription, not by a signal, and kept for all others', async () => {
    const base = database();
    const hub = notifyHub(base.pool);
    hub.publish('one', delta('a'));
    await passed();
    expect([base.listening(), base.state.connects, base.state.released]).toEqual([0, 1, 1]);
    const watchers = [await watching(hub), await watching(hub), await watching(hub, 'two')];
    expect([base.listening(), base.state.connects]).toEqual([1, 2]);
    for (const { leave } of watchers) leave();
    hub.publish('one', delta('b'));
    expect(watchers.map(({ text }) => text())).toEqual(['a', 'a', '']);
  });

  it('is released by close, which ends all timers, and carries nothing afterwards', async () => {
    const { base, worker, client, watcher } = await twoProcesses();
    worker.publish('one', delta('a'));
    await client.close();
    await client.close();
    await worker.close();
    expect([base.listening(), vi.getTimerCount()]).toEqual([0, 0]);
    for (const hub of [worker, client]) {
      hub.publish('one', delta('b'));
      hub.subscribe('one', () => expect.unreachable())();
    }
    await passed(5000);
    expect([base.payloads, watcher.received, base.listening(), vi.getTimerCount()]).toEqual([[], [], 0, 0]);
  });

  it('is also released if it opens after close, and none is awaited while there is no database', async () => {
    const base = database();
    const hub = notifyHub(base.pool);
    hub.subscribe('one', () => undefined);
    await hub.close();
    await passed(0);
    expect([base.state.connects, base.state.released, base.listening()]).toEqual([1, 1, 0]);
    base.state.isDown = true;
    const other = notifyHub(base.pool);
    other.subscribe('one', () => undefined);
    other.publish('one', delta('a'));
    await passed(200);
    await other.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    [undefined, {}],
    [{ query: async () => ({ rows: [] }) }, {}],
    [database().pool, { channel: 'a"; drop' }],
    [database().pool, { channel: '' }],
    [database().pool, { chanel: 'a' }],
  ])('is not made for the pool %j with %j', (pool, options) => {
    expect(() => notifyHub(pool as never, options as never)).toThrow(/notifyHub|channel/);
  });
});
