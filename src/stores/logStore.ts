/**
 * The contract of log stores, the check of an append's order, and the notices of an opening as entries. Invariant:
 * entries are durable when `append` resolves. Two writers of one conversation never both append.
 */
import type { Observable } from 'rxjs';
import type { Diagnostic, Json, LogEntry, NewEntry } from '../../machines/vocabulary.ts';
import { RunchartError, StoreConflictError, thrownText } from '../errors.ts';
import type { Live } from '../live.ts';

/** A row in a list of conversations. */
export interface ConversationInfo {
  /** The id of the conversation. */
  id: string;
  /** The directory in which its tools start. */
  cwd: string;
  /** The time of its first entry, in milliseconds since 1970. */
  createdAt: number;
  /** The time of its last entry, in milliseconds since 1970. */
  updatedAt: number;
  /** The number of model replies. */
  turns: number;
  /** The cost of its model calls in USD; null where a price is unknown. */
  costUsd: number | null;
  /** `waiting` with calls that wait for a decision, `active` with a run that has no end in the log. */
  status: 'idle' | 'waiting' | 'active';
  /** The cause of the last stop, for example `end_turn`. */
  lastCause?: string;
  /** Set when the conversation was created. */
  owner?: string;
  /** The title of the last `rename`, or the first words of the first message. */
  title?: string;
  /** The next page of a list begins after this row. */
  cursor?: string;
}

/** The options of `list`. */
export interface ListOptions {
  /** Only conversations of this owner. */
  owner?: string | undefined;
  /** Only conversations with this status. */
  status?: ConversationInfo['status'] | undefined;
  /** The most rows. */
  limit?: number | undefined;
  /** The cursor of the last row of the page before. */
  cursor?: string | undefined;
}

/** A request of a process to the one that holds a conversation. Its id is unique, so a repeated act is carried out once. */
export interface Act {
  /** The id of the act. */
  readonly actId: string;
  readonly [key: string]: Json;
}

/** The answer to an act: a value, or an error. */
export type ActAnswer =
  | { readonly value: Json }
  | { readonly error: { readonly code: string; readonly message: string } };

/** The entries of an append to which an act led, as its answer. Undefined for an entry of something else. */
export type EffectOfAct = (entry: LogEntry) => Json | undefined;

/** The log of one conversation, opened for writing by one process. */
export interface LogHandle {
  /** Yields the entries from seq `from` on that were stored at the call. Rejects after `close`. */
  read(from?: number): AsyncIterable<LogEntry>;
  /**
   * Stores all entries as they are at the call, or none; appends run one after the other. `expectedSeq` is the seq of
   * the first entry. Rejects with StoreConflictError if it is not the next seq, or if the entries do not follow it.
   */
  append(entries: readonly LogEntry[], expectedSeq: number): Promise<void>;
  /** Does the same synchronously, if the store can. The entries are durable when it returns. Throws the same errors as `append`. */
  appendNow?(entries: readonly LogEntry[], expectedSeq: number): void;
  /** Faults that opening tolerated, such as a torn last line: one for each code. Each is logged once by code and detail. */
  readonly notices?: readonly Diagnostic[];
  /** Waits for requested appends and blobs, then releases the lease. It can be called again. */
  close(): Promise<void>;
  /** Acts that other processes request of the holder, in order. It completes with the handle, and fails when the lease is over. */
  readonly acts$?: Observable<Act>;
  /** The append that stores the effect of the act also stores its answer, both or none. */
  expectEffect?(actId: string, effect: EffectOfAct): void;
  /**
   * Answers an act that has no effect in this log, or had its effect earlier. The first answer counts. Does nothing once another
   * holder has begun with the act.
   */
  answerAct?(actId: string, answer: ActAnswer): Promise<void>;
  /** Shows the live signals to the followers of other processes. */
  shareLive?(live$: Observable<Live>): void;
  /** Stores the bytes of an image or a file. Resolves with a reference to them. */
  putBlob?(bytes: Uint8Array, mediaType: string): Promise<string>;
  /** Returns the bytes of a reference. Rejects if there are none. */
  getBlob?(reference: string): Promise<Uint8Array>;
}

/** A resolved append survives the end of the process, or a power loss. */
export type Durability = 'process' | 'power';

/** The error for a conversation that does not exist. */
export const noConversation = (): RunchartError => new RunchartError('not_found', 'there is no such conversation');

/** Returns the error that a host receives for an error of a store: one that is not the library's own becomes a RunchartError `store`. */
export const hostError = (act: string, cause: unknown): unknown =>
  RunchartError.isRunchartError(cause)
    ? cause
    : new RunchartError('store', `the store could not ${act}: ${thrownText(cause)}`, { cause });

/** The options of a store's `open`. */
export interface StoreOpening {
  /** Rejects with RunchartError `not_found` if there is no log. A store without this option opens an empty log. */
  existing?: boolean | undefined;
  /** The owner of a new log. Rejects with `not_found` if there is a log of another owner, or of none. */
  owner?: string | undefined;
}

/** A place that keeps the logs of conversations. `logStoreSuite` of `runchart/testing` tests your own. */
export interface LogStore {
  /** Rejects with SessionBusyError while another handle is open, with CorruptLogError, and with ConfigurationError for an invalid id. */
  open(id: string, options?: StoreOpening): Promise<LogHandle>;
  /** Lists conversations, the last used first, without empty ones and sub-agents. Takes no lease. Rejects with ConfigurationError for an invalid cursor. */
  list(options?: ListOptions): Promise<ConversationInfo[]>;
  /**
   * Deletes the conversation and those of its sub-agents. Rejects with SessionBusyError, and deletes nothing, while one of
   * them is open. Does nothing if the conversation does not exist.
   */
  delete(id: string): Promise<void>;
  /**
   * For stores that several processes share: entries from `from`, then those that come, and live signals of the holder, which
   * may be lost. Ends when the conversation is deleted, or when its holder has died in the middle of a run. Rejects with
   * `not_found`, and with `unavailable` where the store cannot be reached any more.
   */
  follow?(id: string, from?: number): AsyncIterable<LogEntry | Live>;
  /**
   * For stores that several processes share: the number of entries that are stored, 0 if there is no such conversation, and
   * whether a process holds it.
   */
  stateOf?(id: string): Promise<{ length: number; isHeld: boolean }>;
  /**
   * For stores that several processes share: whether a conversation that is open here is still held here. False after a process
   * has stalled for so long that another one may have it.
   */
  stillHolds?(id: string): Promise<boolean>;
  /**
   * Asks the holder of a conversation to act. Resolves with its answer when the effect is durable. Rejects with `unavailable` if nobody
   * takes the act in time, and with the error of the holder.
   */
  act?(id: string, act: Act): Promise<Json>;
}

const LOOKUP = Symbol('lookup');
/** Whether there is a log that this owner may open, found without opening it. */
export type Lookup = (id: string, owner?: string) => Promise<boolean>;

export const withLookup = <S extends LogStore>(store: S, lookup: Lookup): S =>
  Object.assign(store, { [LOOKUP]: lookup });

/** False if the store can determine at once that there is no such log. */
export async function mayExist(
  store: Pick<LogStore, 'list'> | undefined,
  id: string,
  owner?: string,
): Promise<boolean> {
  const lookup = store && (store as { [LOOKUP]?: Lookup })[LOOKUP];
  return lookup ? lookup(id, owner) : true;
}

/** Throws RunchartError `not_found` unless the log is empty or belongs to the owner. Without an owner every log may be opened. */
export function refuseOtherOwner(first: LogEntry | undefined, owner: string | undefined): void {
  if (owner === undefined || first === undefined) return;
  if (first.type !== 'conversation' || first.owner !== owner) throw noConversation();
}

/** The sub-agents that a log names. Each is one only if its own first entry names this conversation as its parent. */
export function subAgentIds(entries: Iterable<LogEntry>): Set<string> {
  const ids = new Set<string>();
  for (const entry of entries) {
    if (entry.type !== 'sub-agent') continue;
    // In older logs, `conversationId` is the sub-agent's.
    const id: unknown = entry.child ?? entry.conversationId;
    if (typeof id === 'string') ids.add(id);
  }
  return ids;
}

export const isSubAgentOf = (first: LogEntry | undefined, parentId: string): boolean =>
  first?.type === 'conversation' && first.parent?.conversationId === parentId;

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
