/**
 * The options of `open` and `list` of the store in PostgreSQL, its limits, and every use of a handle and a store after their end. All
 * of it runs in each test run.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LogEntry } from '../../../src/index.ts';
import { mayExist } from '../../../src/stores/logStore.ts';
import { postgresStore } from '../../../src/stores/postgres/postgresStore.ts';
import { all, conversation, notice, notices } from '../../../src/testing/storeSuite/storeCase.ts';
import { emptySchema, pglitePool } from '../../support/pglitePool.ts';
import { codeOf } from '../../support/secondTimesOfStores.ts';
import { everyListing, everyOpening } from '../openingsByHand.ts';

const SCHEMA = 'every';
const storeOf = (): ReturnType<typeof postgresStore> => postgresStore(pglitePool(), { schema: SCHEMA });
const owned = (id: string, owner: string): LogEntry => ({ ...conversation(id), owner }) as LogEntry;

describe('every combination', () => {
  const stores = [storeOf(), storeOf()] as const;
  const storesOf = async () => {
    const [store, other] = stores;
    await store.list();
    await emptySchema(SCHEMA);
    return { store, other };
  };
  afterAll(() => Promise.all(stores.map((store) => store.close())));
  everyListing('a store in PostgreSQL', storesOf);
  everyOpening('PostgreSQL', storesOf);
});

test('the blobs of a conversation without entries in PostgreSQL are deleted with it', async () => {
  const store = storeOf();
  const handle = await store.open('blobs');
  const reference = await handle.putBlob?.(new TextEncoder().encode('bytes'), 'text/plain');
  await handle.close();
  await store.delete('blobs');
  const again = await store.open('blobs');
  expect(await codeOf(() => again.getBlob?.(reference ?? ''))).toBe('store');
  await again.close();
  await store.close();
});

describe('the opening of a log with an unusual name in PostgreSQL', () => {
  const store = storeOf();
  beforeAll(() => store.list());
  afterAll(() => store.close());

  test('has its length and its holder', async () => {
    const handle = await store.open('state');
    expect(await store.stateOf('state')).toEqual({ length: 0, isHeld: true });
    await handle.append(notices('state', 0, 2), 0);
    expect([await store.stateOf('state'), await store.stillHolds('state')]).toEqual([
      { length: 2, isHeld: true },
      true,
    ]);
    await handle.close();
    expect([await store.stateOf('state'), await store.stillHolds('state')]).toEqual([
      { length: 2, isHeld: false },
      false,
    ]);
    expect(await store.stateOf('unknown')).toEqual({ length: 0, isHeld: false });
    await store.delete('state');
  });

  test.each<[string, string]>([
    ['nothing', ''],
    ['501 characters', 'x'.repeat(501)],
    ['NUL', 'a\0b'],
    ['half of a pair', 'a\ud83d'],
  ])('with an id of %s is refused by every method', async (_, id) => {
    const acts = [
      () => store.open(id),
      () => store.delete(id),
      () => store.stateOf(id),
      () => store.follow(id),
      () => store.act(id, { actId: 'a' }),
    ];
    expect(await Promise.all(acts.map(codeOf))).toEqual(acts.map(() => 'configuration'));
  });

  test('with the longest id and the longest owner works, and with an owner that is longer it does not', async () => {
    const id = '🎉'.repeat(250);
    const owner = 'o'.repeat(998);
    const handle = await store.open(id, { owner });
    await handle.append([owned(id, owner)], 0);
    await handle.close();
    expect((await store.list({ owner })).map((info) => info.id)).toEqual([id]);
    expect(await codeOf(() => store.list({ owner: `${owner}o` }))).toBe('configuration');
    await (await store.open(id, { owner, existing: true })).close();
    await store.delete(id);
    expect(await store.list({ owner })).toEqual([]);
  });
});

describe('a log in PostgreSQL', () => {
  const store = storeOf();
  beforeAll(async () => {
    await store.list();
    await emptySchema(SCHEMA);
  });
  afterAll(() => store.close());

  test('is read from any place', async () => {
    const handle = await store.open('read');
    await handle.append(notices('read', 0, 3), 0);
    const seqs = async (from?: number): Promise<number[]> => {
      const found: number[] = [];
      for await (const { seq } of handle.read(from)) found.push(seq);
      return found;
    };
    for (const [from, expected] of [
      ...([
        [undefined, [0, 1, 2]],
        [-3, [0, 1, 2]],
        [0, [0, 1, 2]],
        [0.5, [1, 2]],
        [2, [2]],
        [3, []],
        [9, []],
      ] as const),
      [Number.NaN, []],
      [Number.POSITIVE_INFINITY, []],
    ] as const)
      expect([from, await seqs(from)]).toEqual([from, expected]);
    await handle.append([], 3);
    expect(await codeOf(() => handle.append([], 2))).toBe('store_conflict');
    await handle.close();
  });

  test('has its blobs for itself, each once, until it is deleted', async () => {
    const [one, two] = [await store.open('one'), await store.open('two')];
    const bytes = Uint8Array.of(0, 255, 1);
    const put = one.putBlob?.(bytes, 'image/png') ?? Promise.reject();
    bytes.fill(7);
    const reference = await put;
    expect(await one.putBlob?.(Uint8Array.of(0, 255, 1), 'image/png')).toBe(reference);
    const other = await one.putBlob?.(Uint8Array.of(0, 255, 1), 'image/gif');
    for (const each of [reference, other ?? '']) expect(await one.getBlob?.(each)).toEqual(Uint8Array.of(0, 255, 1));
    expect(await codeOf(() => two.getBlob?.(reference))).toBe('store');
    expect(await codeOf(() => one.getBlob?.('blob:x'))).toBe('store');
    expect(await codeOf(() => one.putBlob?.(bytes, 'image'))).toBe('configuration');
    const { rows } = await pglitePool().query(`select count(*) as n from "${SCHEMA}".blobs`);
    expect(Number(rows[0]?.n)).toBe(1);
    await pglitePool().query(`update "${SCHEMA}".blobs set bytes = 'x'`);
    expect(await codeOf(() => one.getBlob?.(reference))).toBe('corrupt');
    await Promise.all([one.close(), two.close()]);
    await store.delete('one');
    expect((await pglitePool().query(`select 1 from "${SCHEMA}".blobs`)).rows).toEqual([]);
  });

  test('is deleted with all below it, or not at all while one of them is open', async () => {
    const make = async (id: string, parent?: string): Promise<void> => {
      const handle = await store.open(id);
      await handle.append(
        [conversation(id, parent === undefined ? undefined : { conversationId: parent, callId: 'x' })],
        0,
      );
      await handle.close();
    };
    for (const [id, parent] of [['p'], ['k', 'p'], ['kk', 'k'], ['q']] as const) await make(id, parent);
    const open = await store.open('kk');
    expect(await codeOf(() => store.delete('p'))).toBe('session_busy');
    for (const id of ['p', 'k', 'kk']) expect((await store.stateOf(id)).length).toBe(1);
    await open.close();
    await store.delete('p');
    await store.delete('p');
    expect(
      (await Promise.all(['p', 'k', 'kk', 'q'].map((id) => store.stateOf(id)))).map(({ length }) => length),
    ).toEqual([...[0, 0, 0, 1]]);
  });

  test('that is closed refuses every use, and a second close is the first one', async () => {
    const handle = await store.open('over');
    await handle.append([notice('over', 0)], 0);
    const reading = handle.read()[Symbol.asyncIterator]();
    const closing = handle.close();
    expect(handle.close()).toBe(closing);
    const uses = [
      () => all(handle),
      () => handle.append([notice('over', 1)], 1),
      () => handle.putBlob?.(Uint8Array.of(1), 'image/png'),
      () => handle.getBlob?.(`blob:${'a'.repeat(64)}:image/png`),
      () => reading.next(),
    ];
    expect(await Promise.all(uses.map(codeOf))).toEqual(uses.map(() => 'closed'));
    await closing;
    expect(await Promise.all(uses.slice(0, 4).map(codeOf))).toEqual(uses.slice(0, 4).map(() => 'closed'));
    await handle.close();
    expect(await store.stateOf('over')).toEqual({ length: 1, isHeld: false });
  });

  test('of a store that is closed is free, and each method of that store is refused', async () => {
    const closed = storeOf();
    const handle = await closed.open('left');
    await handle.append([notice('left', 0)], 0);
    const follower = closed.follow('left', 1)[Symbol.asyncIterator]();
    const waiting = follower.next();
    // One that begins while the store closes.
    const late = closed.follow('left', 1)[Symbol.asyncIterator]().next();
    await Promise.all([closed.close(), closed.close()]);
    expect(await Promise.all([waiting, late])).toEqual([1, 2].map(() => ({ done: true, value: undefined })));
    expect(await store.stateOf('left')).toEqual({ length: 1, isHeld: false });
    const uses = [
      () => closed.open('left'),
      () => closed.list(),
      () => closed.delete('left'),
      () => closed.stateOf('left'),
      () => mayExist(closed, 'left'),
      () => closed.act('left', { actId: 'a' }),
      () => closed.follow('left')[Symbol.asyncIterator]().next(),
      () => handle.append([notice('left', 1)], 1),
    ];
    expect(await Promise.all(uses.map(codeOf))).toEqual(uses.map(() => 'closed'));
    expect(await closed.stillHolds('left')).toBe(false);
    const next = await store.open('left');
    expect(await all(next)).toEqual([notice('left', 0)]);
    await next.close();
  });
});
