/**
 * The parts of the PostgreSQL store between its statements, without a database: connections of the pool, followers, live signals, acts
 * and leases. Each is used twice, and is ended in every way.
 */
import { Observable, Subject } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Live } from '../../../src/live.ts';
import type { Act } from '../../../src/stores/logStore.ts';
import { Database, type PostgresPool } from '../../../src/stores/postgres/database.ts';
import { Followers } from '../../../src/stores/postgres/followers.ts';
import { type Hint, Hints } from '../../../src/stores/postgres/hints.ts';
import { TakenActs } from '../../../src/stores/postgres/holderActs.ts';
import { type LeaseHolder, Leases } from '../../../src/stores/postgres/leases.ts';
import { LiveFeed } from '../../../src/stores/postgres/liveFeed.ts';
import type { Statements } from '../../../src/stores/postgres/statements.ts';
import { timeOf } from '../../../src/stores/postgres/storeTime.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

type Answer = Record<string, unknown>[] | Error;
/** Each statement by its name. */
const statements = new Proxy({}, { get: (_, name) => String(name) }) as Statements;

/** A pool that answers each statement by a function, and records the state of its connections. */
function poolOf(answer: (text: string, values: readonly unknown[]) => Answer | Promise<Answer>) {
  const released: (boolean | undefined)[] = [];
  const listeners = new Map<string, Set<(value: { payload?: string }) => void>>();
  const listenersOf = (event: string) => {
    const registered = listeners.get(event) ?? new Set();
    listeners.set(event, registered);
    return registered;
  };
  const query = async (text: string, values: readonly unknown[] = []) => {
    const rows = await answer(text, values);
    if (rows instanceof Error) throw rows;
    return { rows };
  };
  const connect = async () => ({
    query,
    release: (isBroken?: boolean) => void released.push(isBroken),
    on: (event: string, listener: (value: object) => void) => void listenersOf(event).add(listener),
    off: (event: string, listener: (value: object) => void) => void listenersOf(event).delete(listener),
  });
  const emit = (event: string, value: { payload?: string } = {}): void => {
    for (const listener of [...listenersOf(event)]) listener(value);
  };
  const pool = { query, connect } as PostgresPool;
  const count = (event: string): number => listenersOf(event).size;
  return { database: new Database(pool), released, emit, count };
}
const lost = (): Error => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
const refused = (): Error => Object.assign(new Error('no such table'), { code: '42P01' });

describe('a connection', () => {
  it.each<[string, Answer, boolean]>([
    ['that answers goes back to the pool', [], false],
    ['that refuses a statement goes back to the pool', refused(), false],
    ['that is lost leaves the pool', lost(), true],
  ])('%s', async (_, rows, isBroken) => {
    const { database, released } = poolOf(() => rows);
    await database.query('select 1').catch(() => undefined);
    expect(released).toEqual([isBroken]);
  });

  it('that does not answer in time leaves the pool, and its later answer changes nothing', async () => {
    let answers = (_: Answer): void => undefined;
    const { database, released } = poolOf(
      () =>
        new Promise((resolve) => {
          answers = resolve;
        }),
    );
    const asked = expect(database.query('select 1', [], 100)).rejects.toThrow('100 ms');
    await vi.advanceTimersByTimeAsync(100);
    await asked;
    answers([]);
    await vi.advanceTimersByTimeAsync(100);
    expect(released).toEqual([true]);
  });

  const hintsOf = (pool: ReturnType<typeof poolOf>, receive: (hint: Hint) => void = () => undefined): Hints =>
    new Hints(pool.database, statements, 'channel', receive);
  const listening = (text: string): Answer => (text.startsWith('listen') ? [] : []);

  it.each(['close', 'error', 'end'] as const)(
    'that listens leaves the pool after its %s, with its listeners, since it would still listen there',
    async (way) => {
      const pool = poolOf(listening);
      const received: Hint[] = [];
      const hints = hintsOf(pool, (hint) => void received.push(hint));
      hints.listen();
      await vi.advanceTimersByTimeAsync(0);
      pool.emit('notification', { payload: '{"act":"c"}' });
      expect([hints.isListening, received]).toEqual([true, [{ act: 'c' }]]);
      // A query of its own has the listener for errors that every connection keeps.
      const kept = pool.count('error') - 1;
      if (way === 'close') hints.close();
      else pool.emit(way);
      expect(pool.released).toEqual([true]);
      expect([pool.count('notification'), pool.count('error'), pool.count('end')]).toEqual([0, kept, 0]);
      await vi.advanceTimersByTimeAsync(2_000);
      // It listens again unless it was closed.
      expect([hints.isListening, pool.count('notification')]).toEqual(way === 'close' ? [false, 0] : [true, 1]);
      hints.close();
      expect(pool.released).toEqual(way === 'close' ? [true] : [true, true]);
    },
  );

  it.each<[string, Answer]>([
    ['was just made', []],
    ['cannot listen', refused()],
    ['is lost meanwhile', lost()],
  ])('that %s while its store is closed leaves the pool, and no other one is made', async (_, rows) => {
    let answer = (_: Answer): void => undefined;
    let tries = 0;
    const pool = poolOf(() => {
      tries += 1;
      return new Promise<Answer>((resolve) => {
        answer = resolve;
      });
    });
    const hints = hintsOf(pool);
    hints.listen();
    await vi.advanceTimersByTimeAsync(0);
    hints.close();
    answer(rows);
    await vi.advanceTimersByTimeAsync(5_000);
    expect([tries, pool.released, hints.isListening, pool.count('notification')]).toEqual([1, [true], false, 0]);
  });

  it.each<[string, (text: string) => Answer | Promise<Answer>]>([
    ['answers', listening],
    ['is silent', () => new Promise(() => undefined)],
  ])('that is made after its store was closed leaves the pool, also if the database %s', async (_, answer) => {
    let connected = (): void => undefined;
    const pool = poolOf(answer);
    const made = pool.database.connect.bind(pool.database);
    const ready = new Promise<void>((resolve) => {
      connected = resolve;
    });
    pool.database.connect = async () => {
      await ready;
      return made();
    };
    const hints = hintsOf(pool);
    hints.listen();
    hints.close();
    connected();
    await vi.advanceTimersByTimeAsync(5_000);
    expect([pool.released, hints.isListening, pool.count('notification')]).toEqual([[true], false, 0]);
  });

  it('that cannot listen leaves the pool, and the next one is tried', async () => {
    let tries = 0;
    const pool = poolOf((text) => {
      tries += 1;
      return tries < 3 ? refused() : listening(text);
    });
    const hints = hintsOf(pool);
    hints.listen();
    await vi.advanceTimersByTimeAsync(2_500);
    expect([hints.isListening, tries, pool.released]).toEqual([true, 3, [true, true]]);
    hints.close();
    expect(pool.released).toEqual([true, true, true]);
  });
});

const delta = (text: string): Live => ({ type: 'text-delta', runId: 'r', text });

describe('live signals of a holder', () => {
  function feeding() {
    const sent: string[] = [];
    const live$ = new Subject<Live>();
    const hints = {
      time: timeOf({}),
      send: (hint: Hint) => void ('signals' in hint && sent.push(...hint.signals.map((each) => textIn(each)))),
    };
    const feed = new LiveFeed('c', hints as unknown as Hints, live$, () => 1);
    return { feed, live$, sent };
  }
  const textIn = (signal: Live): string => ('text' in signal ? signal.text : signal.type);

  it.each([
    [[0], 100],
    [[0, 90], 190],
    [[0, 40, 80, 120], 220],
    [[0, 500], 600],
  ])('are sent for the whole time of the last of the followings at %j ms, until %i ms', async (times, until) => {
    const { feed, live$, sent } = feeding();
    const heard = new Set<number>();
    for (let now = 0; now <= until + 100; now += 10) {
      if (times.includes(now)) feed.follow(100, false);
      live$.next(delta(`${now} `));
      if (feed.isFollowed) heard.add(now);
      await vi.advanceTimersByTimeAsync(10);
    }
    const followed = (now: number): boolean => times.some((at) => at <= now && now < at + 100);
    const expected = Array.from({ length: until / 10 + 11 }, (_, index) => index * 10).filter(followed);
    expect([...heard]).toEqual(expected);
    expect(live$.observed).toBe(false);
    // Signals that waited when a following ended are not sent, also not with the next one.
    const numbers = sent.join('').trim().split(' ').map(Number);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    expect(numbers.filter((now) => !followed(now))).toEqual([]);
  });
});

describe('a follower that joins during a reply', () => {
  const PIECES = ['a', 'b', 'c', 'd'];
  const TIMES = PIECES.flatMap((_, second) => PIECES.slice(0, second + 1).map((__, first) => [first, second] as const));

  it.each(TIMES)('has its whole text, the first after %i pieces and the second after %i', async (first, second) => {
    const pieces = new Subject<Live>();
    let text = '';
    const live$ = new Observable<Live>((subscriber) => {
      if (text !== '') subscriber.next(delta(text));
      return pieces.subscribe(subscriber);
    });
    const sent: Live[] = [];
    const send = (hint: Hint): void => void ('signals' in hint && sent.push(...hint.signals));
    const feed = new LiveFeed('c', { time: timeOf({}), send } as unknown as Hints, live$, () => 1);
    const begun: number[] = [];
    for (const [at, piece] of PIECES.entries()) {
      for (const time of [first, second].filter((each) => each === at)) {
        begun[begun.length] = sent.length;
        feed.follow(60_000, true);
        // A follower that continues needs no text again.
        if (time > 0) feed.follow(60_000, false);
      }
      text += piece;
      pieces.next(delta(piece));
      if (at % 2 === 1) await vi.advanceTimersByTimeAsync(100);
    }
    await vi.advanceTimersByTimeAsync(100);
    const textOf = (signals: readonly Live[]): string =>
      signals.reduce((so, signal) => (signal.type === 'reset' ? '' : 'text' in signal ? so + signal.text : so), '');
    expect(begun.map((from) => textOf(sent.slice(from)))).toEqual(['abcd', 'abcd']);
    expect(sent.filter(({ type }) => type === 'reset').length).toBeLessThanOrEqual(2);
    feed.stop();
  });
});

function following() {
  const entries: { [id: string]: number } = {};
  const away: { [way in 'hangs' | 'fails']?: boolean } = {};
  const { database } = poolOf((text, [ids]) =>
    away.hangs
      ? new Promise<never>(() => {})
      : away.fails
        ? lost()
        : text === 'states'
          ? String(ids)
              .split(',')
              .map((id) => ({ id: id.replace(/[{}"]/g, ''), length: entries.a ?? 1, held: true, cycle: 'idle' }))
          : text === 'read'
            ? [
                {
                  seq: 0,
                  entry: '{"seq":0,"at":0,"conversationId":"a","runId":null,"type":"notice","code":"x","text":""}',
                },
              ]
            : [],
  );
  const hints = { listen: () => undefined, send: () => undefined, isListening: true } as unknown as Hints;
  const options = { database, statements, hints, leaseMs: 60_000, ready: async () => undefined, takesOver: false };
  return { followers: new Followers(options), entries, away };
}

describe('followers of conversations', () => {
  const MOMENTS = ['before its first item', 'while it waits for an item', 'while another one follows'] as const;
  it.each(MOMENTS)('a follower that stops %s ends at once, and the other follower continues', async (moment) => {
    const { followers } = following();
    const other = moment === 'while another one follows' ? followers.follow('a', 1) : undefined;
    const waiting = other?.next();
    const follower = followers.follow('a', 1);
    const next = follower.next();
    if (moment !== 'before its first item') await vi.advanceTimersByTimeAsync(10);
    const ends: unknown[] = [];
    void next.then((end) => ends.push(end.done));
    void follower.return?.().then((end) => ends.push(end.done));
    await vi.advanceTimersByTimeAsync(10);
    expect(ends).toEqual([true, true]);
    if (!other) return expect(vi.getTimerCount()).toBe(0);
    followers.signalled('a', 1, [delta('x')]);
    expect(await waiting).toEqual({ done: false, value: delta('x') });
    await other.return?.();
    await vi.advanceTimersByTimeAsync(10);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    ['follow', 10],
    ['have just begun', 0],
  ])('all of them end with the store, also those that %s', async (_, ms) => {
    const { followers } = following();
    const pending = ['a', 'a', 'b'].map((id) => followers.follow(id, 1).next());
    if (ms > 0) await vi.advanceTimersByTimeAsync(ms);
    followers.close();
    await vi.advanceTimersByTimeAsync(10);
    expect(await Promise.all(pending)).toEqual(pending.map(() => ({ done: true, value: undefined })));
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('followers of a process without a database', () => {
  it.each(['hangs', 'fails'] as const)('end after half a lease in which it %s, and not before', async (way) => {
    const { followers, away } = following();
    const codes: unknown[] = [];
    for (const id of ['a', 'b'])
      void followers
        .follow(id, 1)
        .next()
        .catch(({ code }) => codes.push(code));
    await vi.advanceTimersByTimeAsync(90_000);
    away[way] = true;
    await vi.advanceTimersByTimeAsync(29_900);
    expect(codes).toEqual([]);
    await vi.advanceTimersByTimeAsync(2_200);
    expect(codes).toEqual(['unavailable', 'unavailable']);
  });

  it('that come later do not end for a failure before them', async () => {
    const { followers, away } = following();
    const first = followers.follow('a', 1);
    void first.next();
    await vi.advanceTimersByTimeAsync(10);
    away.fails = true;
    await vi.advanceTimersByTimeAsync(5_000);
    await first.return?.();
    await vi.advanceTimersByTimeAsync(60_000);
    away.fails = false;
    // The database is slow.
    let end: unknown;
    followers
      .follow('a', 1)
      .next()
      .catch((error) => {
        end = error;
      });
    away.hangs = true;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(end).toBeUndefined();
  });

  it('go on where the database answers again in time', async () => {
    const { followers, away } = following();
    let hasEnded = false;
    const end = (): void => {
      hasEnded = true;
    };
    followers.follow('a', 1).next().then(end, end);
    await vi.advanceTimersByTimeAsync(10);
    for (let time = 0; time < 3; time += 1) {
      away.fails = true;
      await vi.advanceTimersByTimeAsync(25_000);
      away.fails = false;
      await vi.advanceTimersByTimeAsync(3_000);
    }
    expect(hasEnded).toBe(false);
  });
});

describe('acts that others ask', () => {
  it('reach the handle that was opened last, whatever becomes of an earlier one', async () => {
    const act = { type: 'resume', actId: 'one' } as unknown as Act;
    let rows: Record<string, unknown>[] = [];
    const { database } = poolOf((text) => (text === 'claimActs' ? rows.splice(0) : []));
    const hints = { listen: () => undefined, isListening: true } as unknown as Hints;
    const acts = new TakenActs({ database, statements, hints });
    const received: string[] = [];
    const open = (name: string, epoch: number) =>
      acts.of({ id: 'c', epoch }).subscribe(({ actId }) => received.push(`${name} ${actId}`));
    const first = open('first', 1);
    const second = open('second', 2);
    first.unsubscribe();
    rows = [{ act_id: 'one', conversation: 'c', act: JSON.stringify(act), place: 1 }];
    acts.came('c');
    await vi.advanceTimersByTimeAsync(10);
    expect(received).toEqual(['second one']);
    second.unsubscribe();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('the lease of a process without a database', () => {
  it.each([
    [0, 10],
    [100, 10],
    [290, 10],
    [0, 1_500],
  ])('is over when it is over there, if the last renewal took %i ms and failures take %i ms', async (takes, fails) => {
    const begun = performance.now();
    const after = (): number => Math.round(performance.now() - begun);
    let renewals = 0;
    const { database } = poolOf(async () => {
      renewals += 1;
      const isFirst = renewals === 1;
      await new Promise((resolve) => setTimeout(resolve, isFirst ? takes : fails));
      return isFirst ? [{ id: 'c' }] : lost();
    });
    const leases = new Leases(database, statements, 900);
    let lostAt = 0;
    const holder = { id: 'c', epoch: 1, isFencing: false, liveFeed: undefined, close: async () => undefined };
    const lose = (): void => {
      lostAt = after();
    };
    leases.add({ ...holder, lose } as LeaseHolder, begun);
    await vi.advanceTimersByTimeAsync(3_000);
    // The last renewal was sent at 300.
    expect(lostAt).toBe(1_200);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is not taken for held because of an answer from before the process stalled', async () => {
    let answer: (rows: { id: string }[]) => void = () => {};
    let isLater = false;
    const { database } = poolOf(() => (isLater ? [] : new Promise<{ id: string }[]>((resolve) => (answer = resolve))));
    const leases = new Leases(database, statements, 900);
    const lose = vi.fn();
    const begun = performance.now();
    leases.add({ id: 'c', epoch: 1, isFencing: false, liveFeed: undefined, lose, close: async () => undefined }, begun);
    const renewed = leases.renew();
    await Promise.resolve();
    vi.spyOn(performance, 'now').mockReturnValue(begun + 5_000);
    const held = leases.stillHolds('c');
    isLater = true;
    answer([{ id: 'c' }]);
    await renewed;
    expect([await held, lose.mock.calls.length]).toEqual([false, 1]);
    vi.restoreAllMocks();
  });

  it('is no longer than it was where a renewal leaves it out, and is longer after an append', async () => {
    const { database } = poolOf((text) => (text === 'renew' ? [] : [{ id: 'c' }]));
    const leases = new Leases(database, statements, 900);
    const lose = vi.fn();
    const begun = performance.now();
    const holder: LeaseHolder = {
      ...{ id: 'c', epoch: 1, isFencing: false, liveFeed: undefined, lose, close: async () => undefined },
    };
    leases.add(holder, begun);
    const now = vi.spyOn(performance, 'now').mockReturnValue(begun + 600);
    await leases.renew();
    expect(lose).not.toHaveBeenCalled();
    now.mockReturnValue(begun + 1_000);
    expect(await leases.stillHolds('c')).toBe(false);
    leases.renewed(holder, begun + 600);
    expect(await leases.stillHolds('c')).toBe(true);
    leases.delete(holder);
    vi.restoreAllMocks();
  });

  it('is taken for held without a question until nine tenths of it are over, and then the database is asked', async () => {
    const asked: string[] = [];
    const { database } = poolOf((text) => {
      asked.push(text);
      return [];
    });
    const leases = new Leases(database, statements, 900);
    const lose = vi.fn();
    const begun = performance.now();
    leases.add({ id: 'c', epoch: 1, isFencing: false, liveFeed: undefined, lose, close: async () => undefined }, begun);
    expect(await leases.stillHolds('other')).toBe(false);
    expect([await leases.stillHolds('c'), asked.length]).toEqual([true, 0]);
    // The process stalls: time passes, and no timer fires.
    vi.spyOn(performance, 'now').mockReturnValue(begun + 811);
    expect([await leases.stillHolds('c'), asked.length, lose.mock.calls.length]).toEqual([false, 2, 1]);
    expect(vi.getTimerCount()).toBe(0);
    vi.restoreAllMocks();
  });

  it.each([
    ['the renewal', 'renew', false, 0],
    ['the question after it', 'held', false, 0],
    ['neither', undefined, false, 1],
    ['neither, while a lost answer is looked into', undefined, true, 0],
  ])(
    'is lost where the database denies its number, unless the number changes during %s',
    async (_, during, isFencing, times) => {
      const lose = vi.fn();
      const holder = { id: 'c', epoch: 1, isFencing, liveFeed: undefined, lose, close: async () => undefined };
      const { database } = poolOf((text) => {
        if (text === during) holder.epoch += 1;
        return [];
      });
      const leases = new Leases(database, statements, 900);
      leases.add(holder, performance.now());
      await leases.renew();
      expect(lose).toHaveBeenCalledTimes(times);
      leases.delete(holder);
    },
  );
});
