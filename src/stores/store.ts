/**
 * The contract every log store keeps, and what every store shares: the check of an append's order, and
 * the notices of an opening as entries. Rule: `append` is durable when it resolves and carries the seq of its first
 * entry; two writers of one conversation never both append. Entries come from outside, so each field is checked first.
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
  /** Stored entries with a seq of at least `from`, as many as there were when the reader began. Rejects when it is closed. */
  read(from?: number): AsyncIterable<LogEntry>;
  /**
   * `expectedSeq`: seq of the first appended entry. Serialised, all or nothing, with the entries as they are at the call;
   * rejects with StoreConflictError where it is not the next seq, or where the entries do not count on from it.
   */
  append(entries: readonly LogEntry[], expectedSeq: number): Promise<void>;
  /** The same where a store can do it at once: durable when it returns; the driver prefers it. Throws what `append` rejects with. */
  appendNow?(entries: readonly LogEntry[], expectedSeq: number): void;
  /** What opening tolerated, such as a torn last line; at most one of each code. Each is logged once by code and detail. */
  readonly notices?: readonly Diagnostic[];
  /** Waits for what was asked for, then gives the lease back. May be called again. */
  close(): Promise<void>;
  putBlob?(bytes: Uint8Array, mediaType: string): Promise<string>;
  getBlob?(reference: string): Promise<Uint8Array>;
}

/** What was to be gone on with is not there, or not any more. */
export const noConversation = (): RunchartError => new RunchartError('not_found', 'there is no such conversation');

export interface StoreOpening {
  /** Make none: rejects with RunchartError `not_found` where there is none. A store that does not know it opens an empty log. */
  existing?: boolean | undefined;
}

export interface LogStore {
  /** Rejects with SessionBusyError while another opener lives, with CorruptLogError, and with ConfigurationError for an id it cannot keep. */
  open(id: string, options?: StoreOpening): Promise<LogHandle>;
  /** Last used first; neither sub-agents' conversations nor empty ones. Takes no lease. */
  list(): Promise<ConversationInfo[]>;
  /** Rejects with SessionBusyError while it is open; does nothing where there is none. */
  delete(id: string): Promise<void>;
}

/** What every store checks before it appends: the writer knows the log's length, and its entries follow on. */
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

export function toleratedBy(notices: readonly Diagnostic[], entries: readonly LogEntry[]): NewEntry[] {
  if (notices.length === 0) return [];
  const known = new Set(entries.flatMap((entry) => (entry.type === 'diagnostic' ? [nameOf(entry)] : [])));
  return notices
    .filter((notice) => !known.has(nameOf(notice)))
    .map(({ code, detail }) => ({ runId: null, type: 'diagnostic', code, ...(detail !== undefined && { detail }) }));
}

const nameOf = ({ code, detail = null }: { code: string; detail?: unknown }): string => JSON.stringify([code, detail]);
