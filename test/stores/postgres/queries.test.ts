/**
 * Statements of the PostgreSQL store, without a database: the failures that are retried and the number of attempts, the state of the
 * connection and the transaction, the written texts, and the wait for an act of another process.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RunchartError } from '../../../src/errors.ts';
import {
  arrayText,
  Database,
  isAnswerLost,
  isTransient,
  type PostgresPool,
  storeError,
} from '../../../src/stores/postgres/database.ts';
import { type Hint, Hints } from '../../../src/stores/postgres/hints.ts';
import { AskedActs } from '../../../src/stores/postgres/holderActs.ts';
import { checkKey, ownerText, placeText, sha256Of } from '../../../src/stores/postgres/identifiers.ts';
import { quotedSchema } from '../../../src/stores/postgres/migrations.ts';
import type { Statements } from '../../../src/stores/postgres/statements.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const errorOf = (code?: string): Error => Object.assign(new Error(`failed ${code}`), code !== undefined && { code });

/** By hand: whether the answer was lost, and whether the statement may succeed the next time. */
const FAILURES: readonly (readonly [code: string | undefined, isLost: boolean, isPassing: boolean])[] = [
  [undefined, true, false],
  ['ECONNRESET', true, false],
  ['EPIPE', true, false],
  ['08000', true, false],
  ['08006', true, false],
  ['57P01', true, false],
  ['57P03', true, false],
  ['57014', false, false],
  ['40001', false, true],
  ['40P01', false, true],
  ['55P03', false, true],
  ['25006', false, true],
  ['40002', false, false],
  ['23505', false, false],
  ['42P01', false, false],
  ['53100', false, false],
];

/** A pool that answers each statement with the next of these answers; the last one is repeated. */
function poolOf(answer: (text: string, values: readonly unknown[]) => Promise<Record<string, unknown>[]>) {
  const asked: string[] = [];
  const released: (boolean | undefined)[] = [];
  const query = async (text: string, values: readonly unknown[] = []) => {
    asked.push(text);
    return { rows: await answer(text, values) };
  };
  const connect = async () => ({ query, release: (isBroken?: boolean) => void released.push(isBroken) });
  return { database: new Database({ query, connect } as PostgresPool), asked, released };
}
const settle = async <T>(promise: Promise<T>): Promise<T | string> => {
  const ended = promise.catch((error: Error) => error.message);
  await vi.advanceTimersByTimeAsync(20_000);
  return ended;
};

describe('a statement that fails', () => {
  it.each(FAILURES)(
    'with %s: its answer is lost: %s, it may succeed the next time: %s',
    async (code, isLost, isPassing) => {
      const error = errorOf(code);
      expect([isAnswerLost(error), isTransient(error)]).toEqual([isLost, isPassing]);
      for (const fails of [1, 3, 4]) {
        const { database, asked, released } = poolOf(async () => {
          if (asked.length <= fails) throw error;
          return [{ n: 1 }];
        });
        const isRepeated = isLost || isPassing;
        const ended = await settle(database.repeat('select 1'));
        // Four attempts at most.
        expect(ended).toEqual(isRepeated && fails < 4 ? [{ n: 1 }] : error.message);
        const attempts = isRepeated ? Math.min(4, fails + 1) : 1;
        expect(asked).toHaveLength(attempts);
        // A connection whose answer was lost leaves the pool.
        const last = isRepeated && fails < 4 ? [false] : [isLost];
        expect(released).toEqual([...Array.from({ length: attempts - 1 }, () => isLost), ...last]);
      }
    },
  );

  it('is not repeated by `query`, and an error of the library is not one of the database', async () => {
    const { database, asked } = poolOf(() => Promise.reject(errorOf('ECONNRESET')));
    expect(await settle(database.query('select 1'))).toBe('failed ECONNRESET');
    expect(asked).toHaveLength(1);
    const own = new RunchartError('not_found', 'why');
    expect([isAnswerLost(own), isTransient(own), storeError('what', own)]).toEqual([false, false, own]);
    expect(storeError('what', errorOf('23505'))).toMatchObject({ code: 'store', message: 'what: failed 23505' });
    expect([isAnswerLost(null), isTransient(null), isTransient({ code: 40001 })]).toEqual([true, false, false]);
  });
});

describe('a statement that may be repeated', () => {
  it.each([
    ['a lost connection', 'ECONNRESET', 4],
    ['a connection error of the server', '08006', 4],
    ['a server that is shut down', '57P01', 4],
    ['a conflict', '40001', 4],
    ['a deadlock', '40P01', 4],
    ['a lock that is not available', '55P03', 4],
    ['a server that is only read', '25006', 4],
    ['a full disk', '53100', 1],
    ['a statement that was cancelled', '57014', 1],
  ])('that fails with %s (%s) is sent %i times, also as a transaction', async (_, code, times) => {
    const { database, asked } = poolOf(async (text) => {
      if (text === 'x') throw errorOf(code);
      return [];
    });
    const failed = expect(database.repeat('x')).rejects.toMatchObject({ code });
    await vi.advanceTimersByTimeAsync(10_000);
    await failed;
    expect(asked).toEqual(Array(times).fill('x'));
    const transaction = expect(database.transaction(({ query }) => query('x'))).rejects.toMatchObject({ code });
    await vi.advanceTimersByTimeAsync(10_000);
    await transaction;
    expect(asked.slice(times)).toEqual(Array(times).fill(['begin', 'x', 'rollback']).flat());
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is sent again until it is answered, and a transaction as a whole', async () => {
    let failures = 2;
    const { database, asked } = poolOf(async (text) => {
      if (text !== 'x' || failures === 0) return [{ text }];
      failures -= 1;
      throw errorOf('ECONNRESET');
    });
    const found = database.repeat('x');
    await vi.advanceTimersByTimeAsync(10_000);
    expect([await found, asked]).toEqual([[{ text: 'x' }], ['x', 'x', 'x']]);
    failures = 1;
    const done = database.transaction(async (connection) => (await connection.query('x')).rows);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await done).toEqual([{ text: 'x' }]);
    expect(asked.slice(3)).toEqual(['begin', 'x', 'rollback', 'begin', 'x', 'commit']);
  });

  it('a connection that arrives too late goes back to the pool unused', async () => {
    const released: unknown[] = [];
    const query = vi.fn();
    let arrive = (_: unknown): void => {};
    const connect = () => new Promise((resolve) => (arrive = resolve));
    const database = new Database({ query, connect } as PostgresPool);
    const failed = expect(database.query('x', [], 500)).rejects.toThrow('500 ms');
    await vi.advanceTimersByTimeAsync(500);
    await failed;
    arrive({ query, release: (isBroken?: boolean) => released.push(isBroken) });
    await vi.advanceTimersByTimeAsync(0);
    expect([released, query.mock.calls]).toEqual([[undefined], []]);
  });
});

describe('a transaction', () => {
  it('is committed, or rolled back and tried again as a whole', async () => {
    for (const [code, fails, expected] of [
      [undefined, 0, 'done'],
      ['40001', 2, 'done'],
      ['40001', 4, 'failed 40001'],
      ['23505', 1, 'failed 23505'],
    ] as const) {
      let acts = 0;
      const { database, asked, released } = poolOf(async (text) => {
        if (text === 'act' && acts <= fails) throw errorOf(code);
        return [];
      });
      const ended = await settle(
        database.transaction(async (connection) => {
          acts += 1;
          await connection.query('act');
          return 'done';
        }),
      );
      const attempts = expected === 'done' ? fails + 1 : Math.min(4, fails);
      const failed = ['begin', 'act', 'rollback'];
      const all = Array.from({ length: attempts }, () => failed).flat();
      expect([ended, asked]).toEqual([
        expected,
        expected === 'done' ? [...all.slice(3), 'begin', 'act', 'commit'] : all,
      ]);
      expect(released).toEqual(Array.from({ length: attempts }, () => false));
    }
  });

  it('whose commit has no answer is rolled back, and its connection leaves the pool', async () => {
    const { database, asked, released } = poolOf(async (text) => {
      if (text === 'commit' && asked.length < 4) throw errorOf('ECONNRESET');
      return [];
    });
    expect(await settle(database.transaction(async () => 'done'))).toBe('done');
    expect([asked, released]).toEqual([
      ['begin', 'commit', 'rollback', 'begin', 'commit'],
      [true, false],
    ]);
  });
});

describe('a text for the database', () => {
  it.each<[string[], string]>([
    [[], '{}'],
    [['a'], '{"a"}'],
    [['', 'null', ' '], '{"","null"," "}'],
    [['a,b', '{c}'], '{"a,b","{c}"}'],
    [['a"b', 'c\\d', '\\"'], '{"a\\"b","c\\\\d","\\\\\\""}'],
  ])('of the list %j is %s', (values, text) => expect(arrayText(values)).toBe(text));

  it('of ids is in the order in which JavaScript compares them', () => {
    const ids = ['', 'A', 'a', 'a\u0000', 'aa', 'é', '\ufffd', '🎉', 'z'];
    const sorted = [...ids].sort();
    expect([...ids].sort((a, b) => (placeText(a) < placeText(b) ? -1 : 1))).toEqual(sorted);
    expect([placeText(''), placeText('aé🎉')]).toEqual(['', '006100e9d83cdf89']);
  });

  it.each<[string, boolean]>([
    ['a', true],
    ['x'.repeat(500), true],
    ['x'.repeat(501), false],
    ['', false],
    ['a\0', false],
    ['\ud83c', false],
    ['🎉\n/..', true],
  ])('%#: an id is possible: %s', (id, isPossible) => {
    if (isPossible) expect(() => checkKey(id)).not.toThrow();
    else expect(() => checkKey(id)).toThrow('ids of 1 to 500 characters');
  });

  it('of an owner is JSON of at most 1,000 characters', () => {
    expect([ownerText('a"b\0'), ownerText('')]).toEqual(['"a\\"b\\u0000"', '""']);
    expect(ownerText('x'.repeat(998))).toHaveLength(1_000);
    expect(() => ownerText('x'.repeat(999))).toThrow('at most 1000');
    expect(() => ownerText('"'.repeat(500))).toThrow('at most 1000');
  });

  it.each<[unknown, boolean]>([
    ['a', true],
    ['_a1', true],
    ['x'.repeat(40), true],
    ['x'.repeat(41), false],
    ['1a', false],
    ['A', false],
    ['pg_a', false],
    ['pga', true],
    ['', false],
    [7, false],
  ])('the schema %j is possible: %s', (schema, isPossible) => {
    if (isPossible) expect(quotedSchema(schema)).toBe(`"${schema}"`);
    else expect(() => quotedSchema(schema)).toThrow('schema takes');
  });

  it('of bytes is their SHA-256', async () => {
    const empty = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
    expect(await sha256Of(new Uint8Array(0))).toBe(empty);
  });
});

describe('a hint', () => {
  it('is sent while it fits and the store is open, and a failure to send it changes nothing', async () => {
    const { database, asked } = poolOf(() => Promise.reject(errorOf('42501')));
    const hints = new Hints(database, { notify: 'notify' } as unknown as Statements, 'channel', () => undefined);
    const ofLength = (length: number): Hint => ({ act: 'x'.repeat(length - '{"act":""}'.length) });
    hints.send(ofLength(7_900));
    hints.send(ofLength(7_901));
    hints.send({ act: 'é'.repeat(3_946) });
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toHaveLength(1);
    hints.close();
    hints.close();
    hints.send({ act: 'c' });
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toHaveLength(1);
  });

  it('of a pool with one connection is never listened for', async () => {
    const connect = vi.fn(async () => ({ query: async () => ({ rows: [] }) }));
    const pool = { query: async () => ({ rows: [] }), connect, options: { max: 1 } };
    const hints = new Hints(new Database(pool), { notify: 'n' } as unknown as Statements, 'channel', () => undefined);
    hints.listen();
    await vi.advanceTimersByTimeAsync(100);
    expect([connect.mock.calls.length, hints.isListening]).toEqual([0, false]);
  });
});

describe('an act that another process is asked for', () => {
  const OPEN = { same: true, open: true, held: true, under_way: false, answer: null };
  /** `states`: the state of the act at each time in milliseconds; undefined where it has no row. */
  function asking(stateAt: (ms: number) => object | undefined, canWithdraw = true) {
    const from = performance.now();
    const sent: Hint[] = [];
    const { database, asked } = poolOf(async (text) => {
      if (text === 'actState') {
        const state = stateAt(performance.now() - from);
        return state ? [state as Record<string, unknown>] : [];
      }
      return text === 'withdrawAct' && canWithdraw ? [{ act_id: 'a' }] : [];
    });
    const hints = { listen: () => undefined, send: (hint: Hint) => void sent.push(hint), isListening: false };
    const statements = new Proxy({}, { get: (_, name) => String(name) }) as Statements;
    const acts = new AskedActs({ database, statements, hints: hints as unknown as Hints });
    const ended: (readonly [number, unknown])[] = [];
    const at = (): number => Math.round((performance.now() - from) / 100) * 100;
    const ask = (actId: unknown = 'a'): void => {
      acts.ask('c', { actId } as never).then(
        (value) => ended.push([at(), value]),
        (error: { code: string }) => ended.push([at(), error.code]),
      );
    };
    return { acts, ask, ended, asked, sent };
  }

  it.each<[string, (ms: number) => object | undefined, number, unknown]>([
    ['its value', (ms) => ({ ...OPEN, answer: ms < 1_000 ? null : '{"value":{"n":0}}' }), 1_100, { n: 0 }],
    ['a value of null', () => ({ ...OPEN, answer: '{"value":null}' }), 0, null],
    ['the error of the holder', () => ({ ...OPEN, answer: '{"error":{"code":"busy","message":"m"}}' }), 0, 'busy'],
    ['that nobody has it', () => undefined, 0, 'unavailable'],
    ['that it belongs to another conversation', () => ({ ...OPEN, same: false }), 0, 'configuration'],
    ['that nobody holds the conversation', () => ({ ...OPEN, held: false }), 0, 'unavailable'],
    ['that nobody has begun in time', (ms) => ({ ...OPEN, open: ms < 5_000 }), 5_100, 'unavailable'],
    [
      'after it has begun, its value',
      (ms) => ({ ...OPEN, open: false, under_way: true, answer: ms < 30_000 ? null : '{"value":1}' }),
      30_000,
      1,
    ],
    [
      'after a minute, that there is no answer',
      () => ({ ...OPEN, open: false, under_way: true }),
      60_200,
      'unavailable',
    ],
  ])('learns %s', async (_, stateAt, ms, outcome) => {
    const { ask, ended, sent, asked } = asking(stateAt);
    ask();
    await vi.advanceTimersByTimeAsync(70_000);
    expect(ended.map(([, value]) => value)).toEqual([outcome]);
    expect(Math.abs((ended[0]?.[0] ?? -1) - ms)).toBeLessThanOrEqual(200);
    expect(sent).toEqual([{ act: 'c' }]);
    expect(asked[0]).toBe('putAct');
    expect(vi.getTimerCount()).toBeLessThanOrEqual(1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is awaited on where it cannot be withdrawn, because a holder has just begun', async () => {
    const { ask, ended } = asking((ms) => ({ ...OPEN, open: false, answer: ms < 2_000 ? null : '{"value":7}' }), false);
    ask();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(ended.map(([, value]) => value)).toEqual([7]);
  });

  it('is read at once after a hint about it, and not after a hint about another act', async () => {
    let isAnswered = false;
    const { acts, ask, ended } = asking(() => ({ ...OPEN, answer: isAnswered ? '{"value":1}' : null }));
    ask();
    await vi.advanceTimersByTimeAsync(1_000);
    isAnswered = true;
    acts.answered('other');
    await vi.advanceTimersByTimeAsync(1);
    const before = ended.length;
    acts.answered('a');
    await vi.advanceTimersByTimeAsync(1);
    expect([before, ended.length]).toEqual([0, 1]);
    acts.answered('a');
  });

  it.each([undefined, '', 7, 'x'.repeat(201), 'a\0', '\ud83c'])('needs an id: %j is none', async (actId) => {
    const { ask, ended, asked } = asking(() => OPEN);
    ask(actId === undefined ? null : actId);
    await vi.advanceTimersByTimeAsync(10);
    expect([ended.map(([, code]) => code), asked]).toEqual([['configuration'], []]);
  });
});
