/** The places for large contents: a directory, a table of PostgreSQL, and a bucket, whose server is one of the test. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { blobBucket } from '../../src/restate/blobBucket.ts';
import { type BlobStore, blobDirectory } from '../../src/restate/blobStore.ts';
import { blobStoreOf } from '../../src/restate/blobsOfStore.ts';
import { blobTable } from '../../src/restate/blobTable.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import type { LogStore } from '../../src/stores/logStore.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { postgresStore } from '../../src/stores/postgres/postgresStore.ts';
import { sha256 } from '../../src/stores/sha256.ts';
import { pglitePool } from '../support/pglitePool.ts';

const PAGE = 2;
const keys = { accessKeyId: 'KEY', secretAccessKey: 'SECRET' };

/** A bucket of one server: it takes signed requests, and lists two names a page. */
async function bucketServer() {
  const objects = new Map<string, Buffer>();
  const failures: number[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://here');
    const key = decodeURIComponent(pathname.replace(/^\/bucket\//, ''));
    const failure = failures.shift();
    const isSigned = /^AWS4-HMAC-SHA256 Credential=KEY\/\d{8}\/eu-west-9\/s3\/aws4_request/.test(
      request.headers.authorization ?? '',
    );
    if (failure !== undefined || !isSigned) response.writeHead(failure ?? 403).end('<Error/>');
    else if (request.method === 'PUT') response.end(void objects.set(key, Buffer.concat(chunks)));
    else if (request.method === 'DELETE') response.writeHead(objects.delete(key) ? 204 : 404).end();
    else if (searchParams.get('list-type') === '2') {
      const after = searchParams.get('continuation-token') ?? '';
      const found = [...objects.keys()].sort().filter((name) => name.startsWith(searchParams.get('prefix') ?? ''));
      const page = found.filter((name) => name > after).slice(0, PAGE);
      const more = found.at(-1) === page.at(-1) ? '' : `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>`;
      response.end(`<List>${page.map((name) => `<Contents><Key>${name}</Key></Contents>`).join('')}${more}</List>`);
    } else if (objects.has(key)) response.end(objects.get(key));
    else response.writeHead(404).end('<Error><Code>NoSuchKey</Code></Error>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterAll(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/bucket`, objects, failures };
}

/** The blobs of a store, which lists nothing. */
function ofStore(store: LogStore): Place {
  const blobs = blobStoreOf(store) as BlobStore;
  return { store: blobs, count: async () => ((await store.list()).length === 0 ? 1 : Number.NaN), spoil: undefined };
}

interface Place {
  store: BlobStore;
  /** The number of contents that are kept. */
  count(): Promise<number> | number;
  /** Changes all of them. */
  spoil: (() => Promise<unknown> | undefined) | undefined;
}

const directory = mkdtempSync(join(tmpdir(), 'runchart-blobs-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const bucket = await bucketServer();
let schemas = 0;

const PLACES: Record<string, () => Place> = {
  blobDirectory: () => {
    const path = join(directory, `${readdirSync(directory).length}`);
    const files = () => readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    return {
      store: blobDirectory(path),
      count: () => files().length,
      spoil: () => void files().map((file) => writeFileSync(join(file.parentPath, file.name), 'x')),
    };
  },
  blobTable: () => {
    schemas += 1;
    const schema = `blobs_${schemas}`;
    const rows = async (statement: string) => (await pglitePool().query(statement)).rows;
    return {
      store: blobTable(pglitePool(), { schema }),
      count: async () => Number((await rows(`select count(*) as count from ${schema}.contents`))[0]?.count),
      spoil: () => rows(`update ${schema}.contents set bytes = 'x'`),
    };
  },
  'a store of conversations in memory': () => ofStore(memoryStore()),
  'a store of conversations in files': () => ofStore(jsonlStore(join(directory, `store-${schemas++}`))),
  'a store of conversations in PostgreSQL': () => {
    schemas += 1;
    return ofStore(postgresStore(pglitePool(), { schema: `store_${schemas}` }));
  },
  blobBucket: () => {
    bucket.objects.clear();
    return {
      store: blobBucket({ url: `${bucket.url}/`, ...keys, region: 'eu-west-9' }),
      count: () => bucket.objects.size,
      spoil: () => void [...bucket.objects.keys()].map((key) => bucket.objects.set(key, Buffer.from('x'))),
    };
  },
};

const contents = (text: string): { name: string; bytes: Uint8Array } => {
  const bytes = new TextEncoder().encode(text);
  return { name: sha256(bytes), bytes };
};

describe.each(Object.entries(PLACES))('%s', (_, made) => {
  const { name, bytes } = contents('large contents \0 ü 🎉');
  const id = '../a \0 "b" ü';

  it('gives the bytes back that were stored, also stored twice and at once, for their conversation alone', async () => {
    const { store, count } = made();
    await Promise.all([store.put(id, name, bytes), store.put(id, name, bytes)]);
    await store.put(id, name, bytes);
    expect(Buffer.from(await store.get(id, name))).toEqual(Buffer.from(bytes));
    expect(await count()).toBe(1);
    await expect(store.get('another', name)).rejects.toMatchObject({ code: 'store' });
  });

  it('deletes all contents of one conversation, and no others', async () => {
    const { store, count } = made();
    for (const text of ['1', '2', '3', '4', '5']) await store.put(id, contents(text).name, contents(text).bytes);
    await store.put('another', name, bytes);
    await store.delete(id);
    await store.delete(id);
    expect(await count()).toBe(1);
    await expect(store.get(id, contents('1').name)).rejects.toMatchObject({ code: 'store' });
    expect(Buffer.from(await store.get('another', name))).toEqual(Buffer.from(bytes));
  });

  it('deletes the contents of a conversation for several deletions at once, each of which succeeds', async () => {
    const { store, count } = made();
    for (const text of ['1', '2', '3', '4', '5']) await store.put(id, contents(text).name, contents(text).bytes);
    await store.put('another', name, bytes);
    await Promise.all([store.delete(id), store.delete(id), store.delete('nothing'), store.delete(id)]);
    expect(await count()).toBe(1);
    expect(Buffer.from(await store.get('another', name))).toEqual(Buffer.from(bytes));
  });

  it('refuses contents that were changed', async () => {
    const { store, spoil } = made();
    // The stores have suites of their own.
    if (!spoil) return;
    await store.put(id, name, bytes);
    await spoil();
    await expect(store.get(id, name)).rejects.toMatchObject({ code: 'corrupt' });
  });
});

describe('blobBucket', () => {
  const { name, bytes } = contents('large');
  const store = blobBucket({ url: bucket.url, ...keys, region: 'eu-west-9' });

  it('tries again where the server is busy', async () => {
    bucket.failures.push(503);
    await store.put('one', name, bytes);
    expect(Buffer.from(await store.get('one', name))).toEqual(Buffer.from(bytes));
  });

  it('names the bucket and what it answered, and no secret', async () => {
    const stranger = blobBucket({ url: bucket.url, accessKeyId: 'OTHER', secretAccessKey: 'WORD-1234' });
    const error = await stranger.put('one', name, bytes).catch((cause: Error) => cause);
    expect(error).toMatchObject({ code: 'store' });
    expect(String(error)).toContain('403');
    expect(String(error)).not.toContain('WORD-1234');
  });

  it.each([
    [{}],
    [{ url: 'ftp://x', ...keys }],
    [{ url: bucket.url }],
    [{ url: bucket.url, ...keys, prefix: 'a b' }],
    [{ url: bucket.url, ...keys, buckets: 1 }],
  ])('refuses %j', (options) => {
    expect(() => blobBucket(options as never)).toThrow(/blobBucket/);
  });
});

describe('blobTable', () => {
  it.each([1, 2, 3])('works again after its statement %i has failed, at its first use or later', async (failing) => {
    schemas += 1;
    let statements = 0;
    const pool = {
      query: (text: string, values?: unknown[]) => {
        statements += 1;
        return statements === failing ? Promise.reject(new Error('no connection')) : pglitePool().query(text, values);
      },
    };
    const store = blobTable(pool, { schema: `blobs_${schemas}` });
    const { name, bytes } = contents('large');
    await expect(store.put('one', name, bytes)).rejects.toThrow('no connection');
    await store.put('one', name, bytes);
    expect(Buffer.from(await store.get('one', name))).toEqual(Buffer.from(bytes));
  });

  it.each([
    [undefined, {}],
    [{}, {}],
    [pglitePool(), { schema: 'a; drop' }],
    [pglitePool(), { table: 'x' }],
  ])('refuses a pool %j with %j', (pool, options) => {
    expect(() => blobTable(pool as never, options as never)).toThrow(/blobTable|schema/);
  });
});
