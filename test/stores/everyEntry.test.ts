/**
 * Every kind of entry, with every kind of time, run and conversation, is read back as it was stored: at once, from any place, after
 * opening again, by a reader without a lease and, in a file, under any header.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { sampleEntries } from '../../machines/log/entryKinds.ts';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { readDamagedLog } from '../../src/stores/jsonl/readDamagedLog.ts';
import type { LogHandle, LogStore } from '../../src/stores/logStore.ts';
import { memoryStore } from '../../src/stores/memory.ts';

const directories: string[] = [];
afterAll(() => Promise.all(directories.map((path) => rm(path, { recursive: true, force: true }))));
async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'runchart-entries-'));
  directories.push(path);
  return path;
}
const read = async (entries: AsyncIterable<LogEntry>): Promise<LogEntry[]> => {
  const found: LogEntry[] = [];
  for await (const entry of entries) found.push(entry);
  return found;
};

const TIMES = [
  0,
  1_700_000_000_000,
  1_700_000_000_000,
  1_699_999_999_999,
  -5,
  1.5,
  0.1 + 0.2,
  1e300,
  Number.MAX_SAFE_INTEGER,
  7,
];
const RUNS = [null, 'a', 'a', 'b', null, 'b', 'a', '', '"\n'];
const HOMES = ['c', 'c', 'c', 'other', 'c'];
const counts = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
const base = { type: 'model-reply', turn: 1, model: 'm', finish: 'stop', costUsd: 0 };
const words = (text: unknown) => ({ type: 'text', text });

/** Kinds whose lines have short forms, with values that have one and values that look as if they had. */
const SPECIAL: readonly object[] = [
  ...[{}, { inputTokens: 1 }, { reasoningTokens: 9 }, { outputTokens: 1.5 }].map((some) => ({
    ...base,
    usage: { ...counts, ...some },
  })),
  { ...base, usage: { ...counts, more: 1 } },
  { ...base, usage: { inputTokens: 1 } },
  { ...base, usage: { ...counts, inputTokens: '1' } },
  { ...base, usage: [1, 2], tokens: [3] },
  { ...base, usage: counts, tokens: 7 },
  ...['user-message', 'tool-result'].flatMap((type) =>
    [
      [words('')],
      [words('x')],
      [words('x'), words('y')],
      [],
      [words(7)],
      [{ ...words('x'), more: 1 }],
      'x',
      undefined,
    ].map((content) => ({
      ...{ type, messageId: 'm', callId: 'k', outcome: 'succeeded' },
      ...(content !== undefined && { content }),
    })),
  ),
  { type: 'user-message', messageId: 'm', content: [words('x')], onlyText: 'y' },
  ...['c/k/0', 'c/k/12', 'c/k/01', 'c/k/-1', 'c/k/', 'c/k/1e3', 'other/k/3', 'c/k/1234567890', 7].map(
    (idempotencyKey) => ({
      ...{ type: 'tool-started', callId: 'k', idempotencyKey },
    }),
  ),
  { type: 'tool-started', callId: 'k', idempotencyKey: 'c/k/0', suspensions: 4 },
  ...['y', 7, null, { own: 'y' }, { own: { own: 1 } }].flatMap((value) => [
    { type: 'user-message', messageId: 'm', onlyText: value },
    { type: 'tool-result', callId: 'k', outcome: 'succeeded', content: undefined, onlyText: value },
  ]),
  { ...base, tokens: [1, 2] },
  { type: 'tool-started', callId: 'k', suspensions: 3 },
  { type: 'extension', name: 'x', value: { seq: 3, format: 'runchart-log', version: 1 } },
  {
    type: 'extension',
    name: '{"seq":4,"at":0}',
    value: ['\u2028', '\ud800', '\0', '{"format":"runchart-log","version":1'],
  },
];

/** All of these bodies, each with the next of the times, runs and conversations. */
const ENTRIES: readonly LogEntry[] = [...sampleEntries('c').map(({ seq: _, at: __, ...body }) => body), ...SPECIAL].map(
  (body, seq) =>
    ({
      ...body,
      seq,
      at: TIMES[seq % TIMES.length],
      runId: RUNS[seq % RUNS.length],
      conversationId: HOMES[seq % HOMES.length],
    }) as unknown as LogEntry,
);
/** Values in JSON: half of a surrogate pair stays, and a key without a value goes. */
const asJson = (entries: readonly LogEntry[]): unknown => JSON.parse(JSON.stringify(entries));

/** The ways in which the entries are appended. */
const WAYS: readonly (readonly [string, (entries: readonly LogEntry[]) => LogEntry[][]])[] = [
  ['one by one', (entries) => entries.map((entry) => [entry])],
  ['at once', (entries) => [[...entries]]],
  ['in threes', (entries) => entries.flatMap((_, at) => (at % 3 === 0 ? [entries.slice(at, at + 3)] : []))],
];

async function appended(handle: LogHandle, batches: readonly LogEntry[][]): Promise<void> {
  for (const batch of batches) await handle.append(batch, batch[0]?.seq ?? 0);
}

const STORES: readonly (readonly [string, () => Promise<{ store: LogStore; path: string | undefined }>])[] = [
  ['memory', async () => ({ store: memoryStore(), path: undefined })],
  ['a file', async () => directory().then((path) => ({ store: jsonlStore(path), path }))],
];

describe.each(STORES)('in %s', (_, storeOf) => {
  it.each(WAYS)('every entry that was appended %s is read back', async (__, batchesOf) => {
    const { store, path } = await storeOf();
    const handle = await store.open('c');
    await appended(handle, batchesOf(ENTRIES));
    const expected = asJson(ENTRIES);
    expect(asJson(await read(handle.read()))).toEqual(expected);
    for (const from of [1, 2, 17, ENTRIES.length - 1, ENTRIES.length])
      expect(asJson(await read(handle.read(from)))).toEqual((expected as unknown[]).slice(from));
    await handle.close();
    const again = await store.open('c');
    expect(asJson(await read(again.read()))).toEqual(expected);
    expect(asJson(await read(again.read()))).toEqual(expected);
    // The next entry continues the run and the times that are there.
    const next = { ...ENTRIES[7], seq: ENTRIES.length } as LogEntry;
    await again.append([next], ENTRIES.length);
    expect(asJson(await read(again.read(ENTRIES.length)))).toEqual(asJson([next]));
    await again.close();
    if (path === undefined) return;
    expect(asJson(await read(readDamagedLog(path, 'c')))).toEqual(asJson([...ENTRIES, next]));
    const text = await readFile(join(path, 'c.jsonl'), 'utf8');
    expect(text.endsWith('\n')).toBe(true);
  });
});

it('a file has the same entries, however they were grouped and however often it was opened in between', async () => {
  const found: unknown[] = [];
  for (const [, batchesOf] of WAYS.slice(1)) {
    const path = await directory();
    const store = jsonlStore(path);
    for (const batch of batchesOf(ENTRIES)) {
      const handle = await store.open('c');
      await appended(handle, [batch]);
      await handle.close();
    }
    found.push(asJson(await read(readDamagedLog(path, 'c'))));
    const handle = await store.open('c');
    expect(handle.notices).toEqual([]);
    await handle.close();
  }
  for (const each of found) expect(each).toEqual(asJson(ENTRIES));
});
