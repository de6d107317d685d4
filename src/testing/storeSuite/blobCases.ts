/**
 * Cases of the store suite for blobs: their bytes, their references, and their conversation, which owns them until it
 * is deleted. The rules are in storeCase.ts. A store without blobs passes every case here.
 */
import assert from 'node:assert/strict';
import type { LogHandle, LogStore } from '../../stores/logStore.ts';
import { all, notice, opened, refused, type StoreCase, stamped, stored } from './storeCase.ts';

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
    'a reference names the SHA-256 of the bytes and their media type',
    (store) =>
      withBlobs(store, async ({ put }) => {
        for (const bytes of [bytesOf(1, 2, 3), bytesOf()]) {
          const hash = await sha256Hex(bytes);
          assert.equal(await put(bytes), `blob:${hash}:${PNG}`);
          assert.equal(await put(bytes, 'text/plain'), `blob:${hash}:text/plain`);
        }
      }),
  ],
  [
    'what is done later to the bytes that were put, or got, changes no blob',
    (store) =>
      withBlobs(store, async ({ put, get }) => {
        // A Buffer's own `slice()` does not copy.
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
        const reference = await put(bytesOf(1));
        for (const wrong of [
          '',
          'blob:',
          'blob:0',
          '../c',
          `blob:../${reference}`,
          '/etc/passwd',
          `${reference}\0`,
          '__proto__',
        ]) {
          if (wrong !== reference) await refused('store', () => get(wrong));
        }
        await refused('store', () => get(reference.replace(/[0-9]/g, '7')));
      }),
  ],
  [
    'many blobs at once are each what they were',
    (store) =>
      withBlobs(store, async ({ put, get }) => {
        const numbers = Array.from({ length: 40 }, (_, at) => at % 20);
        const references = await Promise.all(numbers.map((number) => put(bytesOf(number, 1))));
        const blobs = await Promise.all(references.map(get));
        assert.deepEqual(
          blobs.map(([first]) => first),
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

export const blobPlaceCases: readonly StoreCase[] = [
  [
    'blobs are no entries: they take no seq and are not read',
    (store) =>
      withBlobs(store, async ({ put, handle }) => {
        await put(bytesOf(1));
        await handle.append([notice('c', 0)], 0);
        await put(bytesOf(2));
        await handle.append([notice('c', 1)], 1);
        assert.deepEqual(await all(handle), [notice('c', 0), notice('c', 1)]);
      }),
  ],
  [
    'a reference in an entry leads to its bytes after the log was opened again',
    async (store) => {
      await withBlobs(store, async ({ put, handle }) => {
        const content = [{ type: 'image', mediaType: PNG, data: await put(bytesOf(4, 5)) } as const];
        await handle.append([stamped('c', 0, { type: 'user-message', messageId: 'm', kind: 'direct', content })], 0);
      });
      await withBlobs(store, async ({ get, handle }) => {
        const [entry] = await all(handle);
        const [part] = entry?.type === 'user-message' ? entry.content : [];
        assert.deepEqual([...(await get(part?.type === 'image' ? part.data : ''))], [4, 5]);
      });
    },
  ],
  [
    'the blobs of one conversation are not found in another',
    async (store) => {
      let reference = '';
      await withBlobs(store, async ({ put }) => {
        reference = await put(bytesOf(1, 2, 3));
      });
      await withBlobs(store, ({ get }) => refused('store', () => get(reference)), 'other');
    },
  ],
  [
    'a conversation of blobs alone is not listed, and keeps them',
    async (store) => {
      let reference = '';
      await withBlobs(store, async ({ put }) => {
        reference = await put(bytesOf(7));
      });
      assert.deepEqual(await store.list(), []);
      await withBlobs(store, async ({ get }) => assert.deepEqual([...(await get(reference))], [7]));
    },
  ],
  [
    'closing waits for the blobs asked for',
    async (store) => {
      const handle = await store.open('c');
      let reference: string | undefined;
      const put = async () => {
        reference = await handle.putBlob?.(bytesOf(1, 2), PNG);
      };
      const close = async () => {
        await handle.close();
        return reference;
      };
      const [, atClose] = await Promise.all([put(), close()]);
      if (handle.putBlob === undefined) return;
      assert.ok(atClose, 'the blob was put when the handle was closed');
      await withBlobs(store, async ({ get }) => assert.deepEqual([...(await get(atClose))], [1, 2]));
    },
  ],
  [
    'a conversation that is deleted takes its blobs along',
    async (store) => {
      let reference = '';
      await withBlobs(store, async ({ put, handle }) => {
        reference = await put(bytesOf(1));
        await handle.append([notice('c', 0)], 0);
      });
      await store.delete('c');
      await withBlobs(store, ({ get }) => refused('store', () => get(reference)));
      assert.deepEqual(await stored(store, 'c'), []);
    },
  ],
  [
    'a closed handle neither puts nor gets',
    async (store) => {
      const handle = await store.open('c');
      const reference = await handle.putBlob?.(bytesOf(1), PNG);
      await handle.close();
      if (reference === undefined) return;
      await refused('closed', () => handle.putBlob?.(bytesOf(1), PNG));
      await refused('closed', () => handle.getBlob?.(reference));
    },
  ],
];

interface Blobs {
  put(bytes: Uint8Array, mediaType?: string): Promise<string>;
  get(reference: string): Promise<Uint8Array>;
  handle: LogHandle;
}

const PNG = 'image/png';
const bytesOf = (...numbers: number[]): Uint8Array => new Uint8Array(numbers);

/** Does nothing if the store has no blobs. */
async function withBlobs(store: LogStore, use: (blobs: Blobs) => Promise<unknown>, id = 'c'): Promise<void> {
  await opened(store, id, async (handle) => {
    if (!handle.putBlob || !handle.getBlob) return;
    const put = handle.putBlob.bind(handle);
    const get = handle.getBlob.bind(handle);
    await use({ put: (bytes, mediaType = PNG) => put(bytes, mediaType), get, handle });
  });
}

async function sha256Hex(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new Uint8Array(bytes));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
