/**
 * Every combination of the options of `open` and `list`, for every store. Invariant: this file computes the expected
 * results by hand. `npm test` runs all of it, and only a sample of the store suite.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConversationInfo, ListOptions, LogEntry, LogHandle, LogStore } from '../../src/index.ts';
import { conversation, stamped } from '../../src/testing/storeSuite/storeCase.ts';
import { codeOf } from '../support/secondTimesOfStores.ts';

/** Makes an empty store, and another one over the same conversations. */
type StoresOf = () => Promise<{ store: LogStore; other: LogStore }>;

const owned = (id: string, owner?: string): LogEntry =>
  ({ ...conversation(id), ...(owner !== undefined && { owner }) }) as LogEntry;
const run = (id: string, seq: number, type: 'run-started' | 'run-suspended' | 'run-stop'): LogEntry =>
  stamped(id, seq, { type, runId: 'r', waiting: ['x'], reason: 'completed', cause: 'end_turn' } as never);

export const everyListing = (name: string, storesOf: StoresOf) =>
  describe(`the list of ${name}`, () => {
    let store: LogStore;
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
      ({ store } = await storesOf());
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
            // Several rows have the same time.
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
    });

    /** By hand: the holder of a log has written its row, so the row shows whether a run is active. */
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

    test('has the cause crashed for a run without a holder, and otherwise the last cause', async () => {
      const causes = new Map((await store.list()).map(({ id, lastCause }) => [id, lastCause]));
      for (const { id, cycle, isHeld } of made) {
        const expected = cycle === 'ended' ? 'end_turn' : cycle === 'running' && !isHeld ? 'crash' : undefined;
        expect([id, causes.get(id)]).toEqual([id, expected]);
      }
    });

    test.each(['x', '5', ':a', 'NaN:a'])('is refused for the cursor %j', async (cursor) => {
      expect(await codeOf(() => store.list({ cursor }))).toBe('configuration');
    });
  });

export const everyOpening = (name: string, storesOf: StoresOf) =>
  describe(`the opening of a log in ${name}`, () => {
    let store: LogStore;
    let other: LogStore;
    beforeAll(async () => {
      ({ store, other } = await storesOf());
    });

    const STATES = ['unknown', 'empty', 'empty and held', 'free', 'held', 'free, of nobody'] as const;
    /** By hand. A caller that must not find a conversation must not learn that it is open. */
    function byHand(state: (typeof STATES)[number], existing: boolean, owner: string | undefined): string {
      if (state === 'unknown' || state === 'empty') return existing ? 'not_found' : 'done';
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
          // Some stores find that it is held before they find that it is empty.
          const expected = byHand(state, existing, owner);
          const isEither = state === 'empty and held' && code === 'session_busy';
          expect([id, code]).toEqual([id, isEither ? code : expected]);
          // After a refused opening there is no log. An opened log without entries is gone when it is closed.
          const found = await store.stateOf?.(id);
          if (found) expect(found.isHeld).toBe(isHeld || opened.length > 0);
          for (const handle of opened) await handle.close();
        }
        await held?.close();
        const isKept = state.startsWith('free') || state === 'held';
        const found = await store.stateOf?.(id);
        if (found) expect(found).toEqual({ length: isKept ? 1 : 0, isHeld: false });
        expect((await store.list()).some((info) => info.id === id)).toBe(isKept);
      }
    });
  });
