/**
 * The ordered log of a conversation. It alone stamps seq, time and conversation id. Invariant: no reader receives an entry before it
 * is durable. Its caller appends one after the other, and a failed append leaves no trace. An append passes three steps: it is durable,
 * every fold has taken it, and subscribers have received it. Entries of charts are fitted to the log when their turn has come,
 * because an earlier append may have failed.
 */
import { type Observable, Subject } from 'rxjs';
import {
  applyEntry,
  createTranscript,
  deepFreeze,
  emptyLogState,
  type LogEntry,
  type LogState,
  type NewEntry,
  reconcile,
  type Transcript,
} from '../../machines/internal.ts';
import type { LogHandle } from '../stores/logStore.ts';
import { guarded } from './isolatedObservable.ts';
import type { Redact } from './redact.ts';

/** For agents without secrets. */
export const withoutRedaction: Redact = /* @__PURE__ */ Object.assign(<T>(value: T): T => value, {
  entry: (entry: NewEntry) => entry,
});

/** The folds of a log that a living conversation needs from its start. The same entries give the same folds, read or appended. */
export interface LogFolds {
  readonly logState: LogState;
  readonly transcript: Transcript;
}

export const emptyFolds = (): LogFolds => ({ logState: emptyLogState(), transcript: createTranscript() });

/** Adds the next entry. */
export function foldEntry({ logState, transcript }: LogFolds, entry: LogEntry): void {
  applyEntry(logState, entry);
  transcript.push(entry);
}

export function foldsOf(entries: Iterable<LogEntry>): LogFolds {
  const folds = emptyFolds();
  for (const entry of entries) foldEntry(folds, entry);
  return folds;
}

export class ConversationLog {
  readonly entries: LogEntry[];
  readonly #id: string;
  readonly #handle: LogHandle;
  /** Removes secrets from entries before they are stored, and from values for observers. */
  readonly redact: Redact;
  readonly #logState: LogState;
  readonly #transcript: Pick<Transcript, 'endsWithAssistant'>;
  /** The output of running calls so far, by their ids. It is part of their result if they are cancelled. */
  readonly partials = new Map<string, () => string>();
  readonly #listeners: ((entry: LogEntry) => void)[] = [];
  readonly #live = new Subject<LogEntry>();
  /** Durable entries that no fold has taken. */
  readonly #landed: LogEntry[] = [];
  /** Folded entries that subscribers have not received. */
  readonly #folded: LogEntry[] = [];
  /** The append that began last. */
  #last: Promise<void> | undefined;
  #pendingAppends = 0;
  #settledAppends = 0;

  /** `logState` and `transcript` are folds of the durable entries. A listener updates them. */
  constructor(options: {
    id: string;
    handle: LogHandle;
    entries: LogEntry[];
    redact: Redact;
    logState: LogState;
    transcript: Pick<Transcript, 'endsWithAssistant'>;
  }) {
    this.#id = options.id;
    this.#handle = options.handle;
    this.redact = options.redact;
    this.#logState = options.logState;
    this.#transcript = options.transcript;
    this.entries = options.entries;
  }

  /** A fold of the library: called for each durable entry, before any subscriber receives an entry of its append. */
  listen(listener: (entry: LogEntry) => void): void {
    this.#listeners.push(listener);
  }

  /** A watcher of the library: called for each announced entry, before any other subscriber. */
  watch(listener: (entry: LogEntry) => void): void {
    this.#live.subscribe(listener);
  }

  /**
   * Appends entries before the charts start. Returns undefined if the entries are durable at once, and otherwise a promise that resolves
   * when they are. Throws or rejects if they are not stored.
   */
  append(entries: readonly NewEntry[], at: number): void | Promise<void> {
    const pending = this.#append(() => entries, at);
    if (pending) return pending.then(() => this.#publish());
    this.#publish();
  }

  /**
   * Appends the entries of charts that may follow the durable ones. The driver calls `fold` in the block in which it starts
   * the requests of their step, and then `announce`.
   */
  follow(entries: readonly NewEntry[], at: number): void | Promise<void> {
    return this.#append(() => reconcile(this.#logState, entries, this.#transcript.endsWithAssistant()), at);
  }

  #withPartial(entry: NewEntry): NewEntry {
    if (entry.type !== 'tool-result') return entry;
    const partial = this.partials.get(entry.callId);
    this.partials.delete(entry.callId);
    const text = entry.code === 'cancelled' && partial?.();
    return text ? { ...entry, content: [...entry.content, { type: 'text', text }] } : entry;
  }

  /** Folds the entries that became durable. */
  fold(): void {
    for (const entry of this.#landed.splice(0)) {
      this.entries.push(entry);
      for (const listener of this.#listeners) listener(entry);
      this.#folded.push(entry);
    }
  }

  /** Shows folded entries to subscribers, in order. An entry that a subscriber causes comes after those before it. */
  announce(): void {
    for (let entry = this.#folded.shift(); entry; entry = this.#folded.shift()) this.#live.next(entry);
  }

  /** Entries from number `from` on, stored ones first, then live ones: no gap, no repeat. */
  stream(from: number, report: (error: unknown) => void): Observable<LogEntry> {
    return guarded(report, (subscriber) => {
      const first = Math.max(0, Math.ceil(from) || 0);
      for (let seq = first; seq < this.entries.length && !subscriber.closed; seq++) {
        subscriber.next(this.entries[seq] as LogEntry);
      }
      // Entries shown here may still have to be announced. A subscriber from a later entry on waits for that entry.
      const next = Math.max(first, this.entries.length);
      return this.#live.subscribe({
        next: (entry) => {
          if (entry.seq >= next) subscriber.next(entry);
        },
        complete: () => subscriber.complete(),
      });
    });
  }

  /** Whether an append is under way. */
  get hasPendingAppend(): boolean {
    return this.#pendingAppends > 0;
  }

  /** The number of appends that have ended, stored or not, except those that ended at once. */
  get settledAppends(): number {
    return this.#settledAppends;
  }

  /** Resolves when no append is under way. */
  async settled(): Promise<void> {
    await this.#last?.catch(() => undefined);
  }

  /** Releases the store. */
  close(): Promise<void> {
    this.#live.complete();
    return this.#handle.close();
  }

  #append(due: () => readonly NewEntry[], at: number): void | Promise<void> {
    this.fold();
    const entries = due();
    if (entries.length === 0) return;
    const stamped = this.#stamp(
      entries.map((entry) => this.#withPartial(entry)),
      at,
    );
    const { appendNow } = this.#handle;
    if (!appendNow) {
      this.#last = this.#store(stamped);
      return this.#last;
    }
    appendNow.call(this.#handle, stamped, this.entries.length);
    this.#landed.push(...stamped);
    this.fold();
  }

  /** The store works after the current step, never inside it. */
  async #store(stamped: readonly LogEntry[]): Promise<void> {
    this.#pendingAppends += 1;
    await undefined;
    try {
      await this.#handle.append(stamped, this.entries.length);
      this.#landed.push(...stamped);
    } finally {
      this.#pendingAppends -= 1;
      this.#settledAppends += 1;
    }
  }

  #stamp(entries: readonly NewEntry[], at: number): LogEntry[] {
    const first = this.entries.length;
    return entries.map((entry, index) =>
      deepFreeze({ seq: first + index, at, conversationId: this.#id, ...this.redact.entry(entry) } as LogEntry),
    );
  }

  #publish(): void {
    this.fold();
    this.announce();
  }
}
