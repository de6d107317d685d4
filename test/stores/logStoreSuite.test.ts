/** The store suite finds stores that break the contract. */
import { expect, test } from 'vitest';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import type { LogHandle, LogStore } from '../../src/stores/store.ts';
import { logStoreSuite } from '../../src/testing/logStoreSuite.ts';

/** Names of the cases a store fails. */
async function failures(makeStore: () => LogStore): Promise<string[]> {
  const tests: [string, () => Promise<void>][] = [];
  const declare = (name: string, body: () => Promise<void>) => tests.push([name, body]);
  logStoreSuite(async () => makeStore(), { describe: (_, body) => body(), test: declare });
  const failed: string[] = [];
  for (const [name, body] of tests) await body().catch(() => failed.push(name));
  return failed;
}

/** A memory store whose handles differ in some members. */
function withHandles(change: (handle: LogHandle) => Partial<LogHandle>): () => LogStore {
  return () => {
    const store = memoryStore();
    const open = async (id: string) => {
      const { appendNow: _, ...handle } = await store.open(id);
      return { ...handle, ...change(handle) };
    };
    return { ...store, open };
  };
}

function mapped(change: (entry: LogEntry) => LogEntry | null) {
  return withHandles((handle) => ({
    async *read(from) {
      for await (const entry of handle.read(from)) {
        const changed = change(entry);
        if (changed) yield changed;
      }
    },
  }));
}

/** How many entries a handle holds. */
async function lengthOf(handle: LogHandle): Promise<number> {
  let length = 0;
  for await (const _ of handle.read()) length += 1;
  return length;
}

const broken: [what: string, makeStore: () => LogStore][] = [
  [
    'takes any expected seq',
    withHandles((handle) => ({ append: async (entries) => handle.append(entries, await lengthOf(handle)) })),
  ],
  ['reads after the seq asked for', withHandles((handle) => ({ read: (from) => handle.read((from ?? -1) + 1) }))],
  ['reads everything always', withHandles((handle) => ({ read: () => handle.read() }))],
  [
    'stores what comes before a wrong entry',
    withHandles((handle) => ({
      async append(entries, expectedSeq) {
        for (const [index, entry] of entries.entries()) await handle.append([entry], expectedSeq + index);
      },
    })),
  ],
  ['acknowledges without storing', withHandles(() => ({ append: async () => {} }))],
  ['loses the last entry', mapped((entry) => (entry.seq === 9999 ? null : entry))],
  ['loses the run', mapped((entry) => ({ ...entry, runId: null }))],
  [
    'stores lone surrogates as another character',
    mapped((entry) => JSON.parse(Buffer.from(JSON.stringify(entry).replace(/\\ud[89a-f]../g, '\ufffd')).toString())),
  ],
  [
    'loses keys named __proto__',
    mapped((entry) => JSON.parse(JSON.stringify(entry), (key, value) => (key === '__proto__' ? undefined : value))),
  ],
  ['never gives its lease back', withHandles(() => ({ close: async () => {} }))],
  [
    'opens twice',
    () => {
      const store = memoryStore();
      const handles = new Map<string, Promise<LogHandle>>();
      const open = async (id: string) => {
        const handle = handles.get(id) ?? store.open(id);
        handles.set(id, handle);
        return { ...(await handle), close: async () => {} };
      };
      return { ...store, open };
    },
  ],
  ['forgets on close', () => ({ ...memoryStore(), open: (id) => memoryStore().open(id) })],
  ['lists nothing', () => ({ ...memoryStore(), list: async () => [] })],
  ['deletes nothing', () => ({ ...memoryStore(), delete: async () => {} })],
];

test('the memory store fails no case, nor does one that only passes its calls on', async () => {
  expect(await failures(memoryStore)).toEqual([]);
  expect(await failures(mapped((entry) => entry))).toEqual([]);
});

for (const [what, makeStore] of broken) {
  test(`a store that ${what} fails the suite`, async () => {
    expect(await failures(makeStore)).not.toEqual([]);
  });
}
