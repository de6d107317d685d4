/** Cases of the store suite about what an entry may hold. Rule: see storeCase.ts. */
import assert from 'node:assert/strict';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { LogStore } from '../stores/store.ts';
import { everyEntry } from './everyEntry.ts';
import { notice, notices, opened, type StoreCase, stamped, stored, write } from './storeCase.ts';

export const contentCases: readonly StoreCase[] = [
  ['every type of entry comes back with all its fields', (store) => comesBack(store, everyEntry('c'))],
  [
    'texts come back exactly: line separators, NUL, quotes, lone surrogates, emoji',
    (store) => {
      const texts = ['a\u2028b\u2029c', 'a\nb\r\nc', '\u0000\u0001', '"\\\'', '\ud800 \udfff', 'héé🎉', '\ufeff', ''];
      return comesBack(
        store,
        texts.map((text, seq) => notice('c', seq, text)),
      );
    },
  ],
  ['a text of a mebibyte comes back', (store) => comesBack(store, [notice('c', 0, 'ä'.repeat(512 * 1024))])],
  [
    'keys such as __proto__ are kept as values and change no prototype',
    async (store) => {
      const value = JSON.parse('{"__proto__":{"polluted":true},"constructor":1,"toString":null}');
      const entries = await comesBack(store, [stamped('c', 0, { type: 'extension', name: 'x', value })]);
      assert.deepEqual(JSON.stringify(entries).includes('"__proto__":{"polluted":true}'), true);
      assert.equal(({} as { polluted?: boolean }).polluted, undefined);
    },
  ],
  [
    'values nested 100 levels deep come back',
    (store) => {
      let value: { in: unknown } = { in: null };
      for (let level = 0; level < 100; level += 1) value = { in: value };
      return comesBack(store, [stamped('c', 0, { type: 'extension', name: 'x', value: value as never })]);
    },
  ],
  [
    'ten thousand entries come back, in batches and one by one',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        for (let seq = 0; seq < 9900; seq += 99) await handle.append(notices('c', seq, 99), seq);
        for (let seq = 9900; seq < 10_000; seq += 1) await handle.append([notice('c', seq)], seq);
      });
      // One by one: a difference of two long lists is never done on some versions of Node.
      const found = await stored(store, 'c');
      notices('c', 0, 10_000).forEach((entry, seq) => {
        assert.deepEqual(found[seq], entry);
      });
      assert.equal(found.length, 10_000);
    },
  ],
];

/** Compared with a copy made before the append, read from a handle that was opened again. */
async function comesBack(store: LogStore, entries: LogEntry[]): Promise<LogEntry[]> {
  const before = structuredClone(entries);
  await write(store, 'c', entries);
  const after = await stored(store, 'c');
  assert.deepEqual(after, before);
  return after;
}
