/**
 * The parts of a store that several processes share: followers, acts, and the end of a holder. Rule: a case passes if the store lacks the
 * part that it tests. Times are not part of the contract, so a case waits for the required event.
 */
import assert from 'node:assert/strict';
import type { Json, LogEntry } from '../../../machines/vocabulary.ts';
import type { Live } from '../../live.ts';
import type { Act, LogHandle, LogStore } from '../../stores/logStore.ts';
import { all, notice, notices, opened, refused, type StoreCase, sameEntries, stamped, stored } from './storeCase.ts';

type FollowingStore = LogStore & Required<Pick<LogStore, 'follow'>>;
type ActingStore = LogStore & Required<Pick<LogStore, 'act'>>;
type ActingHandle = LogHandle & Required<Pick<LogHandle, 'acts$' | 'expectEffect' | 'answerAct'>>;

const follows = (store: LogStore): store is FollowingStore => store.follow !== undefined;
const acts = (store: LogStore): store is ActingStore => store.act !== undefined;

/** Texts that databases and JSON types lose or change. */
const ODD = 'NUL \0, half a pair \uD800, \uDC00, emoji 🎉, quote " \\ and a line\nbreak';

function takesActs(handle: LogHandle): asserts handle is ActingHandle {
  assert.ok(handle.acts$, 'expected acts$ on the handle of a store with act');
  assert.ok(handle.expectEffect && handle.answerAct, 'expected expectEffect and answerAct beside acts$');
}

/** The next items of a follower that are entries. */
async function entriesOf(items: AsyncIterator<LogEntry | Live>, count: number): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  while (entries.length < count) {
    const next = await items.next();
    assert.ok(!next.done, `the follower ended after ${entries.length} of ${count} entries`);
    if ('seq' in next.value) entries.push(next.value);
  }
  return entries;
}

const itemsOf = (store: FollowingStore, id: string, from?: number): AsyncIterator<LogEntry | Live> =>
  store.follow(id, from)[Symbol.asyncIterator]();

const act = (actId: string, more: { [key: string]: Json } = {}): Act => ({ actId, type: 'case', ...more });

/** Appends one entry for each act, whose seq is the answer. Returns the acts that were taken. */
function appending(handle: LogHandle, name: string): Act[] {
  takesActs(handle);
  const taken: Act[] = [];
  let tail: Promise<unknown> = Promise.resolve();
  handle.acts$.subscribe({
    next: (one) => {
      taken.push(one);
      tail = tail.then(async () => {
        const { length: seq } = await all(handle);
        handle.expectEffect(one.actId, (entry) => (entry.seq === seq ? { seq } : undefined));
        await handle.append([notice('c', seq, `${name} ${one.actId}`)], seq);
      });
      tail.catch(() => undefined);
    },
    error: () => undefined,
  });
  return taken;
}

export const followerCases: readonly StoreCase[] = [
  [
    'a follower receives what is stored, then what comes, each entry once and in order',
    async (store, { another }) => {
      const other = await another();
      if (!follows(other)) return;
      await opened(store, 'c', async (handle) => {
        await handle.append(notices('c', 0, 3), 0);
        const items = itemsOf(other, 'c');
        const before = await entriesOf(items, 2);
        for (let seq = 3; seq < 9; seq += 1) await handle.append([notice('c', seq)], seq);
        sameEntries([...before, ...(await entriesOf(items, 7))], notices('c', 0, 9));
        await items.return?.();
      });
    },
  ],
  [
    'a follower begins at the entry that it asks for, also at one that is still to come',
    async (store, { another }) => {
      const other = await another();
      if (!follows(other)) return;
      await opened(store, 'c', async (handle) => {
        await handle.append(notices('c', 0, 3), 0);
        const [late, early] = [itemsOf(other, 'c', 3), itemsOf(other, 'c', 1)];
        sameEntries(await entriesOf(early, 2), notices('c', 1, 2));
        await handle.append(notices('c', 3, 2), 3);
        sameEntries(await entriesOf(late, 2), notices('c', 3, 2));
        await Promise.all([late.return?.(), early.return?.()]);
      });
    },
  ],
  [
    'a follower continues with the next holder',
    async (store, { another }) => {
      const other = await another();
      if (!follows(other)) return;
      await opened(store, 'c', (handle) => handle.append(notices('c', 0, 2), 0));
      const items = itemsOf(other, 'c');
      sameEntries(await entriesOf(items, 2), notices('c', 0, 2));
      await opened(other, 'c', (handle) => handle.append(notices('c', 2, 2), 2));
      await opened(store, 'c', (handle) => handle.append(notices('c', 4, 2), 4));
      sameEntries(await entriesOf(items, 4), notices('c', 2, 4));
      await items.return?.();
    },
  ],
  [
    'odd text reaches a follower as it was appended, in a conversation with an odd id',
    async (store, { another }) => {
      const other = await another();
      if (!follows(other)) return;
      const id = 'ä/.. 🎉';
      const entries = [
        notice(id, 0, ODD),
        stamped(id, 1, { type: 'extension', name: 'case', value: { b: ODD, a: [] } }),
      ];
      await opened(store, id, (handle) => handle.append(entries, 0));
      const items = itemsOf(other, id);
      sameEntries(await entriesOf(items, 2), entries);
      await items.return?.();
    },
  ],
  [
    'what does not exist is not_found to a follower, and a follower ends when its conversation is deleted',
    async (store, { another }) => {
      const other = await another();
      if (!follows(other)) return;
      await refused('not_found', () => itemsOf(other, 'nothing').next());
      await opened(store, 'c', (handle) => handle.append(notices('c', 0, 1), 0));
      const items = itemsOf(other, 'c');
      await entriesOf(items, 1);
      const end = items.next();
      await store.delete('c');
      assert.equal((await end).done, true);
    },
  ],
  [
    'a follower that waits ends at once when its reader returns, and holds nothing: the conversation can be opened and deleted',
    async (store, { another }) => {
      const other = await another();
      if (!follows(other)) return;
      await opened(store, 'c', (handle) => handle.append(notices('c', 0, 1), 0));
      const items = itemsOf(other, 'c');
      await entriesOf(items, 1);
      const waiting = items.next();
      await items.return?.();
      assert.equal((await waiting).done, true);
      sameEntries(await stored(store, 'c'), notices('c', 0, 1));
      await store.delete('c');
    },
  ],
  [
    'the state of a conversation is its length, and whether it is held',
    async (store, { another }) => {
      const other = await another();
      if (!other.stateOf) return;
      assert.deepEqual(await other.stateOf('c'), { length: 0, isHeld: false });
      await opened(store, 'c', async (handle) => {
        await handle.append(notices('c', 0, 3), 0);
        assert.deepEqual(await other.stateOf?.('c'), { length: 3, isHeld: true });
      });
      assert.deepEqual(await other.stateOf('c'), { length: 3, isHeld: false });
    },
  ],
];

export const actCases: readonly StoreCase[] = [
  [
    'acts are taken once and in order, and each is answered when its effect is stored',
    async (store, { another }) => {
      const other = await another();
      if (!acts(other)) return;
      await opened(store, 'c', async (handle) => {
        const taken = appending(handle, 'one');
        const answers: Json[] = [];
        for (const actId of ['a', 'b', 'c'])
          answers.push(await other.act('c', act(actId, { text: ODD, list: [1, null] })));
        assert.deepEqual(answers, [{ seq: 0 }, { seq: 1 }, { seq: 2 }]);
        assert.deepEqual(
          taken,
          ['a', 'b', 'c'].map((actId) => act(actId, { text: ODD, list: [1, null] })),
        );
        sameEntries(
          await all(handle),
          ['a', 'b', 'c'].map((actId, seq) => notice('c', seq, `one ${actId}`)),
        );
      });
    },
  ],
  [
    'an act whose answer was lost has the same answer under its id, from any process, and is not done again',
    async (store, { another }) => {
      const other = await another();
      if (!acts(other) || !acts(store)) return;
      await opened(store, 'c', async (handle) => {
        const taken = appending(handle, 'one');
        const answers = await Promise.all([other.act('c', act('a')), other.act('c', act('a'))]);
        answers.push((await store.act?.('c', act('a'))) as Json);
        assert.deepEqual(answers, [{ seq: 0 }, { seq: 0 }, { seq: 0 }]);
        assert.equal(taken.length, 1);
        assert.equal((await all(handle)).length, 1);
      });
    },
  ],
  [
    'an act without an entry is answered by its holder, with a value or an error',
    async (store, { another }) => {
      const other = await another();
      if (!acts(other)) return;
      await opened(store, 'c', async (handle) => {
        takesActs(handle);
        const error = { code: 'agent_busy', message: `busy ${ODD}` };
        handle.acts$.subscribe(({ actId }) => {
          void handle.answerAct(actId, actId === 'good' ? { value: { odd: ODD, none: null } } : { error });
        });
        assert.deepEqual(await other.act('c', act('good')), { odd: ODD, none: null });
        await refused('agent_busy', () => other.act('c', act('bad')));
      });
    },
  ],
  [
    'an act for a conversation that nobody holds is unavailable, and is never done',
    async (store, { another }) => {
      const other = await another();
      if (!acts(other)) return;
      await opened(store, 'c', (handle) => handle.append(notices('c', 0, 1), 0));
      await refused('unavailable', () => other.act('c', act('a')));
      await opened(store, 'c', async (handle) => {
        const taken = appending(handle, 'one');
        assert.deepEqual(await other.act('c', act('b')), { seq: 1 });
        assert.deepEqual(taken, [act('b')]);
      });
    },
  ],
  [
    'acts end with the handle',
    async (store, { another }) => {
      const other = await another();
      if (!acts(other)) return;
      const handle = await store.open('c');
      takesActs(handle);
      const ended = new Promise<void>((complete) => handle.acts$.subscribe({ complete }));
      await handle.append(notices('c', 0, 1), 0);
      await handle.close();
      await ended;
    },
  ],
];

/**
 * A holder that has begun with the act `a`, and whose lease is over. `answer`: the value that the asker receives, or the code of its
 * error.
 */
async function begunAndLost(store: LogStore, other: ActingStore, endLeases: (() => unknown) | undefined) {
  const old = await store.open('c');
  takesActs(old);
  const begun = new Promise<unknown>((next) => old.acts$.subscribe({ next, error: () => undefined }));
  const answer = other.act('c', act('a')).catch(({ code }: { code: Json }) => code);
  await begun;
  await endLeases?.();
  return { old, answer };
}

/** Cases for a suite that can end leases. */
export const takeoverCases: readonly StoreCase[] = [
  [
    'a holder whose lease is over never appends again, and another process has the conversation whole',
    async (store, { another, endLeases }) => {
      const other = await another();
      const old = await store.open('c');
      await old.append(notices('c', 0, 2), 0);
      await endLeases?.();
      await opened(other, 'c', async (handle) => {
        await refused('store_conflict', () => old.append([notice('c', 2, 'old')], 2));
        await handle.append([notice('c', 2)], 2);
        await refused('store_conflict', () => old.append([notice('c', 3, 'old')], 3));
        sameEntries(await all(handle), notices('c', 0, 3));
      });
      await old.close().catch(() => undefined);
    },
  ],
  [
    'the acts of a holder fail when its lease is over',
    async (store, { another, endLeases }) => {
      if (!acts(await another())) return;
      const old = await store.open('c');
      takesActs(old);
      const failed = new Promise<unknown>((error) => old.acts$.subscribe({ error }));
      await endLeases?.();
      await refused('store_conflict', () => old.append(notices('c', 0, 1), 0));
      assert.equal(((await failed) as { code?: unknown }).code, 'store_conflict');
      await old.close().catch(() => undefined);
    },
  ],
  [
    'an act whose effect was stored before its holder died has its answer, and is not done by the next holder',
    async (store, { another, endLeases }) => {
      const other = await another();
      if (!acts(other)) return;
      const old = await store.open('c');
      appending(old, 'old');
      assert.deepEqual(await other.act('c', act('a')), { seq: 0 });
      await endLeases?.();
      await opened(other, 'c', async (handle) => {
        const taken = appending(handle, 'new');
        assert.deepEqual(await other.act?.('c', act('a')), { seq: 0 });
        assert.deepEqual(await other.act?.('c', act('b')), { seq: 1 });
        assert.deepEqual(taken, [act('b')]);
        sameEntries(await all(handle), [notice('c', 0, 'old a'), notice('c', 1, 'new b')]);
      });
      await old.close().catch(() => undefined);
    },
  ],
  [
    'an act that a dead holder had begun with is done once by the next one, or never',
    async (store, { another, endLeases }) => {
      const other = await another();
      if (!acts(other)) return;
      const { old, answer } = await begunAndLost(store, other, endLeases);
      await opened(other, 'c', async (handle) => {
        const taken = appending(handle, 'new');
        const result = await answer;
        if (result === 'unavailable') assert.deepEqual(taken, []);
        else assert.deepEqual([result, taken], [{ seq: 0 }, [act('a')]]);
      });
      await old.close().catch(() => undefined);
    },
  ],
  [
    'an act with which the next holder has begun is not answered by the holder before it',
    async (store, { another, endLeases }) => {
      const other = await another();
      if (!acts(other)) return;
      const { old, answer } = await begunAndLost(store, other, endLeases);
      await opened(other, 'c', async (handle) => {
        takesActs(handle);
        const begunAgain = new Promise<true>((begin) => handle.acts$.subscribe(() => begin(true)));
        // It may have been withdrawn before the conversation was opened again.
        if ((await Promise.race([begunAgain, answer])) !== true) return;
        await old.answerAct('a', { value: 'old' }).catch(() => undefined);
        await handle.answerAct('a', { value: 'new' });
        assert.equal(await answer, 'new');
      });
      await old.close().catch(() => undefined);
    },
  ],
  [
    'a follower ends when its holder dies in the middle of a run, and continues over one that dies at rest',
    async (store, { another, endLeases }) => {
      const other = await another();
      if (!follows(other)) return;
      const [busy, idle] = [await store.open('c'), await store.open('d')];
      await busy.append([stamped('c', 0, { type: 'run-started', runId: 'run' })], 0);
      await idle.append(notices('d', 0, 1), 0);
      const [running, resting] = [itemsOf(other, 'c'), itemsOf(other, 'd')];
      await Promise.all([entriesOf(running, 1), entriesOf(resting, 1)]);
      await endLeases?.();
      assert.equal((await running.next()).done, true);
      await opened(other, 'd', (handle) => handle.append([notice('d', 1)], 1));
      sameEntries(await entriesOf(resting, 1), [notice('d', 1)]);
      await resting.return?.();
      for (const old of [busy, idle]) await old.close().catch(() => undefined);
    },
  ],
  [
    'a follower ends when its holder dies between the repair of a log and the resumption of its run',
    async (store, { another, endLeases }) => {
      const other = await another();
      if (!follows(other)) return;
      const old = await store.open('c');
      const stop = { type: 'run-stop', runId: 'run', reason: 'interrupted', cause: 'crash' } as const;
      await old.append([stamped('c', 0, { type: 'run-started', runId: 'run' }), stamped('c', 1, stop)], 0);
      const items = itemsOf(other, 'c');
      await entriesOf(items, 2);
      await endLeases?.();
      assert.equal((await items.next()).done, true);
      await old.close().catch(() => undefined);
    },
  ],
];
