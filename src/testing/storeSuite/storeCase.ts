/**
 * What the cases of the store suite are made of. Rule: a case gets a fresh, empty store, knows only the contract, and
 * fails by an AssertionError that says what was expected.
 */
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { Json, LogEntry, NewEntry, Usage } from '../../../machines/vocabulary.ts';
import { RunchartError } from '../../errors.ts';
import type { ConversationInfo, LogHandle, LogStore } from '../../stores/logStore.ts';

export type StoreCase = readonly [name: string, check: (store: LogStore) => Promise<unknown>];

/** When the conversations of the cases begin. */
export const STARTED = 1_700_000_000_000;

/** An entry without the fields a log stamps; `runId` is null where it is left out. */
type Body<E = NewEntry> = E extends NewEntry ? Omit<E, 'runId'> & { runId?: string | null } : never;

/** `at` grows by a second an entry. */
export function stamped(id: string, seq: number, body: Body): LogEntry {
  return { seq, at: STARTED + seq * 1000, conversationId: id, runId: null, ...body } as LogEntry;
}

export function notice(id: string, seq: number, text = `entry ${seq}`): LogEntry {
  return stamped(id, seq, { type: 'notice', code: 'case', text });
}

export function notices(id: string, from: number, count: number): LogEntry[] {
  return Array.from({ length: count }, (_, index) => notice(id, from + index));
}

export function conversation(id: string, parent?: { conversationId: string; callId: string }): LogEntry {
  const first = { type: 'conversation', schema: 1, cwd: '/home/case', createdAt: STARTED } as const;
  return stamped(id, 0, parent ? { ...first, parent } : first);
}

export function modelReply(id: string, seq: number, costUsd: number | null, counts: Partial<Usage> = {}): LogEntry {
  const none = { cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  const usage = { inputTokens: 9, outputTokens: 3, ...none, ...counts };
  return stamped(id, seq, { type: 'model-reply', runId: 'run', turn: 1, model: 'm', finish: 'stop', usage, costUsd });
}

/** Anything may stand in an extension's value. */
export function extension(seq: number, value: unknown): LogEntry {
  return stamped('c', seq, { type: 'extension', name: 'case', value: value as Json });
}

/** A log of these entries, numbered from 0 and closed again. */
export async function write(store: LogStore, id: string, entries: readonly LogEntry[]): Promise<void> {
  await opened(store, id, (handle) => handle.append(entries, 0));
}

export async function opened<T>(store: LogStore, id: string, use: (handle: LogHandle) => Promise<T>): Promise<T> {
  const handle = await store.open(id);
  try {
    return await use(handle);
  } finally {
    await handle.close();
  }
}

export async function all(handle: LogHandle, from?: number): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for await (const entry of from === undefined ? handle.read() : handle.read(from)) entries.push(entry);
  return entries;
}

export async function stored(store: LogStore, id: string): Promise<LogEntry[]> {
  return opened(store, id, (handle) => all(handle));
}

/** Compared with a copy made before the append, read from a handle that was opened again. */
export async function comesBack(store: LogStore, entries: LogEntry[]): Promise<LogEntry[]> {
  const before = structuredClone(entries);
  await write(store, 'c', entries);
  const after = await stored(store, 'c');
  sameEntries(after, before);
  return after;
}

/** Names the first entry that differs: a difference of two long lists is never done on some versions of Node. */
export function sameEntries(found: readonly LogEntry[], expected: readonly LogEntry[]): void {
  for (const [index, entry] of expected.entries()) {
    if (isDeepStrictEqual(found[index], entry)) continue;
    if (JSON.stringify(entry).length < 10_000) assert.deepEqual(found[index], entry);
    assert.fail(`entry ${index} (${entry.type}) did not come back as it was`);
  }
  assert.equal(found.length, expected.length);
}

/** The only conversation the store lists. */
export async function onlyListed(store: LogStore): Promise<ConversationInfo> {
  const [found, ...more] = await store.list();
  assert.deepEqual(more, []);
  assert.ok(found, 'expected one conversation in the list');
  return found;
}

/** One turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The call must be refused with a RunchartError of this code, thrown or rejected. */
export async function refused(code: string, call: () => unknown): Promise<void> {
  try {
    await call();
  } catch (error) {
    assert.ok(RunchartError.isRunchartError(error), `expected a RunchartError with code ${code}, got ${error}`);
    assert.equal(error.code, code);
    return;
  }
  assert.fail(`expected to be refused with code ${code}`);
}
