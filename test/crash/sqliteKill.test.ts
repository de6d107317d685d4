/** The twelve runs in real processes on a SQLite store, killed in and around every append, and in their tools. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAgent, type LogEntry } from '../../src/index.ts';
import { stored } from '../../src/testing/storeSuite/storeCase.ts';
import { bundleSqlite, hasSqlite, type SqliteModule } from '../stores/sqlitePlace.ts';
import { proves, sampled, volume } from '../support/tier.ts';
import { type CanonicalRun, canonicalModel, canonicalRuns, canonicalTools, goOn } from './canonicalRuns.ts';
import { expectSameEnd } from './compareRuns.ts';

/** Times in which the thread of the store begins a transaction, writes it, syncs it and answers. */
const DELAYS_MS = [0, 0.2, 0.5, 1, 2, 4, 8];

let folder = '';
let script = '';
let sqlite: SqliteModule;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'runchart-kill-'));
  script = join(folder, 'child.js');
  const file = await bundleSqlite(folder);
  const entryPoints = [fileURLToPath(new URL('./sqliteProcess.ts', import.meta.url))];
  await build({ entryPoints, bundle: true, platform: 'node', format: 'esm', outfile: script, logLevel: 'error' });
  sqlite = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as SqliteModule;
});
afterAll(() => rm(folder, { recursive: true, force: true }));

type Note = { acked: LogEntry[] } | { ran: string };

interface Life {
  path: string;
  signal: string | null;
  acked: LogEntry[];
  appends: number;
  ran: string[];
}
let lives = 0;
async function live(run: CanonicalRun, moment = 'none'): Promise<Life> {
  lives += 1;
  const path = join(folder, `${lives}.db`);
  const paper = join(folder, `${lives}.notes`);
  const signal = await new Promise<string | null>((resolve) => {
    const child = execFile(process.execPath, [script, run.name, path, paper, moment], () => resolve(child.signalCode));
  });
  const lines = existsSync(paper) ? (await readFile(paper, 'utf8')).split('\n').filter(Boolean) : [];
  const notes = lines.map((line) => JSON.parse(line) as Note);
  const acked = notes.flatMap((note) => ('acked' in note ? [note.acked] : []));
  const ran = notes.flatMap((note) => ('ran' in note ? [note.ran] : []));
  return { path, signal, acked: acked.flat(), appends: acked.length, ran };
}

/** Opens the conversation of a dead process and ends its run. */
async function goneOn(run: CanonicalRun, path: string, ran: string[], acked: readonly LogEntry[]) {
  const store = sqlite.sqliteStore(path);
  expect((await stored(store, 'c')).slice(0, acked.length)).toEqual(acked);
  const policies = { ...run.policies, modelRetry: { baseMs: 1 } };
  const tools = canonicalTools((key) => ran.push(key));
  const agent = createAgent({ model: canonicalModel(run), tools, policies, store, cwd: '/' });
  const conversation = await agent.open('c');
  await goOn(conversation, run);
  const log = conversation.log();
  await agent.close();
  expect((await store.list()).map(({ id, turns }) => [id, turns])).toEqual([
    ['c', log.filter(({ type }) => type === 'model-reply').length],
  ]);
  await store.close();
  return log;
}

describe.runIf(hasSqlite && proves)('a process killed in and around each append to SQLite, and in its tools', () => {
  it.each(sampled(canonicalRuns, volume.killedRunOf))(
    'INV-5, I20, I21, CKPT-4: $name loses no acknowledged entry, runs nothing twice and continues to the same end',
    async (run) => {
      const whole = await live(run);
      expect(whole.signal).toBeNull();
      const uncut = await goneOn(run, whole.path, [], whole.acked);
      const appends = Array.from({ length: whole.appends }, (_, index) => index + 1);
      const moments = [
        ...appends.flatMap((append) => [...DELAYS_MS.map((ms) => `asked:${append}:${ms}`), `acked:${append}`]),
        ...whole.ran.flatMap((_, index) => [`called:${index + 1}`, `did:${index + 1}`]),
      ];
      for (const moment of sampled(moments, volume.killOf)) {
        const { path, signal, acked, ran } = await live(run, moment);
        expect(signal, moment).toBe('SIGKILL');
        const log = await goneOn(run, path, ran, acked).catch((cause: unknown) => {
          throw new Error(`${moment}: ${cause}`, { cause });
        });
        expectSameEnd(uncut, log, ran);
      }
    },
  );
});
