/**
 * Every combination of the options of `open` and `list` in PostgreSQL, and every use of a handle and a store that are over.
 * Invariant: what is expected is computed in this file by hand. All of it runs in each test run.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConversationInfo, ListOptions, LogEntry, LogHandle } from '../../../src/index.ts';
import { postgresStore } from '../../../src/stores/postgres/postgresStore.ts';
import { all, conversation, notice, notices, stamped } from '../../../src/testing/storeSuite/storeCase.ts';
import { emptySchema, pglitePool } from '../../support/pglitePool.ts';
import { codeOf } from '../../support/secondTimesOfStores.ts';

const SCHEMA = 'every';
const storeOf = (): ReturnType<typeof postgresStore> => postgresStore(pglitePool(), { schema: SCHEMA });

const owned = (id: string, owner?: string): LogEntry =>
  ({ ...conversation(id), ...(owner !== undefined && { owner }) }) as LogEntry;
const run = (id: string, seq: number, type: 'run-started' | 'run-suspended' | 'run-stop'): LogEntry =>
  stamped(id, seq, { type, runId: 'r', waiting: ['x'], reason: 'completed', cause: 'end_turn' } as never);

describe('the list of a store in PostgreSQL', () => {
  const store = storeOf();
  const handles: LogHandle[] = [];
  type Cycle = 'new' | 'ended' | 'running' | 'suspended';
  interface Made {
    id: string;
    owner: string | undefined;
    cycle: Cycle;
    isHeld: boolean;
    updatedAt: number;
  }
  const made: Made[] = [];

  beforeAll(async () => {
    await store.list();
    await emptySchema(SCHEMA);
    const cycles: { [cycle in Cycle]: (id: string) => LogEntry[] } = {
      new: () => [],
      ended: (id) => [run(id, 1, 'run-started'), run(id, 2, 'run-stop')],
      running: (id) => [run(id, 1, 'run-started')],
      suspended: (id) => [run(id, 1, 'run-started'), run(id, 2, 'run-suspended')],
    };
    for (const owner of [undefined, 'ann'])
      for (const [cycle, entriesOf] of Object.entries(cycles) as [Cycle, (id: string) => LogEntry[]][])
        for (const isHeld of [false, true]) {
          const id = `${owner ?? 'none'}-${cycle}-${isHeld}`;
          const handle = await store.open(id);
          const entries = [owned(id, owner), ...entriesOf(id)];
          // Several rows have one time.
          const updatedAt = 1_000 * (made.length % 5);
          const last = entries.pop() as LogEntry;
          await handle.append([...entries, { ...last, at: updatedAt }], 0);
          if (isHeld) handles.push(handle);
          else await handle.close();
          made.push({ id, owner, cycle, isHeld, updatedAt });
        }
    const child = await store.open('child');
    await child.append([conversation('child', { conversationId: 'none-new-false', callId: 'x' })], 0);
    await child.close();
    handles.push(await store.open('empty'));
  });
  afterAll(async () => {
    await Promise.all(handles.map((handle) => handle.close()));
    await store.close();
  });

  /** By hand: whoever holds a log has written its row, so the row says whether a run is under way. */
  const statusOf = ({ cycle, isHeld }: Made): string =>
    cycle === 'suspended' ? 'waiting' : cycle === 'running' && isHeld ? 'active' : 'idle';
  const inOrder = (rows: readonly Made[]): Made[] =>
    [...rows].sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1));
  const essence = ({ id, owner, status, updatedAt }: ConversationInfo) => [id, owner, status, updatedAt];

  const OWNERS = [undefined, 'ann', 'Ann'];
  const STATUSES = [undefined, 'idle', 'waiting', 'active'] as const;
  test.each(OWNERS.flatMap((owner) => STATUSES.map((status) => [owner, status] as const)))(
    'of the owner %s with the status %s is complete, page by page and at once',
    async (owner, status) => {
      const expected = inOrder(made)
        .filter((row) => owner === undefined || row.owner === owner)
        .filter((row) => status === undefined || statusOf(row) === status)
        .map((row) => [row.id, row.owner, statusOf(row), row.updatedAt]);
      const filter: ListOptions = { owner, status };
      const whole = await store.list(filter);
      expect(whole.map(essence)).toEqual(expected);
      expect((await store.list({ ...filter, limit: Number.POSITIVE_INFINITY })).map(essence)).toEqual(expected);
      expect(await store.list({ ...filter, limit: 0 })).toEqual([]);
      for (const limit of whole.length > 5 ? [5] : [1]) {
        const pages: ConversationInfo[] = [];
        for (let cursor: string | undefined; ; ) {
          const page = await store.list({ ...filter, limit, cursor });
          expect(page.length).toBeLessThanOrEqual(limit);
          pages.push(...page);
          if (page.length < limit) break;
          cursor = page.at(-1)?.cursor;
        }
        expect(pages).toEqual(whole);
      }
    },
  );

  test('says that a run without a holder has crashed, and gives its last cause otherwise', async () => {
    const causes = new Map((await store.list()).map(({ id, lastCause }) => [id, lastCause]));
    for (const { id, cycle, isHeld } of made) {
      const expected = cycle === 'ended' ? 'end_turn' : cycle === 'running' && !isHeld ? 'crash' : undefined;
      expect([id, causes.get(id)]).toEqual([id, expected]);
    }
  });

  test.each(['x', '5', ':a', 'NaN:a'])('is refused for the cursor %j', async (cursor) => {
    expect(await codeOf(() => store.list({ cursor }))).toBe('configuration');
  });

  test('the state of each is its length and whether it is held', async () => {
    const lengths = { new: 1, ended: 3, running: 2, suspended: 3 };
    for (const { id, cycle, isHeld } of made) {
      expect([id, await store.stateOf(id)]).toEqual([id, { length: lengths[cycle], isHeld }]);
      expect(await store.stillHolds(id)).toBe(isHeld);
    }
    expect(await store.stateOf('empty')).toEqual({ length: 0, isHeld: true });
    expect(await store.stateOf('unknown')).toEqual({ length: 0, isHeld: false });
  });
});

describe('the opening of a log in PostgreSQL', () => {
  const store = storeOf();
  /** Another process. */
  const other = storeOf();
  beforeAll(async () => {
    await store.list();
    await emptySchema(SCHEMA);
  });
  afterAll(() => Promise.all([store.close(), other.close()]));

  const STATES = ['unknown', 'empty and held', 'free', 'held', 'free, of nobody'] as const;
  /** By hand. Who must not find a conversation must not find that it is open. */
  function byHand(state: (typeof STATES)[number], existing: boolean, owner: string | undefined): string {
    if (state === 'unknown') return existing ? 'not_found' : 'done';
    if (state === 'empty and held') return existing ? 'not_found' : 'session_busy';
    if (owner !== undefined && (state === 'free, of nobody' || owner !== 'ann')) return 'not_found';
    return state === 'held' ? 'session_busy' : 'done';
  }
  const OPENINGS = [false, true].flatMap((existing) =>
    [undefined, 'ann', 'bob'].map((owner) => [existing, owner] as const),
  );

  test.each(STATES)('that is %s is right for every option, the second time too', async (state) => {
    for (const [existing, owner] of OPENINGS) {
      const id = `${state} ${existing} ${owner}`;
      const held = state === 'unknown' ? undefined : await store.open(id);
      if (held && !state.startsWith('empty'))
        await held.append([owned(id, state.endsWith('nobody') ? undefined : 'ann')], 0);
      const isHeld = state === 'held' || state === 'empty and held';
      if (!isHeld) await held?.close();
      for (const from of [store, other]) {
        const opened: LogHandle[] = [];
        const code = await codeOf(async () => opened.push(await from.open(id, { existing, owner })));
        expect([id, code]).toEqual([id, byHand(state, existing, owner)]);
        // A refused opening leaves nothing behind, and an opened log without entries is gone when it is closed.
        expect((await store.stateOf(id)).isHeld).toBe(isHeld || opened.length > 0);
        for (const handle of opened) await handle.close();
      }
      await held?.close();
      expect(await store.stateOf(id)).toEqual({
        length: state.startsWith('free') || state === 'held' ? 1 : 0,
        isHeld: false,
      });
    }
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
    const late = closed.follow('left', 1).next();
    await Promise.all([closed.close(), closed.close()]);
    expect(await Promise.all([waiting, late])).toEqual([1, 2].map(() => ({ done: true, value: undefined })));
    expect(await store.stateOf('left')).toEqual({ length: 1, isHeld: false });
    const uses = [
      () => closed.open('left'),
      () => closed.list(),
      () => closed.delete('left'),
      () => closed.stateOf('left'),
      () => closed.act('left', { actId: 'a' }),
      () => closed.follow('left').next(),
      () => handle.append([notice('left', 1)], 1),
    ];
    expect(await Promise.all(uses.map(codeOf))).toEqual(uses.map(() => 'closed'));
    expect(await closed.stillHolds('left')).toBe(false);
    const next = await store.open('left');
    expect(await all(next)).toEqual([notice('left', 0)]);
    await next.close();
  });
});
