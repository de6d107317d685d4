/**
 * Tests followers and acts of the PostgreSQL store with PGlite, where two stores represent two processes. Only live signals depend on
 * hints. Entries and acts arrive without hints too.
 */
import { Subject } from 'rxjs';
import { afterEach, describe, expect, test } from 'vitest';
import type { LogEntry, LogHandle } from '../../../src/index.ts';
import type { Live } from '../../../src/live.ts';
import type { Act } from '../../../src/stores/logStore.ts';
import { type PostgresStore, postgresStore } from '../../../src/stores/postgres/postgresStore.ts';
import { all, notice, notices, stamped } from '../../../src/testing/storeSuite/storeCase.ts';
import { emptySchema, type Intercept, pglitePool } from '../../support/pglitePool.ts';
import { codeOf } from '../../support/secondTimesOfStores.ts';

const SCHEMA = 'many';
describe('processes over one database', () => {
  const opened: PostgresStore[] = [];
  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close().catch(() => undefined);
    await emptySchema(SCHEMA);
  });
  function storeOf(options: { serve?: boolean; intercept?: Intercept; isAlone?: boolean } = {}): PostgresStore {
    const { intercept, isAlone, ...rest } = options;
    const pool = Object.assign(pglitePool(intercept), isAlone && { options: { max: 1 } });
    const store = postgresStore(pool, { schema: SCHEMA, ...rest });
    opened.push(store);
    return store;
  }
  const endLeases = (): Promise<unknown> =>
    pglitePool().query(`update "${SCHEMA}".conversations set lease_until = clock_timestamp() - interval '1 second'`);
  const connectionLost = (): Error => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

  /** The items that a follower receives, in a list that grows. */
  function followed(store: PostgresStore, id: string, from?: number) {
    const items: (LogEntry | Live)[] = [];
    const iterator = store.follow(id, from)[Symbol.asyncIterator]();
    const ended = (async () => {
      for (let next = await iterator.next(); !next.done; next = await iterator.next()) items.push(next.value);
    })();
    ended.catch(() => undefined);
    return { items, ended, stop: () => iterator.return?.() };
  }
  const signalsIn = (items: readonly (LogEntry | Live)[]): Live[] =>
    items.filter((item): item is Live => !('seq' in item));

  describe('a follower', () => {
    test.each([
      ['with hints', false],
      ['without a connection to keep', true],
    ])('receives stored entries, then those that come, in order, %s', async (_, isAlone) => {
      const handle = await storeOf().open('c');
      await handle.append(notices('c', 0, 3), 0);
      const { items } = followed(storeOf({ isAlone }), 'c', 1);
      await expect.poll(() => items.length).toBe(2);
      for (let seq = 3; seq < 8; seq += 1) await handle.append([notice('c', seq)], seq);
      await expect.poll(() => items.length).toBe(7);
      expect(items).toEqual(notices('c', 1, 7));
    });

    test('continues with the next holder, and ends when the conversation is deleted', async () => {
      const [one, two] = [storeOf(), storeOf()];
      await append(one, 0);
      const { items, ended } = followed(storeOf(), 'c');
      await append(two, 1);
      await append(one, 2);
      await expect.poll(() => items.length).toBe(3);
      await two.delete('c');
      await ended;
      expect(items).toEqual(notices('c', 0, 3));
      await expect(followed(two, 'c').ended).rejects.toMatchObject({ code: 'not_found' });
    });

    test('ends when the holder has died in the middle of a run, so that its process takes the run over', async () => {
      const handle = await storeOf().open('c');
      await handle.append([stamped('c', 0, { type: 'run-started', runId: 'run' })], 0);
      const taking = followed(storeOf(), 'c');
      const reading = followed(storeOf({ serve: false }), 'c');
      await expect.poll(() => taking.items.length + reading.items.length).toBe(2);
      await endLeases();
      await taking.ended;
      expect(reading.items).toHaveLength(1);
      await reading.stop();
    });

    test('receives every entry although its connections are lost', async () => {
      let count = 0;
      const store = storeOf({
        intercept: (_, send) => {
          count += 1;
          return count > 30 && count % 3 === 0 ? Promise.reject(connectionLost()) : send();
        },
      });
      const handle = await storeOf().open('c');
      await handle.append([notice('c', 0)], 0);
      const { items } = followed(store, 'c');
      for (let seq = 1; seq < 20; seq += 1) await handle.append([notice('c', seq)], seq);
      await expect.poll(() => items.length).toBe(20);
      expect(items).toEqual(notices('c', 0, 20));
    });

    const append = async (store: PostgresStore, seq: number): Promise<void> => {
      const handle = await store.open('c');
      await handle.append([notice('c', seq)], seq);
      await handle.close();
    };
  });

  describe('live signals', () => {
    const delta = (text: string): Live => ({ type: 'text-delta', runId: 'run', text });
    const textOf = (items: readonly (LogEntry | Live)[]): string =>
      signalsIn(items)
        .map((signal) => ('text' in signal ? signal.text : ''))
        .join('');

    async function shared(): Promise<{ handle: LogHandle; live$: Subject<Live> }> {
      const handle = await storeOf().open('c');
      await handle.append([notice('c', 0)], 0);
      const live$ = new Subject<Live>();
      handle.shareLive?.(live$);
      return { handle, live$ };
    }

    test('arrive in pieces, after the entries before them, and a long text is complete', async () => {
      const { handle, live$ } = await shared();
      const { items } = followed(storeOf(), 'c');
      await expect.poll(() => live$.observed).toBe(true);
      for (const letter of 'abc') live$.next(delta(letter));
      await expect.poll(() => textOf(items)).toBe('abc');
      expect(signalsIn(items)).toEqual([delta('abc')]);
      const long = 'ü"\u0000🎉'.repeat(3000);
      live$.next(delta(long));
      await expect.poll(() => textOf(items)).toBe(`abc${long}`);
      await handle.append([notice('c', 1)], 1);
      live$.next({ type: 'status', status: 'idle' });
      await expect.poll(() => items.at(-1)).toEqual({ type: 'status', status: 'idle' });
      expect(items.at(-2)).toEqual(notice('c', 1));
    });

    test('are not sent while nobody follows', async () => {
      const { live$ } = await shared();
      expect(live$.observed).toBe(false);
    });
  });

  describe('an act', () => {
    const act = (actId: string, more: object = {}): Act => ({ actId, type: 'test', ...more });

    /** Takes acts, and appends one entry for each whose answer is the seq of the entry. */
    function taking(handle: LogHandle, acts: Act[] = []): Act[] {
      let tail: Promise<unknown> = Promise.resolve();
      handle.acts$?.subscribe({
        next: (taken) => {
          acts.push(taken);
          tail = tail.then(async () => {
            const { length: seq } = await all(handle);
            handle.expectEffect?.(taken.actId, (entry) => (entry.seq === seq ? seq : undefined));
            await handle.append([notice('c', seq, taken.actId)], seq);
          });
          tail.catch(() => undefined);
        },
        error: () => undefined,
      });
      return acts;
    }

    test.each([
      ['with hints', false],
      ['without a connection to keep', true],
    ])('is taken once, in order, and answered when its effect is durable, %s', async (_, isAlone) => {
      const handle = await storeOf({ isAlone }).open('c');
      const acts = taking(handle);
      const other = storeOf({ isAlone });
      const answers = await Promise.all(['a', 'b', 'c'].map((actId) => other.act('c', act(actId))));
      expect([...answers].sort()).toEqual([0, 1, 2]);
      expect(acts.map(({ actId }) => actId).sort()).toEqual(['a', 'b', 'c']);
      expect(await other.act('c', act('b'))).toBe(answers[1]);
      expect(acts).toHaveLength(3);
    });

    test('brings the value or the error of the holder', async () => {
      const handle = await storeOf().open('c');
      handle.acts$?.subscribe((taken) => {
        const answer =
          taken.actId === 'good'
            ? { value: { some: ['value', null] } }
            : { error: { code: 'agent_busy', message: 'agent is busy' } };
        void handle.answerAct?.(taken.actId, answer);
      });
      const other = storeOf();
      expect(await other.act('c', act('good'))).toEqual({ some: ['value', null] });
      await expect(other.act('c', act('bad'))).rejects.toMatchObject({ code: 'agent_busy', message: 'agent is busy' });
    });

    test('whose holder died before its effect is done by the next holder, once', async () => {
      const dying = await storeOf().open('c');
      const begun: Act[] = [];
      dying.acts$?.subscribe({ next: (taken) => void begun.push(taken), error: () => undefined });
      const answer = storeOf().act('c', act('a'));
      await expect.poll(() => begun.length).toBe(1);
      await pglitePool().query(
        `update "${SCHEMA}".conversations set lease_until = clock_timestamp(), epoch = epoch - 50`,
      );
      const acts = taking(await storeOf().open('c'));
      // It may have been withdrawn before that; then it is never done.
      const result = await answer.catch(({ code }) => code);
      expect([result, acts.length]).toBeOneOf([
        [0, 1],
        ['unavailable', 0],
      ]);
    });

    test('whose effect was stored by a holder that died is answered, and not done again', async () => {
      let isCut = false;
      const dying = storeOf({
        intercept: async (text, send) => {
          const rows = await send();
          if (text.includes('answered as (')) isCut = true;
          if (isCut) throw connectionLost();
          return rows;
        },
      });
      const handle = await dying.open('c');
      taking(handle);
      expect(await storeOf().act('c', act('a'))).toBe(0);
      await endLeases();
      const next = await storeOf().open('c');
      expect(taking(next)).toEqual([]);
      expect(await all(next)).toEqual([notice('c', 0, 'a')]);
    });

    test('is withdrawn and unavailable where nobody holds the conversation, and is never done', async () => {
      const store = storeOf();
      await (await store.open('c')).close();
      expect(await codeOf(() => storeOf().act('c', act('a')))).toBe('unavailable');
      const acts = taking(await store.open('c'));
      expect(await storeOf().act('c', act('b'))).toBe(0);
      expect(acts.map(({ actId }) => actId)).toEqual(['b']);
    });

    test('needs an id of its own', async () => {
      const store = storeOf();
      taking(await store.open('c'));
      await store.open('d');
      await store.act('c', act('a'));
      expect(await codeOf(() => store.act('d', act('a')))).toBe('configuration');
      for (const actId of ['', 'x'.repeat(201), 'a\0', undefined] as string[])
        expect(await codeOf(() => store.act('c', act(actId)))).toBe('configuration');
    });

    test('stops with the lease: the stream of acts fails, and completes when the conversation is closed', async () => {
      const store = storeOf();
      const ends: string[] = [];
      const handle = await store.open('c');
      handle.acts$?.subscribe({ error: ({ code }) => ends.push(code), complete: () => ends.push('complete') });
      await endLeases();
      await codeOf(() => handle.append([notice('c', 0)], 0));
      const again = await store.open('c');
      again.acts$?.subscribe({ complete: () => ends.push('complete') });
      await again.close();
      expect(ends).toEqual(['store_conflict', 'complete']);
    });
  });
});
