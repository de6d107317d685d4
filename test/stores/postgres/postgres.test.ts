/**
 * Tests the PostgreSQL store with PGlite: the store suite, lost connections and answers, leases, and the making of its tables. A
 * connection that is lost rejects the statement; the database may have carried it out before, later or never.
 */
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { LogHandle, LogStore } from '../../../src/index.ts';
import { type PostgresPool, postgresStore } from '../../../src/stores/postgres/postgresStore.ts';
import { logStoreSuite, type SuiteRunner } from '../../../src/testing/storeSuite/logStoreSuite.ts';
import { all, conversation, notice, notices, stored } from '../../../src/testing/storeSuite/storeCase.ts';
import { emptySchema, type Intercept, pglitePool } from '../../support/pglitePool.ts';
import { codeOf, STORE_ACTS } from '../../support/secondTimesOfStores.ts';
import { chance } from '../../support/seededChance.ts';
import { sourceSeed } from '../../support/sourceSeed.ts';
import { sampled, volume } from '../../support/tier.ts';

// One database serves all of these tests: it takes seconds to start.
import './agentsOfProcesses.ts';
import './usesOfStore.ts';
import './followersAndActs.ts';
import './statementsAsModelled.ts';

describe('a process', () => {
  const opened: ReturnType<typeof postgresStore>[] = [];
  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close().catch(() => undefined);
    await emptySchema('tests').catch(() => undefined);
  });

  /** A store of a process of its own. */
  function storeOf(intercept?: Intercept, options: { leaseMs?: number } = {}): ReturnType<typeof postgresStore> {
    const store = postgresStore(pglitePool(intercept), { schema: 'tests', ...options });
    opened.push(store);
    return store;
  }
  const connectionLost = (): Error => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  const diskFull = (): Error => Object.assign(new Error('no space left on device'), { code: '53100' });
  const is = {
    append: (text: string) => text.includes('insert into "tests".entries'),
    fence: (text: string) => text.includes('set epoch = $3'),
    renewal: (text: string) => text.includes('skip locked'),
  };
  /** The lease of every conversation is over, as if its holder had stalled. */
  const endLeases = (): Promise<unknown> =>
    pglitePool().query(`update "tests".conversations set lease_until = clock_timestamp() - interval '1 second'`);

  describe('postgresStore', () => {
    const store = postgresStore(pglitePool(), { schema: 'suite', leaseMs: 120_000 });
    const other = postgresStore(pglitePool(), { schema: 'suite', leaseMs: 120_000 });
    afterAll(() => Promise.all([store.close(), other.close()]));
    const cases: [group: string, name: string, body: () => Promise<void>][] = [];
    let group = '';
    const makeStore = async (): Promise<LogStore> => {
      await store.list();
      await emptySchema('suite');
      return store;
    };
    const runner: SuiteRunner = {
      describe(name, body) {
        group = name;
        body();
      },
      test: (name, body) => void cases.push([group, name, body]),
    };
    logStoreSuite(makeStore, runner, {
      another: async () => other,
      endLeases: () =>
        pglitePool().query(`update "suite".conversations set lease_until = clock_timestamp() - interval '1 second'`),
    });
    test.each(sampled(cases, volume.databaseCaseOf))('%s: %s', (_, __, body) => body());

    test.each(sampled(STORE_ACTS, volume.caseOf))('is the same three times: it $act', async ({ same, run }) => {
      const holder = { store: storeOf(), another: () => storeOf() };
      for (const time of [0, 1, 2]) expect(await run(holder, time)).toEqual(same);
    });
  });

  describe('a log that somebody else changed in the database', () => {
    const SQL = {
      corrupt: `update "tests".entries set entry = '{"seq":' where seq = 2`,
      gap: `delete from "tests".entries where seq = 2`,
      'gap at the end': `delete from "tests".entries where seq = 4`,
    };
    test.each(Object.entries(SQL))('is refused by a reader as %s', async (fault, statement) => {
      const handle = await storeOf().open('a');
      await handle.append(notices('a', 0, 5), 0);
      await pglitePool().query(statement);
      expect(await codeOf(() => all(handle))).toBe(fault.split(' ')[0]);
      await handle.close();
    });
  });

  test('an entry that could not be read back is not stored', async () => {
    const handle = await storeOf().open('a');
    expect(await codeOf(() => handle.append([{ ...notice('a', 0), at: Number.NaN }], 0))).toBe('store');
    await handle.append(notices('a', 0, 2), 0);
    expect(await all(handle)).toEqual(notices('a', 0, 2));
    await handle.close();
  });

  describe('an append whose answer is lost', () => {
    /** The first append ends as `first` prescribes; every statement of another kind is sent. */
    const losing = (kind: (text: string) => boolean, first: Intercept, times = 1): Intercept => {
      let left = times;
      return (text, send) => {
        if (!kind(text) || left === 0) return send();
        left -= 1;
        return first(text, send);
      };
    };
    const afterwards: Intercept = async (_, send) => {
      await send();
      throw connectionLost();
    };
    const never: Intercept = () => Promise.reject(connectionLost());

    test.each([
      ['was stored', afterwards],
      ['was not stored', never],
    ])('and that %s is stored once, and resolves', async (_, first) => {
      const store = storeOf(losing(is.append, first));
      const handle = await store.open('c');
      await handle.append(notices('c', 0, 2), 0);
      await handle.append([notice('c', 2)], 2);
      expect(await all(handle)).toEqual(notices('c', 0, 3));
      await handle.close();
      expect(await stored(storeOf(), 'c')).toEqual(notices('c', 0, 3));
    });

    test('and that reaches the database late is shut out, whenever it comes', async () => {
      let late: (() => Promise<unknown>) | undefined;
      const store = storeOf(
        losing(is.append, async (_, send) => {
          late = send;
          throw connectionLost();
        }),
      );
      const handle = await store.open('c');
      await handle.append([notice('c', 0)], 0);
      await late?.();
      await handle.append([notice('c', 1)], 1);
      await late?.();
      expect(await all(handle)).toEqual(notices('c', 0, 2));
    });

    test.each([
      ['was stored', afterwards, 2],
      ['was not stored', never, 2],
      // More often than one statement is repeated.
      ['was stored', afterwards, 5],
      ['was not stored', never, 5],
    ])('and that %s is judged rightly when answers of the judgement are lost, too', async (_, first, times) => {
      const [appends, fences] = [losing(is.append, first), losing(is.fence, afterwards, times)];
      const store = storeOf((text, send) => appends(text, () => fences(text, send)));
      const handle = await store.open('c');
      await handle.append([notice('c', 0)], 0);
      await handle.append([notice('c', 1)], 1);
      expect(await all(handle)).toEqual(notices('c', 0, 2));
    });

    test.each([
      ['was stored', afterwards, 'done', 1],
      ['was not stored', never, 'store_conflict', 0],
    ])(
      'and that %s ends accordingly after another process has taken the conversation',
      async (_, first, code, length) => {
        const store = storeOf(
          losing(is.append, async (text, send) => {
            try {
              return await first(text, send);
            } finally {
              await endLeases();
              const taken = await storeOf().open('c');
              await taken.append([notice('c', length)], length);
            }
          }),
        );
        const handle = await store.open('c');
        expect(await codeOf(() => handle.append([notice('c', 0)], 0))).toBe(code);
        expect(await codeOf(() => handle.append([notice('c', length + 1)], length + 1))).toBe('store_conflict');
        expect(await codeOf(() => handle.append([notice('c', length)], length))).toBe('store_conflict');
      },
    );

    test('and that was stored, with a refused judgement, ends the handle: whoever opens the log next has its entries', async () => {
      const [appends, fences] = [losing(is.append, afterwards), losing(is.fence, () => Promise.reject(diskFull()))];
      const store = storeOf((text, send) => appends(text, () => fences(text, send)));
      const handle = await store.open('c');
      let end: unknown;
      handle.acts$?.subscribe({ error: (error) => (end = error) });
      expect(await codeOf(() => handle.append([notice('c', 0)], 0))).toBe('store');
      expect(await codeOf(() => handle.append([notice('c', 0)], 0))).toBe('store_conflict');
      expect(end).toMatchObject({ code: 'store_conflict' });
      await handle.close();
      const again = await store.open('c');
      expect(await all(again)).toEqual([notice('c', 0)]);
      await again.append([notice('c', 1)], 1);
    });

    test('of several that wait, each is stored once and in order', async () => {
      const store = storeOf(losing(is.append, afterwards, 2));
      const handle = await store.open('c');
      const appends = [0, 1, 2].map((seq) => handle.append([notice('c', seq)], seq));
      await Promise.resolve();
      appends.push(handle.append([notice('c', 3)], 3));
      await Promise.all(appends);
      expect(await all(handle)).toEqual(notices('c', 0, 4));
    });

    test('is refused with the reason if the database refuses the statement', async () => {
      const full = diskFull();
      const store = storeOf(losing(is.append, () => Promise.reject(full)));
      const handle = await store.open('c');
      await expect(handle.append([notice('c', 0)], 0)).rejects.toMatchObject({ code: 'store', cause: full });
      await handle.append([notice('c', 0)], 0);
      expect(await all(handle)).toEqual([notice('c', 0)]);
    });

    test('is tried again after a conflict of transactions', async () => {
      const deadlock = Object.assign(new Error('deadlock detected'), { code: '40P01' });
      const store = storeOf(losing(is.append, () => Promise.reject(deadlock), 2));
      const handle = await store.open('c');
      await handle.append([notice('c', 0)], 0);
      expect(await all(handle)).toEqual([notice('c', 0)]);
    });
  });

  test('takes no acts from the moment it closes, also if its lease cannot be released', async () => {
    const store = storeOf((text, send) => (text.includes("'-infinity'") ? Promise.reject(diskFull()) : send()));
    const handle = await store.open('c');
    await handle.append([notice('c', 0)], 0);
    let isOver = false;
    handle.acts$?.subscribe({
      complete: () => {
        isOver = true;
      },
    });
    expect(await codeOf(() => handle.close())).toBe('store');
    expect(isOver).toBe(true);
  });

  describe('connections that are lost at any statement', () => {
    const lives = Array.from({ length: volume.caseOf === 1 ? 60 : 3 }, (_, index) => sourceSeed() + index);

    test.each(lives)('life %i loses no entry and stores none twice', { timeout: 60_000 }, async (seed) => {
      const random = chance(seed);
      const late: (() => Promise<unknown>)[] = [];
      const failing: Intercept = async (text, send) => {
        if (!/"tests"\./.test(text) || !random.odds(0.15)) return send();
        const effect = random.one(['now', 'later', 'never']);
        if (effect === 'now') await send();
        if (effect === 'later') late.push(send);
        throw connectionLost();
      };
      const acknowledged: number[] = [];
      for (let life = 0; life < 4; life += 1) {
        const store = storeOf(failing);
        const handle = await opens(store);
        if (!handle) continue;
        let next = await lengthOf(handle);
        for (let turn = 0; turn < 5; turn += 1) {
          const code = await codeOf(() => handle.append([notice('c', next, `${next}`)], next));
          if (code === 'done') acknowledged.push(next);
          else break;
          next += 1;
          if (random.odds(0.4)) await late.shift()?.();
        }
        if (random.odds(0.5)) await endLeases();
        else await handle.close().catch(endLeases);
      }
      for (const send of late) await send().catch(() => undefined);
      await endLeases();
      const log = await stored(storeOf(), 'c');
      expect(log).toEqual(log.map((_, seq) => notice('c', seq, `${seq}`)));
      expect(acknowledged.filter((seq) => seq >= log.length)).toEqual([]);
      expect(new Set(acknowledged).size).toBe(acknowledged.length);
    });

    const opens = async (store: LogStore): Promise<LogHandle | undefined> => {
      for (let attempt = 0; attempt < 5; attempt += 1) {
        try {
          return await store.open('c');
        } catch {
          await endLeases();
        }
      }
      return undefined;
    };
    const lengthOf = async (handle: LogHandle): Promise<number> => {
      for (;;) {
        try {
          return (await all(handle)).length;
        } catch (error) {
          if ((error as { code?: string }).code !== 'store') throw error;
        }
      }
    };
  });

  describe('a lease', () => {
    test('that is over is never held again, even if nobody has taken the conversation', async () => {
      const store = storeOf();
      const handle = await store.open('c');
      await handle.append([notice('c', 0)], 0);
      await endLeases();
      expect(await codeOf(() => handle.append([notice('c', 1)], 1))).toBe('store_conflict');
      expect(await codeOf(() => handle.append([notice('c', 1)], 1))).toBe('store_conflict');
      expect(await codeOf(() => handle.putBlob?.(new Uint8Array([1]), 'image/png'))).toBe('store_conflict');
      await handle.close();
      expect(await stored(store, 'c')).toEqual([notice('c', 0)]);
    });

    test('that another process has taken leaves nothing to the old holder, in either order of appends', async () => {
      const [store, other] = [storeOf(), storeOf()];
      const old = await store.open('c');
      await old.append([notice('c', 0)], 0);
      await endLeases();
      const handle = await other.open('c');
      expect(await codeOf(() => old.append([notice('c', 1, 'old')], 1))).toBe('store_conflict');
      await handle.append([notice('c', 1)], 1);
      expect(await codeOf(() => old.append([notice('c', 2, 'old')], 2))).toBe('store_conflict');
      await old.close();
      expect(await codeOf(() => storeOf().open('c'))).toBe('session_busy');
      expect(await all(handle)).toEqual(notices('c', 0, 2));
    });

    test('is released if the opening fails after the lease was taken, and the error is that of the opening', async () => {
      const first = storeOf();
      const handle = await first.open('c');
      await handle.append([notice('c', 0)], 0);
      await handle.close();
      // Without its row in lists, an opening reads the log.
      await pglitePool().query(`update "tests".conversations set summary = null`);
      let failsRelease = false;
      const store = storeOf((text, send) => {
        const fails = text.includes('select entry from') || (failsRelease && text.includes("'-infinity'"));
        return fails ? Promise.reject(diskFull()) : send();
      });
      await expect(store.open('c')).rejects.toThrow('the log of conversation "c" cannot be read');
      expect(await first.stateOf('c')).toEqual({ length: 1, isHeld: false });
      await (await first.open('c')).close();
      failsRelease = true;
      await pglitePool().query(`update "tests".conversations set summary = null`);
      await expect(store.open('c')).rejects.toThrow('the log of conversation "c" cannot be read');
    });

    test.each([
      ['opens', 'on conflict (id) do update set epoch', 'closed'],
      ['closes', "'-infinity'", 'done'],
    ])('of a conversation that %s while its store closes is free when the store is closed', async (way, text, code) => {
      let begun = (): void => undefined;
      const began = new Promise<void>((resolve) => {
        begun = resolve;
      });
      const store = storeOf(async (statement, send) => {
        if (!statement.includes(text)) return send();
        begun();
        await new Promise((resolve) => setTimeout(resolve, 50));
        const answer = await send();
        await new Promise((resolve) => setTimeout(resolve, 50));
        return answer;
      });
      const opening = store.open('c');
      const first = await (way === 'opens' ? undefined : opening);
      await first?.append([notice('c', 0)], 0);
      const ending = codeOf(() => (first ? first.close() : opening));
      await began;
      await store.close();
      // The other process must not wait for the end of the lease.
      const next = await storeOf().open('c');
      expect(await ending).toBe(code);
      await next.close();
    });

    test('of each conversation is renewed by one statement of the process, and lasts', async () => {
      const statements: string[] = [];
      const store = storeOf(
        (text, send) => {
          statements.push(text);
          return send();
        },
        { leaseMs: 1000 },
      );
      const handles = await Promise.all(['a', 'b', 'c'].map((id) => store.open(id)));
      statements.length = 0;
      await expect.poll(() => statements.filter(is.renewal).length, { interval: 50 }).toBeGreaterThanOrEqual(4);
      expect(statements.filter((text) => !is.renewal(text))).toEqual([]);
      for (const [index, handle] of handles.entries()) await handle.append([notice('abc'[index] ?? '', 0)], 0);
    });

    test('ends in a process that cannot reach the database, and its appends are refused', async () => {
      let isCutOff = false;
      const hanging = new Promise<never>(() => {});
      const store = storeOf((_, send) => (isCutOff ? hanging : send()), { leaseMs: 1000 });
      const handle = await store.open('c');
      isCutOff = true;
      expect(await codeOf(() => handle.append([notice('c', 0)], 0))).toBe('store_conflict');
      isCutOff = false;
      await endLeases();
      expect(await stored(storeOf(), 'c')).toEqual([]);
    });

    test('that the holder releases is free at once, and a conversation without entries leaves no row', async () => {
      const [store, other] = [storeOf(), storeOf()];
      await (await store.open('empty')).close();
      const { rows } = await pglitePool().query('select id from "tests".conversations');
      expect(rows).toEqual([]);
      const handle = await store.open('c');
      await store.close();
      expect(await codeOf(() => handle.append([notice('c', 0)], 0))).toBe('closed');
      expect([await codeOf(() => other.open('c')), await codeOf(() => store.list())]).toEqual(['done', 'closed']);
    });
  });

  test.each([
    ['nothing', false, false],
    ['a blob', true, false],
    ['an entry', false, true],
    ['a blob and an entry', true, true],
  ])(
    'a deleted conversation with %s leaves nothing in the tables, and another one stays',
    async (_, hasBlob, hasEntry) => {
      const store = storeOf();
      for (const id of ['c', 'other']) {
        const handle = await store.open(id);
        if (hasBlob) await handle.putBlob?.(new Uint8Array([1]), 'image/png');
        if (hasEntry || id === 'other') await handle.append([conversation(id)], 0);
        await handle.close();
      }
      await store.delete('c');
      const found = await Promise.all(
        ['acts', 'blobs', 'entries'].map(async (table) => {
          const { rows } = await pglitePool().query(`select conversation from "tests".${table}`);
          return rows.map((row) => row.conversation);
        }),
      );
      expect(found).toEqual([[], hasBlob ? ['other'] : [], ['other']]);
    },
  );

  describe('the tables', () => {
    test('are made once by stores that start together, in a schema of their own', async () => {
      const stores = [1, 2, 3].map(() => postgresStore(pglitePool(), { schema: 'together' }));
      await Promise.all(stores.map((store) => store.list()));
      const handle = await stores[0]?.open('c');
      await handle?.append([conversation('c')], 0);
      expect((await stores[1]?.list())?.map(({ id }) => id)).toEqual(['c']);
      expect(await storeOf().list()).toEqual([]);
      await handle?.close();
    });

    test('of a later version are refused, and are not changed', async () => {
      await postgresStore(pglitePool(), { schema: 'later' }).list();
      await pglitePool().query('insert into "later".versions values (99, now())');
      await expect(postgresStore(pglitePool(), { schema: 'later' }).list()).rejects.toMatchObject({
        code: 'store',
        message: expect.stringContaining('version 99'),
      });
    });

    test('are tried again after the database could not be reached', async () => {
      let isDown = true;
      const store = postgresStore(
        pglitePool((_, send) => (isDown ? Promise.reject(connectionLost()) : send())),
        { schema: 'again' },
      );
      expect(await codeOf(() => store.list())).toBe('store');
      isDown = false;
      expect(await store.list()).toEqual([]);
    });

    test.each(['', 'Upper', 'a"b', 'a; drop table x', 'pg_catalog', 'x'.repeat(41), 5])(
      'are not made in a schema named %j',
      (schema) => {
        expect(() => postgresStore(pglitePool(), { schema: schema as string })).toThrow(
          expect.objectContaining({ code: 'configuration' }),
        );
      },
    );

    test.each([undefined, {}, { query: () => {} }])('need a pool: %j is none', (pool) => {
      expect(() => postgresStore(pool as unknown as PostgresPool)).toThrow(/npm install pg/);
    });
  });
});
