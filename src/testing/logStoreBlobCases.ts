/**
 * Cases of the store suite about bytes beside the entries: what comes back, by which reference. Rule: see storeCase.ts.
 */
import assert from 'node:assert/strict';
import { bytesOf, PNG, withBlobs } from './blobCase.ts';
import { opened, refused, type StoreCase } from './storeCase.ts';

export const blobCases: readonly StoreCase[] = [
  [
    'a handle can both put and get blobs, or neither',
    (store) =>
      opened(store, 'c', async ({ putBlob, getBlob }) =>
        assert.equal(typeof putBlob, typeof getBlob, 'putBlob, getBlob'),
      ),
  ],
  [
    'bytes come back as they were, from the same handle and from the next one',
    async (store) => {
      const every = Uint8Array.from({ length: 70_000 }, (_, at) => (at * 7) % 256);
      const references: string[] = [];
      await withBlobs(store, async ({ put, get }) => {
        for (const bytes of [every, bytesOf(0), bytesOf()]) {
          references.push(await put(bytes));
          assert.ok(Buffer.from(await get(references.at(-1) ?? '')).equals(bytes), `${bytes.length} bytes`);
        }
      });
      if (references.length > 0) {
        await withBlobs(store, async ({ get }) => assert.ok(Buffer.from(await get(references[0] ?? '')).equals(every)));
      }
    },
  ],
  [
    'equal bytes of a type have one reference, others another',
    (store) =>
      withBlobs(store, async ({ put }) => {
        const first = await put(bytesOf(1, 2, 3));
        assert.equal(await put(bytesOf(1, 2, 3)), first);
        assert.notEqual(await put(bytesOf(1, 2, 4)), first);
        assert.notEqual(await put(bytesOf(1, 2)), first);
      }),
  ],
  [
    'a reference is a short text that is neither base64 nor a URL of the web',
    (store) =>
      withBlobs(store, async ({ put }) => {
        const reference = await put(bytesOf(1));
        assert.match(reference, /^(?!(?:https?|data|file):)[\x21-\x7e]{0,1023}:[\x21-\x7e]{0,1023}$/i);
        assert.ok(reference.length <= 1_024);
      }),
  ],
  [
    'what is done later to the bytes that were put, or got, changes no blob',
    (store) =>
      withBlobs(store, async ({ put, get }) => {
        // A Buffer's own slice() is no copy.
        const bytes = Buffer.from([1, 2, 3]);
        const reference = await put(bytes);
        bytes[0] = 9;
        const got = await get(reference);
        got[1] = 9;
        assert.deepEqual([...(await get(reference))], [1, 2, 3]);
      }),
  ],
  [
    'a reference that leads nowhere is refused, whatever it looks like',
    (store) =>
      withBlobs(store, async ({ put, get }) => {
        const known = await put(bytesOf(1));
        for (const wrong of [
          '',
          'blob:',
          'blob:0',
          '../c',
          `blob:../${known}`,
          '/etc/passwd',
          `${known}\0`,
          '__proto__',
        ]) {
          if (wrong !== known) await refused('store', () => get(wrong));
        }
        await refused('store', () => get(known.replace(/[0-9]/g, '7')));
      }),
  ],
  [
    'many blobs at once are each what they were',
    (store) =>
      withBlobs(store, async ({ put, get }) => {
        const numbers = Array.from({ length: 40 }, (_, at) => at % 20);
        const references = await Promise.all(numbers.map((number) => put(bytesOf(number, 1))));
        const found = await Promise.all(references.map(get));
        assert.deepEqual(
          found.map(([first]) => first),
          numbers,
        );
      }),
  ],
  [
    'a blob of five mebibytes comes back',
    (store) =>
      withBlobs(store, async ({ put, get }) => {
        const large = Buffer.alloc(5 * 1024 * 1024, 'runchart');
        assert.ok(large.equals(await get(await put(large))));
      }),
  ],
  [
    'of a view into a larger buffer only the view is stored',
    (store) =>
      withBlobs(store, async ({ put, get }) => {
        const view = new Uint8Array(bytesOf(9, 1, 2, 3, 9).buffer, 1, 3);
        assert.deepEqual([...(await get(await put(view)))], [1, 2, 3]);
      }),
  ],
  [
    'bytes that are changed while they are being put are stored as they were',
    (store) =>
      withBlobs(store, async ({ put, get }) => {
        const bytes = bytesOf(1, 2, 3);
        const putting = put(bytes);
        bytes.fill(9);
        assert.deepEqual([...(await get(await putting))], [1, 2, 3]);
      }),
  ],
  [
    'equal bytes of two media types come back by either reference',
    (store) =>
      withBlobs(store, async ({ put, get }) => {
        const references = [await put(bytesOf(1, 2), PNG), await put(bytesOf(1, 2), 'text/plain')];
        for (const reference of references) assert.deepEqual([...(await get(reference))], [1, 2]);
      }),
  ],
];
