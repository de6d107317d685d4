/**
 * The contract every log store keeps. Rule: `append` is durable when it resolves, carries the seq of its first
 * entry, and two writers of one conversation never both append.
 */
import type { Diagnostic, LogEntry } from '../../machines/vocabulary.ts';

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

export interface LogStore {
  /** Rejects with SessionBusyError while another opener lives, with CorruptLogError, and with ConfigurationError for an id it cannot keep. */
  open(id: string): Promise<LogHandle>;
  /** Last used first; neither sub-agents' conversations nor empty ones. Takes no lease. */
  list(): Promise<ConversationInfo[]>;
  /** Rejects with SessionBusyError while it is open; does nothing where there is none. */
  delete(id: string): Promise<void>;
}
