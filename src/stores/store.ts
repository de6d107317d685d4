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
  /** Stored entries from `from` (inclusive) on. */
  read(from?: number): AsyncIterable<LogEntry>;
  /** `expectedSeq`: seq of the first appended entry. Serialised; rejects with StoreConflictError where it is not the next. */
  append(entries: readonly LogEntry[], expectedSeq: number): Promise<void>;
  /** The same where a store can do it at once: durable when it returns; the driver prefers it. Throws what `append` rejects with. */
  appendNow?(entries: readonly LogEntry[], expectedSeq: number): void;
  /** What opening tolerated, such as a torn last line; at most one of each code. */
  readonly notices?: readonly Diagnostic[];
  close(): Promise<void>;
  putBlob?(bytes: Uint8Array, mediaType: string): Promise<string>;
  getBlob?(reference: string): Promise<Uint8Array>;
}

export interface LogStore {
  /** Rejects with SessionBusyError while another opener lives and with CorruptLogError. */
  open(id: string): Promise<LogHandle>;
  list(): Promise<ConversationInfo[]>;
  delete(id: string): Promise<void>;
}
