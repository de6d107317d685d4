/**
 * The contract of log stores, the check of an append's order, and the notices of an opening as entries. Invariant:
 * entries are durable when `append` resolves. Two writers of one conversation never both append.
 */
import type { Diagnostic, LogEntry, NewEntry } from '../../machines/vocabulary.ts';
import { RunchartError, StoreConflictError } from '../errors.ts';

export interface ConversationInfo {
  id: string;
  cwd: string;
  createdAt: number;
  updatedAt: number;
  turns: number;
  costUsd: number | null;
  status: 'idle' | 'waiting' | 'active';
  lastCause?: string;
}

export interface LogHandle {
  /** Yields the entries from seq `from` on that were stored at the call. Rejects after `close`. */
  read(from?: number): AsyncIterable<LogEntry>;
  /**
   * Stores all entries as they are at the call, or none; appends run one after the other. `expectedSeq` is the seq of
   * the first entry. Rejects with StoreConflictError if it is not the next seq, or if the entries do not follow it.
   */
  append(entries: readonly LogEntry[], expectedSeq: number): Promise<void>;
  /** Does the same synchronously, if the store can. The entries are durable when it returns. Throws what `append` rejects with. */
  appendNow?(entries: readonly LogEntry[], expectedSeq: number): void;
  /** Faults that opening tolerated, such as a torn last line: one for each code. Each is logged once by code and detail. */
  readonly notices?: readonly Diagnostic[];
  /** Waits for requested appends and blobs, then releases the lease. It can be called again. */
  close(): Promise<void>;
  putBlob?(bytes: Uint8Array, mediaType: string): Promise<string>;
  getBlob?(reference: string): Promise<Uint8Array>;
}

/** The error for a conversation that does not exist. */
export const noConversation = (): RunchartError => new RunchartError('not_found', 'there is no such conversation');

export interface StoreOpening {
  /** Rejects with RunchartError `not_found` if there is no log. A store without this option opens an empty log. */
  existing?: boolean | undefined;
}

export interface LogStore {
  /** Rejects with SessionBusyError while another handle is open, with CorruptLogError, and with ConfigurationError for an invalid id. */
  open(id: string, options?: StoreOpening): Promise<LogHandle>;
  /** Lists conversations, the last used first, without empty ones and sub-agents. Takes no lease. */
  list(): Promise<ConversationInfo[]>;
  /** Rejects with SessionBusyError while the conversation is open. Does nothing if it does not exist. */
  delete(id: string): Promise<void>;
}

/** Throws StoreConflictError unless the entries follow the last entry of the log. Every store checks this. */
export function refuseOutOfOrder(
  id: string,
  next: number,
  entries: readonly { readonly seq: number }[],
  expectedSeq: number,
): void {
  if (expectedSeq !== next) {
    throw new StoreConflictError(
      `the log of conversation "${id}" goes on at seq ${next}, the writer expected ${expectedSeq}: open it again`,
    );
  }
  const stray = entries.findIndex((entry, index) => entry.seq !== next + index);
  if (stray === -1) return;
  throw new StoreConflictError(
    `entry ${stray} of an append to conversation "${id}" has seq ${entries[stray]?.seq}, expected ${next + stray}`,
  );
}

/** Returns the notices of an opening as entries, without those that the log contains. */
export function noticeEntries(notices: readonly Diagnostic[], entries: readonly LogEntry[]): NewEntry[] {
  if (notices.length === 0) return [];
  const logged = new Set(entries.flatMap((entry) => (entry.type === 'diagnostic' ? [keyOf(entry)] : [])));
  return notices
    .filter((notice) => !logged.has(keyOf(notice)))
    .map(({ code, detail }) => ({ runId: null, type: 'diagnostic', code, ...(detail !== undefined && { detail }) }));
}

const keyOf = ({ code, detail = null }: { code: string; detail?: unknown }): string => JSON.stringify([code, detail]);
