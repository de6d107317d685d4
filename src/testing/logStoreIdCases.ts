/**
 * Cases of the store suite about the ids of conversations. Rule: see storeCase.ts. Which odd ids a store takes is its own
 * choice: it refuses one as `configuration`, or keeps its conversation apart from all others.
 */
import assert from 'node:assert/strict';
import { RunchartError } from '../errors.ts';
import type { LogStore } from '../stores/store.ts';
import { conversation, notice, type StoreCase, sameEntries, stored, write } from './storeCase.ts';

export const idCases: readonly StoreCase[] = [
  [
    'ids of letters, digits, dots, dashes and underscores are taken',
    async (store) => {
      const ids = ['a', 'a.b', '.a', 'a-b', 'a_b', '-a', '0', '3f2a-b', 'a..b', 'x'.repeat(100)];
      assert.deepEqual(await keptApart(store, ids), ids);
    },
  ],
  [
    'ids of any language, with spaces or percent signs, are kept apart',
    async (store) => {
      const ids = ['a b', 'a%20b', 'a+b', '%', '%zz', 'ä', 'a\u0308', '日本', '🎉', 'İ', 'ﬁ', 'fi'];
      assert.deepEqual(await keptApart(store, ids), ids);
    },
  ],
  [
    'ids with names that mean something to objects or to the store are ordinary',
    async (store) => {
      const ids = [
        '__proto__',
        'constructor',
        'toString',
        'c',
        'c.jsonl',
        'c.lock',
        'c.jsonl.lock',
        'c.blobs',
        'index',
      ];
      assert.deepEqual(await keptApart(store, ids), ids);
    },
  ],
  [
    'ids that differ in case only are two conversations',
    async (store) => {
      const ids = ['case', 'Case', 'CASE'];
      assert.deepEqual(await keptApart(store, ids), ids);
    },
  ],
  [
    'ids that look like one number are kept apart',
    async (store) => {
      const ids = ['1', '01', '1.0', '1e0', '+1', '0x1'];
      assert.deepEqual(await keptApart(store, ids), ids);
    },
  ],
  [
    'ids that differ in white space only are never mixed up',
    (store) => keptApart(store, ['w', ' w', 'w ', 'w\t', 'w\n']),
  ],
  [
    'ids that look like paths are refused, or are no paths',
    (store) => keptApart(store, ['p', '.', '..', '../p', './p', 'p/', '/p', 'q/../p', 'p\\q', 'p/q', 'C:p', 'file:p']),
  ],
  [
    'empty ids and ids that are no well-formed text are refused, or kept apart',
    (store) => keptApart(store, ['', '\ud800', '\udfff', '\ufffd', 'n', 'n\0', '\0n', 'n\0m']),
  ],
  [
    'ids that differ at the end of a long text only are never mixed up',
    async (store) => {
      for (const length of [150, 255, 4096, 100_000]) {
        const long = 'l'.repeat(length);
        await keptApart(store, [`${long}a`, `${long}b`, long]);
      }
    },
  ],
];

/** The ids the store took, each with a conversation of its own that is read and listed under that id. */
async function keptApart(store: LogStore, ids: readonly string[]): Promise<string[]> {
  const taken: string[] = [];
  const before = (await store.list()).length;
  for (const id of ids) {
    try {
      await write(store, id, [conversation(id), notice(id, 1, `of ${id}`)]);
      taken.push(id);
    } catch (error) {
      if (!RunchartError.isRunchartError(error)) throw error;
      assert.equal(error.code, 'configuration', error.message);
    }
  }
  for (const id of taken) sameEntries(await stored(store, id), [conversation(id), notice(id, 1, `of ${id}`)]);
  const listed = new Set((await store.list()).map((found) => found.id));
  assert.equal(listed.size, before + taken.length);
  for (const id of taken) assert.ok(listed.has(id), `${JSON.stringify(id.slice(0, 99))} is not listed`);
  return taken;
}
