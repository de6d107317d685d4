/**
 * The twelve runs in real processes on a real disk, killed during and around every write of their log, and in their
 * tools.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Agent, createAgent, type LogEntry } from '../../src/index.ts';
import { jsonlStore } from '../../src/node.ts';
import { sampled, volume } from '../support/tier.ts';
import { type CanonicalRun, canonicalModel, canonicalRuns, canonicalTools, goOn } from './canonicalRuns.ts';
import { expectSameEnd } from './compareRuns.ts';

let folder = '';
let script = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'runchart-kill-'));
  script = join(folder, 'child.mjs');
  const entryPoints = [fileURLToPath(new URL('./crashingProcess.ts', import.meta.url))];
  await build({ entryPoints, bundle: true, platform: 'node', format: 'esm', outfile: script });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The events that the process made durable beside its log, in order. */
type Note = { write: number; bytes: number } | { synced: number } | { acked: LogEntry[] } | { ran: string };

interface Life {
  directory: string;
  signal: string | null;
  notes: Note[];
}
let lives = 0;
async function live(run: CanonicalRun, moment = 'none'): Promise<Life> {
  lives += 1;
  const directory = join(folder, `${lives}`);
  const paper = join(folder, `${lives}.notes`);
  const signal = await new Promise<string | null>((resolve) => {
    const child = execFile(process.execPath, [script, run.name, directory, paper, moment], () =>
      resolve(child.signalCode),
    );
  });
  const lines = existsSync(paper) ? (await readFile(paper, 'utf8')).split('\n').filter(Boolean) : [];
  return { directory, signal, notes: lines.map((line) => JSON.parse(line)) };
}

const ranIn = (notes: readonly Note[]): string[] => notes.flatMap((note) => ('ran' in note ? [note.ran] : []));
const ackedIn = (notes: readonly Note[]): LogEntry[] => notes.flatMap((note) => ('acked' in note ? note.acked : []));
const syncedIn = (notes: readonly Note[]): number =>
  notes.reduce((last, note) => ('synced' in note ? note.synced : last), 0);

async function storedIn(directory: string): Promise<LogEntry[]> {
  const handle = await jsonlStore(directory).open('c');
  const entries: LogEntry[] = [];
  for await (const entry of handle.read()) entries.push(entry);
  await handle.close();
  return entries;
}

const agentOn = (run: CanonicalRun, directory: string, ran: string[]): Agent =>
  createAgent({
    model: canonicalModel(run),
    tools: canonicalTools((key) => ran.push(key)),
    policies: { ...run.policies, modelRetry: { baseMs: 1 } },
    store: jsonlStore(directory),
    cwd: '/',
  });

async function goneOn(run: CanonicalRun, directory: string, ran: string[]): Promise<readonly LogEntry[]> {
  const agent = agentOn(run, directory, ran);
  const conversation = await agent.open('c');
  await goOn(conversation, run);
  const log = conversation.log();
  await agent.close();
  return log;
}

/** Every moment at which a life of this run may be killed. */
function momentsOf(notes: readonly Note[]): string[] {
  const writes = notes.flatMap((note) => ('write' in note ? [note] : []));
  return [
    ...writes.flatMap(({ write, bytes }) => [
      ...[0, 1, Math.floor(bytes / 2), bytes - 1].map((cut) => `write:${write}:${cut}`),
      ...['written', 'lost', 'synced', 'acked'].map((when) => `${when}:${write}`),
    ]),
    ...ranIn(notes).flatMap((_, index) => [`called:${index + 1}`, `did:${index + 1}`]),
  ];
}

/** `lost`: killed after the write, and the disk loses unsynced bytes, as in a power failure. */
async function killed(run: CanonicalRun, moment: string): Promise<Life> {
  const life = await live(run, moment.replace('lost', 'written'));
  expect(life.signal, moment).toBe('SIGKILL');
  if (moment.startsWith('lost')) await truncate(join(life.directory, 'c.jsonl'), syncedIn(life.notes));
  return life;
}

describe('a process killed during and around each write of its log, and in its tools', () => {
  it.each(sampled(canonicalRuns, volume.killedRunOf))(
    'INV-5, I20, I21, CKPT-4: $name loses no acknowledged entry, runs nothing twice and continues to the same end',
    async (run) => {
      const whole = await live(run);
      expect(whole.signal).toBeNull();
      const moments = momentsOf(whole.notes);
      expect(moments.length).toBeGreaterThan(20);
      const uncut = await goneOn(run, whole.directory, []);
      const due = sampled(moments, volume.killOf);
      const check = async (moment: string): Promise<void> => {
        const { directory, notes } = await killed(run, moment);
        const acked = ackedIn(notes);
        const stored = await storedIn(directory);
        expect(stored.slice(0, acked.length), moment).toEqual(acked);
        const ran = ranIn(notes);
        await goneOn(run, directory, ran).then(
          (log) => expectSameEnd(uncut, log, ran),
          (error: unknown) => {
            throw new Error(`${moment}: ${error}`, { cause: error });
          },
        );
      };
      // Two processes run at once, because a process spends most of its life starting.
      while (due.length > 0) await Promise.all(due.splice(0, 2).map(check));
    },
  );

  it('every append is synced between its write and its acknowledgement', async () => {
    const [, run] = canonicalRuns;
    if (!run) throw new Error('there is a second run');
    const { notes } = await live(run);
    const order = notes.filter((note) => !('ran' in note)).map((note) => Object.keys(note)[0]);
    expect(order.length % 3).toBe(0);
    expect(order.length).toBeGreaterThan(12);
    for (let at = 0; at < order.length; at += 3) expect(order.slice(at, at + 3)).toEqual(['write', 'synced', 'acked']);
  });
});

describe('a process killed between the effect of a tool and its result', () => {
  const named = (name: string): CanonicalRun => {
    const canonicalRun = canonicalRuns.find((run) => run.name === name);
    if (!canonicalRun) throw new Error(`no run is named ${name}`);
    return canonicalRun;
  };

  it('B12: the outcome of the call is unknown, and it runs again only on request, with its key', async () => {
    const run = named('one tool');
    const { directory, notes } = await killed(run, 'did:1');
    const before = ranIn(notes);
    expect(before).toHaveLength(1);
    const ran: string[] = [];
    const agent = agentOn(run, directory, ran);
    const conversation = await agent.open('c');
    const [call] = conversation.unsettled;
    expect(call).toBeDefined();
    expect(ran).toEqual([]);
    expect(await conversation.settle(call?.callId ?? '', { retry: true })).toBe('applied');
    await conversation.resume().result;
    expect(ran).toEqual(before);
    const results = conversation.log().filter((entry) => entry.type === 'tool-result');
    expect(results.map(({ outcome }) => outcome)).toEqual(['unknown', 'succeeded']);
    await agent.close();
  });

  it('an idempotent call runs again automatically, with its key', async () => {
    const run = named('an idempotent tool after a failed attempt, and state');
    const { directory, notes } = await killed(run, 'did:1');
    const [key = ''] = ranIn(notes);
    const ran: string[] = [];
    await goneOn(run, directory, ran);
    expect(ran.filter((each) => each === key)).toEqual([key]);
  });
});
