/**
 * Acts that a store must repeat with the same result. Invariant: an act returns its result as JSON, the same each time.
 * Nothing here needs Node or a test runner, so a browser's page can run it.
 */
import type { LogEntry, LogHandle, LogStore } from '../../src/index.ts';

export interface StoreHolder {
  store: LogStore;
  /** Another store object on the same logs. */
  another(): LogStore;
}
export interface StoreAct {
  act: string;
  /** The expected result of each repetition. */
  same: unknown;
  /** `time` counts from 0. */
  run(holder: StoreHolder, time: number): Promise<unknown>;
}

const ID = 'c';
export const noticeAt = (seq: number): LogEntry =>
  ({ seq, at: seq, conversationId: ID, runId: null, type: 'notice', code: 'n', text: `entry ${seq}` }) as LogEntry;

export const codeOf = (act: () => unknown): Promise<string> =>
  Promise.resolve()
    .then(act)
    .then(
      () => 'done',
      (error: { code?: string }) => error.code ?? String(error),
    );

export async function entriesIn(handle: LogHandle): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for await (const entry of handle.read()) entries.push(entry);
  return entries;
}

async function opened<T>(store: LogStore, use: (handle: LogHandle) => Promise<T>): Promise<T> {
  const handle = await store.open(ID);
  try {
    return await use(handle);
  } finally {
    await handle.close();
  }
}

async function appendOne(handle: LogHandle): Promise<number> {
  const { length } = await entriesIn(handle);
  await handle.append([noticeAt(length)], length);
  return length + 1;
}

export const STORE_ACTS: readonly StoreAct[] = [
  {
    act: 'opens a closed log with its whole content, by either store object',
    same: [true, true],
    run: async ({ store, another }, time) => {
      const counts = [await opened(store, appendOne), await opened(another(), appendOne)];
      return counts.map((count, index) => count === 2 * time + index + 1);
    },
  },
  {
    act: 'refuses an open log to either store object, and does not affect its holder',
    same: ['session_busy', 'session_busy', 'session_busy', 'done'],
    run: ({ store, another }) =>
      opened(store, async (handle) => [
        await codeOf(() => store.open(ID)),
        await codeOf(() => another().open(ID)),
        await codeOf(() => another().delete(ID)),
        await codeOf(() => appendOne(handle)),
      ]),
  },
  {
    act: 'finds a conversation that waits by its status, while it is open here and when it is closed',
    same: [['waiting'], ['waiting']],
    run: async ({ store, another }) => {
      const entry = (seq: number, fields: object): LogEntry =>
        ({ seq, at: seq, conversationId: ID, runId: 'run', ...fields }) as LogEntry;
      const found = async (asked: LogStore): Promise<string[]> => {
        const rows = await asked.list({ status: 'waiting' });
        return rows.map(({ status }) => status);
      };
      await codeOf(() => store.delete(ID));
      const open = await opened(store, async (handle) => {
        const begins = entry(0, { type: 'conversation', schema: 1, cwd: '/', createdAt: 0 });
        const waits = entry(2, { type: 'run-suspended', waiting: ['call'] });
        await handle.append([begins, entry(1, { type: 'run-started' }), waits], 0);
        return found(store);
      });
      const closed = await found(another());
      await store.delete(ID);
      return [open, closed];
    },
  },
  {
    act: 'gives a log to one of several that open it at once',
    same: ['done', 'session_busy', 'session_busy'],
    run: async ({ store, another }) => {
      const opening = [store, another(), store].map((each) => each.open(ID));
      const codes = await Promise.all(opening.map((each) => codeOf(() => each)));
      for (const each of opening) await each.then((handle) => handle.close()).catch(() => undefined);
      return codes.sort();
    },
  },
  {
    act: 'appends on a handle after a rejected append',
    same: ['store_conflict', 'store_conflict', 'done', 'store_conflict', 'done'],
    run: ({ store }) =>
      opened(store, async (handle) => {
        const wrong = (): Promise<string> => codeOf(() => handle.append([noticeAt(999)], 999));
        const right = (): Promise<string> => codeOf(() => appendOne(handle));
        return [await wrong(), await wrong(), await right(), await wrong(), await right()];
      }),
  },
  {
    act: 'closes a closed handle, at once or later, and refuses later requests',
    same: ['done', 'done', 'done', 'closed', 'closed'],
    run: async ({ store }) => {
      const handle = await store.open(ID);
      const both = await Promise.all([codeOf(() => handle.close()), codeOf(() => handle.close())]);
      const third = await codeOf(() => handle.close());
      return [...both, third, await codeOf(() => appendOne(handle)), await codeOf(() => entriesIn(handle))];
    },
  },
  {
    act: 'leaves a log to its new holder when the old handle is closed again',
    same: ['session_busy', 'done'],
    run: async ({ store, another }) => {
      const old = await store.open(ID);
      await old.close();
      return opened(another(), async (handle) => {
        await old.close();
        return [await codeOf(() => store.open(ID)), await codeOf(() => appendOne(handle))];
      });
    },
  },
  {
    act: 'reads a complete log after an abandoned read',
    same: [3, 3],
    run: async ({ store }, time) => {
      if (time === 0) await opened(store, (handle) => handle.append([0, 1, 2].map(noticeAt), 0));
      return opened(store, async (handle) => {
        for await (const _ of handle.read()) break;
        return [(await entriesIn(handle)).length, (await entriesIn(handle)).length];
      });
    },
  },
  {
    act: 'keeps equal bytes under one reference',
    same: [true, [1, 2, 3]],
    run: ({ store }) =>
      opened(store, async (handle) => {
        const put = (): Promise<string> | undefined => handle.putBlob?.(new Uint8Array([1, 2, 3]), 'image/png');
        const [first = '', second] = [await put(), await put()];
        return [first === second, [...((await handle.getBlob?.(first)) ?? [])]];
      }),
  },
  {
    act: 'refuses bytes whose media type is none, and keeps others',
    same: ['configuration', 'configuration', 'configuration', 'done'],
    run: ({ store }) =>
      opened(store, (handle) => {
        const types = ['', 'png', `image/${'x'.repeat(65)}`, 'image/png; q=1'];
        return Promise.all(types.map((type) => codeOf(() => handle.putBlob?.(new Uint8Array([1]), type))));
      }),
  },
  {
    act: 'deletes a deleted log, and starts a new one',
    same: ['done', 'done', 1],
    run: async ({ store, another }) => [
      await codeOf(() => store.delete(ID)),
      await codeOf(() => another().delete(ID)),
      await opened(store, appendOne),
    ],
  },
];
