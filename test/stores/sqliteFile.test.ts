/** Tests of the SQLite store's own: its file, its leases across processes, commits that share a sync, and damage. */
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/stores/sqlite/nodeSqlite.ts';
import {
  all,
  conversation,
  notice,
  notices,
  opened,
  refused,
  stored,
  write,
} from '../../src/testing/storeSuite/storeCase.ts';
import { startChild } from './childProcess.ts';
import { hasSqlite, sqlitePlaces } from './sqlitePlace.ts';

const { place, file } = sqlitePlaces();

/** Changes the file without its store. */
function changed(path: string, sql: string): void {
  const { DatabaseSync } = createRequire(import.meta.url)('node:sqlite') as {
    DatabaseSync: new (path: string) => Database;
  };
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

/** A process that has the store, and `entry(seq)`. */
const childOf = (path: string, script: string) =>
  startChild(`
    import { writeSync } from 'node:fs';
    import { sqliteStore } from ${JSON.stringify(file())};
    const say = (text) => writeSync(1, text + '\\n');
    const entry = (seq) => ({ seq, at: seq, conversationId: 'c', runId: null, type: 'notice', code: 'n', text: 't' });
    const store = sqliteStore(${JSON.stringify(path)}, { durability: 'power' });
    ${script}
  `);

/** The commits in the write-ahead log: frames that name the size of the database. */
async function commitsIn(path: string): Promise<number> {
  const bytes = await readFile(`${path}-wal`);
  const frame = 24 + bytes.readUInt32BE(8);
  let commits = 0;
  for (let at = 32; at + frame <= bytes.length; at += frame) if (bytes.readUInt32BE(at + 4) > 0) commits += 1;
  return commits;
}

describe.runIf(hasSqlite)('the file of a SQLite store', () => {
  test('it is created with the first conversation, for its owner alone', async () => {
    const { path, store } = await place();
    expect([await store.list(), await store.delete('c')]).toEqual([[], undefined]);
    await refused('not_found', () => store.open('c', { existing: true }));
    await expect(stat(path)).rejects.toThrow('ENOENT');
    await write(store, 'c', [conversation('c')]);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test('it outlives its store, whose close ends what is open and may be repeated', async () => {
    const { path, store, again } = await place();
    const handle = await store.open('c');
    const append = handle.append([notice('c', 0)], 0);
    await Promise.all([store.close(), append]);
    await store.close();
    for (const act of [() => handle.append([], 1), () => store.open('c'), () => store.list()])
      await refused('closed', act);
    await expect(stat(`${path}-wal`)).rejects.toThrow('ENOENT');
    expect(await stored(again(), 'c')).toEqual([notice('c', 0)]);
  });

  test.for([0, 1, 3])(
    'its close, %i turns after openings, releases everything that they have opened',
    async (turns) => {
      const { store, again } = await place();
      const openings = ['a', 'b', 'c'].map((id) => store.open(id));
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      await store.close();
      await Promise.allSettled(openings);
      for (const id of ['a', 'b', 'c']) await (await again().open(id)).close();
    },
  );

  test('an opening during its close is refused, and the conversation is free', async () => {
    const { store, again } = await place();
    await write(store, 'a', [conversation('a')]);
    await store.open('a');
    const closed = store.close();
    await refused('closed', () => store.open('b'));
    await closed;
    await (await again().open('b')).close();
  });

  test('its list refuses a wrong cursor, also before there is a file', async () => {
    const { store } = await place();
    await refused('configuration', () => store.list({ cursor: 'x' }));
  });

  test('another file in its place is refused and left as it is', async () => {
    for (const content of ['no database', '']) {
      const { path, store } = await place();
      await writeFile(path, content.padEnd(4096, '.'));
      await refused('no_header', () => store.open('c'));
      expect(await readFile(path, 'utf8')).toBe(content.padEnd(4096, '.'));
    }
    const { path, store } = await place();
    changed(path, 'CREATE TABLE things (name TEXT)');
    const before = await readFile(path);
    await refused('no_header', () => store.open('c'));
    expect((await readFile(path)).equals(before)).toBe(true);
  });

  test('a directory or a pipe in its place is no file, and a later version is refused', async () => {
    const { path, store } = await place();
    await mkdir(path);
    await refused('not_a_file', () => store.open('c'));
    await rm(path, { recursive: true });
    execFileSync('mkfifo', [path]);
    await refused('not_a_file', () => store.open('c'));
    const other = await place();
    await write(other.store, 'c', [conversation('c')]);
    await other.store.close();
    changed(other.path, 'PRAGMA user_version = 2');
    await refused('version', () => other.again().open('c'));
  });

  test('a link leads to one database, whichever name it has', async () => {
    const { path, store, again } = await place();
    await opened(store, 'c', async () => {
      await symlink(path, join(path, '..', 'link.db'));
      expect(await readFile(join(path, '..', 'link.db'))).toBeDefined();
      await refused('session_busy', () => again().open('c'));
    });
  });

  test('a file that was replaced takes no append', async () => {
    const { path, store } = await place();
    await opened(store, 'c', async (handle) => {
      await handle.append([notice('c', 0)], 0);
      await rename(path, `${path}.old`);
      await refused('store_conflict', () => handle.append([notice('c', 1)], 1));
      await rename(`${path}.old`, path);
      await handle.append([notice('c', 1)], 1);
    });
    expect(await stored(store, 'c')).toEqual(notices('c', 0, 2));
  });

  test('options and paths that cannot work are refused at the call', async () => {
    const { again } = await place();
    expect(() => again({ durability: 'disk' } as never)).toThrow(expect.objectContaining({ code: 'configuration' }));
    expect(() => again({ wal: true } as never)).toThrow(expect.objectContaining({ code: 'configuration' }));
  });

  test('appends of many conversations at once share a few commits', async () => {
    const { path, store } = await place({ durability: 'power' });
    const ids = Array.from({ length: 50 }, (_, index) => `c${index}`);
    const handles = await Promise.all(ids.map((id) => store.open(id)));
    const before = await commitsIn(path);
    await Promise.all(handles.map((handle, index) => handle.append([conversation(ids[index] ?? '')], 0)));
    expect((await commitsIn(path)) - before).toBeLessThanOrEqual(10);
  });
});

describe.runIf(hasSqlite)('a log that was damaged', () => {
  test.each([
    ['corrupt', "UPDATE entries SET entry = '{' WHERE seq = 1"],
    ['corrupt', "UPDATE entries SET entry = '[]' WHERE seq = 1"],
    ['corrupt', `UPDATE entries SET entry = '{"seq":1,"at":"now"}' WHERE seq = 1`],
    ['gap', 'DELETE FROM entries WHERE seq = 1'],
    ['gap', 'UPDATE entries SET seq = 7 WHERE seq = 2'],
  ])('is %s after %s', async (code, sql) => {
    const { path, store, again } = await place();
    await write(store, 'c', [conversation('c'), ...notices('c', 1, 2)]);
    await store.close();
    changed(path, sql);
    const damaged = again();
    await refused(code, () => stored(damaged, 'c'));
    await write(damaged, 'other', [conversation('other')]);
    expect((await damaged.list()).length).toBe(2);
  });

  test('bytes that changed are corrupt, and a row that was lost is folded again', async () => {
    const { path, store, again } = await place();
    const reference = await opened(store, 'c', async (handle) => {
      await handle.append([conversation('c'), notice('c', 1)], 0);
      return handle.putBlob?.(new Uint8Array([1, 2]), 'image/png');
    });
    await store.close();
    changed(path, "UPDATE blobs SET bytes = x'0102ff'; UPDATE conversations SET row = NULL");
    const damaged = again();
    await opened(damaged, 'c', async (handle) => {
      await refused('corrupt', () => handle.getBlob?.(reference ?? ''));
      await handle.append([notice('c', 2)], 2);
    });
    expect(await damaged.list()).toMatchObject([{ id: 'c', cwd: '/home/case', updatedAt: notice('c', 2).at }]);
  });
});

describe.runIf(hasSqlite)('the lease of a conversation', () => {
  test('it keeps other processes out while its process lives, and is free at once when that is killed', async () => {
    const { path, store } = await place();
    const child = childOf(
      path,
      "const handle = await store.open('c'); await handle.append([entry(0)], 0); setInterval(() => {}, 1000); say('open');",
    );
    expect(await child.line()).toBe('open');
    await refused('session_busy', () => store.open('c'));
    await refused('session_busy', () => store.delete('c'));
    expect((await store.list()).map(({ id, status }) => [id, status])).toEqual([['c', 'active']]);
    await child.kill();
    expect((await store.list())[0]?.status).toBe('idle');
    await opened(store, 'c', async (handle) => expect(await all(handle)).toHaveLength(1));
  });

  test('a writer whose lease was taken away appends nothing more', async () => {
    const { path, store } = await place();
    const handle = await store.open('c');
    await handle.append([notice('c', 0)], 0);
    changed(path, "UPDATE conversations SET token = 'other'");
    await refused('store_conflict', () => handle.append([notice('c', 1)], 1));
    await refused('store_conflict', () => handle.putBlob?.(new Uint8Array(1), 'image/png'));
  });

  test('two processes and this one write at once, each its own conversation', async () => {
    const { path, store } = await place();
    const script = (id: string) => `
      const handle = await store.open('${id}');
      for (let seq = 0; seq < 30; seq += 1) await handle.append([entry(seq)], seq);
      await handle.close();
      await store.close();
      say('done');
    `;
    const children = ['a', 'b'].map((id) => childOf(path, script(id)));
    await write(store, 'own', notices('own', 0, 30));
    for (const child of children) expect(await child.line()).toBe('done');
    for (const id of ['a', 'b', 'own']) expect(await stored(store, id)).toHaveLength(30);
  });

  test('a store without work keeps no process alive', async () => {
    const { path } = await place();
    const child = childOf(
      path,
      "const handle = await store.open('c'); await handle.append([entry(0)], 0); say('idle');",
    );
    expect(await child.line()).toBe('idle');
    await new Promise((resolve) => child.process.once('exit', resolve));
    expect(child.process.exitCode).toBe(0);
  });

  test('a thread that fails rejects what waits for it; the next request starts another one, which keeps the process alive until its answer', async () => {
    const { path } = await place();
    const child = startChild(`
      import { writeSync } from 'node:fs';
      import { createRequire, syncBuiltinESMExports } from 'node:module';
      const say = (text) => writeSync(1, text + '\\n');
      const threads = createRequire('file:///x.js')('node:worker_threads');
      const { Worker } = threads;
      const made = [];
      threads.Worker = class extends Worker {
        constructor(...options) {
          super(...options);
          made.push(this);
        }
      };
      syncBuiltinESMExports();
      const { sqliteStore } = await import(${JSON.stringify(file())});
      const store = sqliteStore(${JSON.stringify(path)});
      for (const time of [1, 2, 3]) {
        const waiting = [store.open('c'), store.open('d')].map((asked) => asked.then(() => 'opened', ({ code }) => code));
        while (made.length < time) await new Promise((resolve) => setImmediate(resolve));
        await made.at(-1).terminate();
        say((await Promise.all(waiting)).join());
      }
      const other = await store.open('e');
      await other.close();
      say('answered by ' + made.length);
    `);
    for (let time = 1; time <= 3; time += 1) expect(await child.line()).toBe('store,store');
    expect(await child.line()).toBe('answered by 4');
    await expect.poll(() => child.process.exitCode).toBe(0);
  });
});
