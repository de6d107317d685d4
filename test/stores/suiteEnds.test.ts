/** The cases of the store suite end for a store that never lets them finish, also under a runner without a time limit. */
import { afterEach, expect, test, vi } from 'vitest';
import type { LogHandle, LogStore } from '../../src/stores/logStore.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { logStoreSuite } from '../../src/testing/storeSuite/logStoreSuite.ts';

afterEach(() => vi.useRealTimers());

function caseNamed(name: string, store: LogStore): () => Promise<void> {
  const cases = new Map<string, () => Promise<void>>();
  const runner = { describe: (_: string, body: () => void) => body(), test: cases.set.bind(cases) };
  logStoreSuite(async () => store, runner as never);
  return cases.get(name) ?? expect.fail(`there is no case ${name}`);
}

function changedStore(change: (handle: LogHandle) => Partial<LogHandle>) {
  const inner = memoryStore();
  const calls = { open: 0, list: 0 };
  const store: LogStore = {
    async open(id, options) {
      calls.open += 1;
      const handle = await inner.open(id, options);
      const bound = {
        read: handle.read.bind(handle),
        append: handle.append.bind(handle),
        close: handle.close.bind(handle),
      };
      return { ...bound, ...change(handle) };
    },
    list(options) {
      calls.list += 1;
      return inner.list(options);
    },
    delete: (id) => inner.delete(id),
  };
  return { store, calls };
}

test('openers that take turns give up when the conversation stays busy', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
  const { store, calls } = changedStore(() => ({ close: async () => undefined }));
  const run = caseNamed('openers that take turns lose no entry and write none twice', store)();
  const failure = run.then(
    () => undefined,
    (error: Error) => error.message,
  );
  await vi.advanceTimersByTimeAsync(40_000);
  expect(await failure).toBe('the conversation stayed busy for 30 s, although every handle was closed');
  const { open } = calls;
  await vi.advanceTimersByTimeAsync(1000);
  expect(calls.open).toBe(open);
});

test('a list that is asked for during appends is not asked for after one has failed', async () => {
  const { store, calls } = changedStore((handle) => ({
    append: (entries, seq) => (seq > 4 ? Promise.reject(new Error('no disk')) : handle.append(entries, seq)),
  }));
  const run = caseNamed('a list asked for during an append shows the conversation before or after it', store);
  await expect(run()).rejects.toThrow('no disk');
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  await turn();
  const { list } = calls;
  for (let times = 0; times < 20; times++) await turn();
  expect(calls.list).toBe(list);
});
