/** Large contents of conversations on an engine, and the directory that keeps them. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { blobDirectory } from '../../src/restate/blobStore.ts';
import { ContentStore, INLINE_CHARACTERS, LARGEST_CHARACTERS } from '../../src/restate/contentStore.ts';

const directory = mkdtempSync(join(tmpdir(), 'runchart-blobs-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const large = { text: 'ü'.repeat(INLINE_CHARACTERS) };
/** The kept files of all conversations. */
const filesIn = (path: string): string[] =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

describe('large contents', () => {
  it('contents of at most 64 KiB stay in the engine', async () => {
    const contents = new ContentStore(blobDirectory(join(directory, 'small')), 'one');
    const value = { text: 'x'.repeat(INLINE_CHARACTERS - 20) };
    expect(await contents.shorten(value)).toBe(value);
  });

  it('larger contents are in the blob store, and another worker finds them by their name', async () => {
    const path = join(directory, 'shared');
    const name = await new ContentStore(blobDirectory(path), 'one').shorten(large);
    expect(JSON.stringify(name).length).toBeLessThan(100);
    expect(await new ContentStore(blobDirectory(path), 'one').whole(name)).toEqual(large);
    await expect(new ContentStore(blobDirectory(path), 'two').whole(name)).rejects.toMatchObject({ code: 'store' });
  });

  it('the same contents have the same name in each attempt, and are kept once', async () => {
    const path = join(directory, 'again');
    const names = [];
    for (let attempt = 0; attempt < 2; attempt += 1)
      names.push(await new ContentStore(blobDirectory(path), 'one').shorten(large));
    expect(names[1]).toEqual(names[0]);
    expect(filesIn(path)).toHaveLength(1);
  });

  it('an image has its reference at once, and `settled` waits until it is stored', async () => {
    const path = join(directory, 'images');
    const contents = new ContentStore(blobDirectory(path), 'one');
    const reference = contents.put(new Uint8Array([1, 2, 3]), 'image/png');
    expect(reference).toMatch(/^blob:[0-9a-f]{64}:image\/png$/);
    await contents.settled();
    expect(filesIn(path)).toHaveLength(1);
    expect(await new ContentStore(blobDirectory(path), 'one').get(reference)).toEqual(new Uint8Array([1, 2, 3]));
  });

  it('an image that cannot be stored is an error for whoever waits', async () => {
    const path = join(directory, 'file');
    writeFileSync(path, '');
    const contents = new ContentStore(blobDirectory(path), 'one');
    contents.put(new Uint8Array([1]), 'image/png');
    await expect(contents.settled()).rejects.toMatchObject({ code: 'store' });
  });

  it('`settled` waits for every image, and fails for the first, a middle or the last one that cannot be stored', async () => {
    for (const failing of [0, 1, 2, undefined]) {
      const released: (() => void)[] = [];
      const store = {
        put: () => {
          const at = released.length;
          return new Promise<void>((resolve, reject) => {
            released.push(() => (at === failing ? reject(new Error('full')) : resolve()));
          });
        },
      };
      const contents = new ContentStore(store as never, 'one');
      for (const byte of [1, 2, 3]) contents.put(new Uint8Array([byte]), 'image/png');
      let state = 'waits';
      const settled = contents.settled().then(
        () => (state = 'stored'),
        () => (state = 'failed'),
      );
      for (const release of released.slice(1).reverse()) release();
      await new Promise((resolve) => setImmediate(resolve));
      if (failing !== 1 && failing !== 2) expect(state).toBe('waits');
      released[0]?.();
      await settled;
      expect(state).toBe(failing === undefined ? 'stored' : 'failed');
    }
  });

  it('contents that were changed are an error', async () => {
    const path = join(directory, 'changed');
    const name = await new ContentStore(blobDirectory(path), 'one').shorten(large);
    writeFileSync(filesIn(path)[0] ?? '', '"other"');
    await expect(new ContentStore(blobDirectory(path), 'one').whole(name)).rejects.toMatchObject({ code: 'corrupt' });
  });

  it('the contents of a deleted conversation are deleted, and no others', async () => {
    const path = join(directory, 'deleted');
    const store = blobDirectory(path);
    for (const id of ['../one', 'two']) await new ContentStore(store, id).shorten(large);
    await store.delete('../one');
    expect(filesIn(path)).toHaveLength(1);
  });

  it('without a blob store, contents have a limit', async () => {
    const contents = new ContentStore(undefined, 'one');
    expect(await contents.shorten(large)).toBe(large);
    await expect(contents.shorten('x'.repeat(LARGEST_CHARACTERS))).rejects.toMatchObject({ code: 'too_large' });
    const name = { storedAs: '0'.repeat(64) };
    await expect(contents.whole(name)).rejects.toMatchObject({ code: 'store' });
  });

  it.each([[''], [undefined], [7]])('a directory needs a path: %j', (path) => {
    expect(() => blobDirectory(path as string)).toThrow(/path of a directory/);
  });
});
