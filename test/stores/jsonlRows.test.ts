/**
 * Tests that the list of the JSONL store equals its logs: after random appends by two stores, edits by other programs, crashes and
 * damaged notes, in small directories and in large ones. A whole reading of every log is the oracle.
 */
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
} from 'node:fs';
import { open, readFile, writeFile } from 'node:fs/promises';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { deepFreeze } from '../../machines/internal.ts';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { type ConversationRow, listedRow } from '../../src/stores/conversationRow.ts';
import { addToRow } from '../../src/stores/conversationSummary.ts';
import { fileNameOf, idOf } from '../../src/stores/jsonl/fileName.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { beginsWithHeader, readDamagedLog } from '../../src/stores/jsonl/readDamagedLog.ts';
import type { ConversationInfo, LogHandle, LogStore } from '../../src/stores/logStore.ts';
import { pageOf } from '../../src/stores/rowTable.ts';
import {
  conversation,
  modelReply,
  notice,
  onlyListed,
  stamped,
  write,
} from '../../src/testing/storeSuite/storeCase.ts';
import { type Chance, chance } from '../support/seededChance.ts';
import { volume } from '../support/tier.ts';
import { children } from './childProcess.ts';
import { type Place, place } from './storeDirectory.ts';

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  return { ...real, open: vi.fn(real.open) };
});
beforeEach(() => void vi.mocked(open).mockClear());

const child = children();

/** The list from a whole reading of all logs. `held`: the ids of open logs. */
async function wholeList({ directory, path }: Place, held: ReadonlySet<string>): Promise<ConversationInfo[]> {
  const list: ConversationInfo[] = [];
  for (const name of readdirSync(directory)) {
    const id = idOf(name);
    if (id === null || !(await beginsWithHeader(path(name)).catch(() => false))) continue;
    let row: ConversationRow | undefined;
    for await (const entry of readDamagedLog(directory, id)) row = addToRow(row, entry, id);
    const info = listedRow(row, held.has(id) ? 'self' : 'nobody');
    if (info) list.push(info);
  }
  return pageOf(list);
}

/** So many logs that no list compares all of them. */
const LARGE = 230;
async function largePlace(): Promise<Place> {
  const found = await place();
  for (let at = 0; at < LARGE; at += 1)
    await writeFile(found.path(`f${at}.jsonl`), logText(`f${at}`, [conversation(`f${at}`)]));
  return found;
}

function logText(id: string, entries: readonly LogEntry[]): string {
  const header = { format: 'runchart-log', version: 1, conversationId: id };
  const lines = entries.map(({ conversationId: _, runId, ...entry }) => (runId === null ? entry : { ...entry, runId }));
  return [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join('');
}

const IDS = ['a', 'b', 'c', 'd e'];

/** Two stores of one directory, and what a person does to its files. */
class Life {
  readonly #place: Place;
  readonly #chance: Chance;
  readonly stores: LogStore[];
  readonly #open = new Map<string, { handle: LogHandle; next: number }>();

  constructor(found: Place, seed: number) {
    this.#place = found;
    this.#chance = chance(seed);
    this.stores = [jsonlStore(found.directory), jsonlStore(found.directory)];
    onTestFinished(async () => {
      for (const { handle } of this.#open.values()) await handle.close();
    });
  }

  get held(): ReadonlySet<string> {
    return new Set(this.#open.keys());
  }

  async step(isForeign: boolean): Promise<void> {
    const id = this.#oneOf(IDS);
    const file = this.#place.path(fileNameOf(id));
    const held = this.#open.get(id);
    const act = this.#oneOf(isForeign ? ['use', 'use', 'use', 'delete', 'edit'] : ['use', 'use', 'use', 'delete']);
    if (act === 'use' && !held) return this.#opens(id);
    if (held) return this.#uses(id, held);
    if (act === 'delete') return this.#oneOf(this.stores).delete(id);
    if (existsSync(file)) this.#edit(file);
  }

  async #opens(id: string): Promise<void> {
    const handle = await this.#oneOf(this.stores)
      .open(id)
      .catch(() => undefined);
    if (!handle) return rmSync(this.#place.path(fileNameOf(id)), { force: true });
    let next = 0;
    for await (const { seq } of handle.read()) next = seq + 1;
    this.#open.set(id, { handle, next });
  }

  async #uses(id: string, held: { handle: LogHandle; next: number }): Promise<void> {
    if (this.#chance.next() < 0.3) {
      this.#open.delete(id);
      return held.handle.close();
    }
    const count = 1 + Math.floor(this.#chance.next() * 3);
    const entries = Array.from({ length: count }, (_, at) => this.#entry(id, held.next + at));
    const appended = this.#chance.next() < 0.7 ? entries.map((entry) => deepFreeze(entry)) : entries;
    await held.handle.append(appended, held.next);
    held.next += count;
  }

  #entry(id: string, seq: number): LogEntry {
    const at = 1_700_000_000_000 + Math.floor(this.#chance.next() * 50) * 1000;
    const run = { runId: 'run' };
    const entry = this.#oneOf([
      notice(id, seq),
      modelReply(id, seq, this.#oneOf([null, 0.5, 0.25])),
      stamped(id, seq, { type: 'run-started', ...run }),
      stamped(id, seq, { type: 'run-suspended', ...run, waiting: ['call'] }),
      stamped(id, seq, { type: 'run-stop', ...run, reason: 'completed', cause: 'end_turn' }),
      stamped(id, seq, { type: 'renamed', title: `title ${seq}` }),
      stamped(id, seq, {
        type: 'user-message',
        messageId: `m${seq}`,
        kind: 'direct',
        content: [{ type: 'text', text: `go ${seq}` }],
      }),
    ]);
    const first = stamped(id, 0, {
      type: 'conversation',
      schema: 1,
      cwd: '/',
      createdAt: 1,
      owner: this.#oneOf(['ann', 'bob']),
    });
    return { ...(seq === 0 ? first : entry), at };
  }

  #edit(file: string): void {
    const length = statSync(file).size;
    this.#oneOf([
      () => appendFileSync(file, '{"seq":9'),
      () => appendFileSync(file, '\0\0\0'),
      () => truncateSync(file, Math.floor(length * this.#chance.next())),
      () => rmSync(file),
      () => copyFileSync(file, this.#place.path('copied.jsonl')),
      () => utimesSync(file, 1, 1),
    ])();
  }

  #oneOf<T>(all: readonly T[]): T {
    return all[Math.floor(this.#chance.next() * all.length)] as T;
  }
}

const SEEDS = Array.from({ length: volume.rowLives }, (_, seed) => seed);
const STEPS = 25;

describe('a list has the rows of the logs', () => {
  test.each(SEEDS)(
    'after each step of two stores and of other programs: seed %i',
    { timeout: 60_000 },
    async (seed) => {
      const found = await place();
      const life = new Life(found, seed);
      for (let step = 0; step < STEPS; step += 1) {
        await life.step(true);
        const whole = await wholeList(found, life.held);
        for (const store of [...life.stores, jsonlStore(found.directory)]) expect(await store.list()).toEqual(whole);
      }
    },
  );

  test.each(SEEDS.slice(0, volume.rowLives / 8))(
    'after each step of two stores in a large directory: seed %i',
    { timeout: 60_000 },
    async (seed) => {
      const found = await largePlace();
      const life = new Life(found, seed);
      for (const store of life.stores) await store.list();
      for (let step = 0; step < STEPS / 2; step += 1) {
        await life.step(false);
        const whole = await wholeList(found, life.held);
        for (const store of life.stores) {
          expect(await store.list({ limit: 8 })).toEqual(whole.slice(0, 8));
          expect(await store.list({ limit: 3, owner: 'ann' })).toEqual(
            whole.filter(({ owner }) => owner === 'ann').slice(0, 3),
          );
          expect(await store.list({ status: 'active' })).toEqual(whole.filter(({ status }) => status === 'active'));
        }
      }
      expect(await jsonlStore(found.directory).list()).toEqual(await wholeList(found, life.held));
    },
  );

  test('after another program changed a row of the page, in a large directory', async () => {
    const found = await largePlace();
    const [first, ...others] = await found.store.list();
    const { id = '' } = first ?? {};
    await writeFile(
      found.path(`${id}.jsonl`),
      logText(id, [conversation(id), stamped(id, 1, { type: 'renamed', title: 'edited' })]),
    );
    expect((await found.store.list({ limit: 1 }))[0]).toMatchObject({ id, title: 'edited' });
    rmSync(found.path(`${id}.jsonl`));
    expect((await found.store.list({ limit: 1 }))[0]?.id).toBe(others[0]?.id);
  });

  test('after another program made and changed logs in a large directory, within the pause between two comparisons', async () => {
    const found = await largePlace();
    await found.store.list();
    await writeFile(found.path('new.jsonl'), logText('new', [{ ...conversation('new'), at: 2_000_000_000_000 }]));
    const clock = vi.spyOn(performance, 'now');
    clock.mockReturnValue(performance.now() + 600_000);
    await vi.waitFor(async () => expect((await found.store.list({ limit: 1 }))[0]?.id).toBe('new'), 10_000);
    clock.mockRestore();
  });

  test('while another process has a log open, and after it was killed', { timeout: 30_000 }, async () => {
    for (const found of [await place(), await largePlace()]) {
      await found.store.list();
      const other = child(
        found.directory,
        `const handle = await jsonlStore(directory).open('c');
        const first = { seq: 0, at: 2e12, conversationId: 'c', runId: null, type: 'conversation', schema: 1, cwd: '/', createdAt: 1 };
        await handle.append([first], 0);
        await handle.append([{ ...entry(1), at: 2e12 + 1 }], 1);
        say('done');`,
      );
      await other.line();
      expect((await found.store.list({ limit: 1 }))[0]).toMatchObject({
        id: 'c',
        status: 'active',
        updatedAt: 2e12 + 1,
      });
      await other.kill();
      expect((await found.store.list({ limit: 1 }))[0]).toMatchObject({ id: 'c', status: 'idle' });
      expect(await found.store.list({ status: 'active' })).toEqual([]);
    }
  });
});

describe('the notes of a large directory', () => {
  const NOTES = '.rows';

  test('a small directory has none', async () => {
    const found = await place();
    await write(found.store, 'c', [conversation('c')]);
    await found.store.list();
    expect(readdirSync(found.directory)).not.toContain(NOTES);
  });

  test('save reading the logs when a store is made again', async () => {
    const found = await largePlace();
    const whole = await found.store.list();
    vi.mocked(open).mockClear();
    const again = jsonlStore(found.directory);
    expect(await again.list()).toEqual(whole);
    const opened = vi.mocked(open).mock.calls.map(([path]) => String(path));
    expect(opened.filter((path) => path.endsWith('.jsonl'))).toEqual([]);
  });

  test.each([
    ['nothing', () => ''],
    ['rubbish', () => '\u0000\u0001{"id":\n{}\n[]\nnull\n'],
    ['half of it', (notes: string) => notes.slice(0, notes.length / 2)],
    ['rows of another version', (notes: string) => notes.replaceAll('"version":1', '"version":2')],
    ['rows of other files', (notes: string) => notes.replaceAll('"id":"f1"', '"id":"f2"')],
    ['rows with other fields', (notes: string) => notes.replaceAll('"turns":0', '"turns":"many"')],
    ['rows of files that have changed', (notes: string) => notes.replaceAll('"stamp":[', '"stamp":[1')],
  ])('are not believed where they hold %s', async (_, damaged) => {
    const found = await largePlace();
    const whole = await found.store.list();
    await writeFile(found.path(NOTES), damaged(await readFile(found.path(NOTES), 'utf8')));
    expect(await jsonlStore(found.directory).list()).toEqual(whole);
    expect(await found.store.list()).toEqual(whole);
  });

  test('are left out where they cannot be written', async () => {
    const found = await largePlace();
    vi.mocked(open).mockImplementation(async () => {
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    });
    await expect(found.store.list()).resolves.toEqual([]);
    vi.mocked(open).mockReset();
    const real = await vi.importActual<typeof import('node:fs/promises')>('node:fs/promises');
    vi.mocked(open).mockImplementation(real.open);
    expect((await jsonlStore(found.directory).list()).length).toBe(LARGE);
  });
});

describe('lists share their work', () => {
  test('twenty at once read each log once, and the next ones none', async () => {
    const found = await place();
    for (let at = 0; at < 20; at += 1)
      await writeFile(found.path(`c${at}.jsonl`), logText(`c${at}`, [conversation(`c${at}`)]));
    vi.mocked(open).mockClear();
    await Promise.all(Array.from({ length: 20 }, () => found.store.list()));
    const opened = vi
      .mocked(open)
      .mock.calls.map(([path]) => String(path))
      .filter((path) => path.endsWith('.jsonl'));
    expect(
      Math.max(...[...new Set(opened)].map((path) => opened.filter((each) => each === path).length)),
    ).toBeLessThanOrEqual(2);
    vi.mocked(open).mockClear();
    await found.store.list();
    expect(vi.mocked(open)).not.toHaveBeenCalled();
  });

  test('an append changes the row without a reading of the log', async () => {
    const found = await place();
    const handle = await found.store.open('c');
    await handle.append([deepFreeze(conversation('c'))], 0);
    await found.store.list();
    vi.mocked(open).mockClear();
    await handle.append([deepFreeze(modelReply('c', 1, 0.5))], 1);
    expect((await onlyListed(found.store)).turns).toBe(1);
    expect(vi.mocked(open).mock.calls.filter(([path]) => String(path).endsWith('.jsonl'))).toEqual([]);
    await handle.close();
  });
});
