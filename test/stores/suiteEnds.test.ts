/** The cases of the store suite end for a store that never lets them finish, also under a runner without a time limit. */
import { afterEach, expect, test, vi } from 'vitest';
import type { LogHandle, LogStore } from '../../src/stores/logStore.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { logStoreSuite } from '../../src/testing/storeSuite/logStoreSuite.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
afterEach(() => vi.restoreAllMocks());

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
  // Each look at the clock is a second later.
  let seconds = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => ++seconds * 1000);
  const { store, calls } = changedStore(() => ({ close: async () => undefined }));
  const run = caseNamed('openers that take turns lose no entry and write none twice', store);
  await expect(run()).rejects.toThrow('the conversation stayed busy for 30 s, although every handle was closed');
  expect(calls.open).toBeLessThan(200);
});

test('a reader of appends under way ends when all are acknowledged, in whatever order', async () => {
  const { store } = changedStore((handle) => ({
    async append(entries, seq) {
      await handle.append(entries, seq);
      if (seq === 50) for (let times = 0; times < 30; times++) await undefined;
    },
  }));
  const name = 'of appends under way a reader sees whole ones only, in order, and all that were acknowledged';
  await caseNamed(name, store)();
});

test('a list that is asked for during appends is not asked for after one has failed', async () => {
  const { store, calls } = changedStore((handle) => ({
    append: (entries, seq) => (seq > 4 ? Promise.reject(new Error('no disk')) : handle.append(entries, seq)),
  }));
  const run = caseNamed('a list asked for during an append shows the conversation before or after it', store);
  await expect(run()).rejects.toThrow('no disk');
  await turn();
  const { list } = calls;
  for (let times = 0; times < 20; times++) await turn();
  expect(calls.list).toBe(list);
});
