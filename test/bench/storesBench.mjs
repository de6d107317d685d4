/**
 * Appends a second of each store: one conversation that waits for each append, and a hundred that do so at once. Beside them: a line and
 * an fsync, and one transaction for each append. `node test/bench/storesBench.mjs 3`: seconds for each figure. Needs Node 22.13 for
 * SQLite and Debian's PostgreSQL for the rest; missing stores are left out. Run it on a machine that does nothing else.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { memoryStore } from '../../dist/src/index.js';
import { jsonlStore } from '../../dist/src/node.js';
import { postgresStore } from '../../dist/src/stores/postgres/postgresStore.js';

const MANY = 100;
const seconds = Number(process.argv[2] ?? 2);
const directory = mkdtempSync(join(tmpdir(), 'runchart-stores-'));
const entryOf = (id, seq) => ({
  seq,
  at: 1_700_000_000_000 + seq,
  conversationId: id,
  runId: 'run_1',
  type: 'agent-output',
  item: { type: 'assistant', text: `An answer of usual length, entry ${seq}. `.repeat(8) },
});

/** Appends a second, of `count` writers that each wait for their own append. */
async function rate(count, makeWriter) {
  const writers = await Promise.all(Array.from({ length: count }, (_, index) => makeWriter(`c${index}`)));
  // The first appends compile the code that they need.
  const begin = performance.now() + 500;
  const end = begin + seconds * 1000;
  const counts = writers.map(async ({ append }) => {
    let done = 0;
    for (let seq = 0; ; seq += 1) {
      const now = performance.now();
      if (now >= end) return done;
      if (now >= begin) done += 1;
      await append(seq);
    }
  });
  const done = (await Promise.all(counts)).reduce((sum, each) => sum + each, 0);
  await Promise.all(writers.map(({ close }) => close()));
  return done / seconds;
}

const writersOf = (store, name) => async (id) => {
  const handle = await store.open(`${name}-${id}`);
  return {
    append: (seq) => handle.append([Object.freeze(entryOf(`${name}-${id}`, seq))], seq),
    close: () => handle.close(),
  };
};

async function show(name, makeStore) {
  const rates = [];
  for (const count of [1, MANY]) {
    const { writer, close = async () => {} } = await makeStore(count);
    rates.push(await rate(count, writer));
    await close();
  }
  const [one, many] = rates.map((each) => Math.round(each).toLocaleString('en'));
  console.log(`| ${name.padEnd(52)} | ${one.padStart(9)} | ${many.padStart(9)} |`);
}

/** A line in a file of its own, then an fsync. */
const rawFsync = (count) => ({
  async writer(id) {
    const file = await open(join(directory, `raw-${count}-${id}`), 'a');
    return {
      async append(seq) {
        await file.write(`${JSON.stringify(entryOf(id, seq))}\n`);
        await file.datasync();
      },
      close: () => file.close(),
    };
  },
});

/** Debian's PostgreSQL, as the tests start it. */
async function postgres() {
  const cache = join(import.meta.dirname, '../../node_modules/.cache/runchart');
  mkdirSync(cache, { recursive: true });
  const outfile = join(cache, 'postgresServer.mjs');
  const entry = join(import.meta.dirname, '../support/postgresServer.ts');
  await build({ entryPoints: [entry], outfile, format: 'esm', platform: 'node', bundle: true, packages: 'external' });
  const { hasPostgres, startPostgres } = await import(pathToFileURL(outfile).href);
  return hasPostgres ? startPostgres() : undefined;
}

/** One transaction for each append, as a program without leases writes it. */
async function transactions(pool, count) {
  const table = `plain_${count}`;
  await pool.query(
    `create table if not exists ${table} (conversation text, seq integer, entry text, primary key (conversation, seq))`,
  );
  await pool.query(`truncate ${table}`);
  return {
    async writer(id) {
      return {
        async append(seq) {
          const connection = await pool.connect();
          try {
            await connection.query('begin');
            await connection.query(`select max(seq) from ${table} where conversation = $1`, [id]);
            await connection.query(`insert into ${table} values ($1, $2, $3)`, [
              id,
              seq,
              JSON.stringify(entryOf(id, seq)),
            ]);
            await connection.query('commit');
          } finally {
            connection.release();
          }
        },
        close: async () => {},
      };
    },
  };
}

async function showPostgres() {
  const server = await postgres();
  if (!server) return console.log('PostgreSQL is not installed');
  try {
    for (const [commit, name] of [
      ['off', 'commits without the disk'],
      ['on', 'commits to the disk'],
    ]) {
      await server.pool({ max: 1 }).query(`alter system set synchronous_commit = '${commit}'`);
      await server.pool({ max: 1 }).query('select pg_reload_conf()');
      const pool = server.pool({ max: 10 });
      await show(`postgresStore, server ${name}`, async (count) => {
        const store = postgresStore(pool, { schema: `bench_${commit}_${count}`, leaseMs: 60_000 });
        return { writer: writersOf(store, `${count}`), close: () => store.close() };
      });
      await show(`a transaction an append, server ${name}`, (count) => transactions(pool, count));
    }
  } finally {
    await server.stop();
  }
}

try {
  console.log(`Node ${process.version}, ${seconds} s for each figure\n`);
  console.log(`| ${'appends a second'.padEnd(52)} |    1 conv. | ${MANY} conv. |`);
  console.log(`| ${'-'.repeat(52)} | --------: | --------: |`);
  await show('memoryStore', async () => ({ writer: writersOf(memoryStore(), 'm') }));
  for (const durability of ['process', 'power'])
    await show(`jsonlStore, durability ${durability}`, async (count) => ({
      writer: writersOf(jsonlStore(join(directory, `${durability}-${count}`), { durability }), 'j'),
    }));
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 13)) {
    const { sqliteStore } = await import('../../dist/src/stores/sqlite/sqliteStore.js');
    for (const durability of ['process', 'power'])
      await show(`sqliteStore, durability ${durability}`, async (count) => {
        const store = sqliteStore(join(directory, `${durability}-${count}.sqlite`), { durability });
        return { writer: writersOf(store, 's'), close: () => store.close() };
      });
  }
  await show('a line and an fsync, a file each', async (count) => rawFsync(count));
  await showPostgres();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
