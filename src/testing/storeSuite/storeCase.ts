/**
 * The building blocks of the store suite's cases. Invariant: a case gets a fresh, empty store and uses only the
 * contract. It fails with an AssertionError that names the expectation.
 */
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { Json, LogEntry, NewEntry, Usage } from '../../../machines/vocabulary.ts';
import { RunchartError } from '../../errors.ts';
import type { ConversationInfo, LogHandle, LogStore } from '../../stores/logStore.ts';

/** The additional functions of a suite for stores that several processes share. */
export interface SharedPlace {
  /** A store over the same conversations, as another process has it. Default: the same store. */
  another(): Promise<LogStore>;
  /** Ends every lease, as if its holder had died. Without it, the end of a holder is not tested. */
  endLeases?: () => Promise<unknown>;
}

export type StoreCase = readonly [name: string, check: (store: LogStore, place: SharedPlace) => Promise<unknown>];

/** The time at which the conversations of the cases start. */
export const STARTED = 1_700_000_000_000;

/** An entry without the fields that a log stamps. The default of `runId` is null. */
type Body<E = NewEntry> = E extends NewEntry ? Omit<E, 'runId'> & { runId?: string | null } : never;

/** `at` grows by one second for each entry. */
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

/** The value of an extension may be anything. */
export function extension(seq: number, value: unknown): LogEntry {
  return stamped('c', seq, { type: 'extension', name: 'case', value: value as Json });
}

/** Writes a log of these entries, numbered from 0, and closes it. */
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

/** Reads the entries from a new handle, and compares them with a copy made before the append. */
export async function comesBack(store: LogStore, entries: LogEntry[]): Promise<LogEntry[]> {
  const before = structuredClone(entries);
  await write(store, 'c', entries);
  const after = await stored(store, 'c');
  sameEntries(after, before);
  return after;
}

/** Reports the first entry that differs. On some versions of Node the diff of two long lists never ends. */
export function sameEntries(actual: readonly LogEntry[], expected: readonly LogEntry[]): void {
  for (const [index, entry] of expected.entries()) {
    if (isDeepStrictEqual(actual[index], entry)) continue;
    if (JSON.stringify(entry).length < 10_000) assert.deepEqual(actual[index], entry);
    assert.fail(`entry ${index} (${entry.type}) did not come back as it was`);
  }
  assert.equal(actual.length, expected.length);
}

/** The only conversation the store lists. */
export async function onlyListed(store: LogStore): Promise<ConversationInfo> {
  const [info, ...more] = await store.list();
  assert.deepEqual(more, []);
  assert.ok(info, 'expected one conversation in the list');
  return info;
}

/** One turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Asserts that the call throws, or rejects with, a RunchartError of this code. */
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
