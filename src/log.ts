/**
 * The one ordered log of a conversation, sole stamper of seq, time and conversation id. Rule: an entry is seen by
 * anybody only once it is durable; appends are one after the other, and a failed one leaves no trace.
 */
import { type Observable, Subject } from 'rxjs';
import type { LogEntry, NewEntry } from '../machines/index.ts';
import { deepFreeze } from './freeze.ts';
import { guarded } from './guard.ts';
import { type Redact, redactEntry } from './redact.ts';
import type { LogHandle } from './stores/store.ts';

export class ConversationLog {
  readonly entries: LogEntry[];
  readonly #id: string;
  readonly #handle: LogHandle;
  readonly #redact: Redact;
  readonly #listeners: ((entry: LogEntry) => void)[] = [];
  readonly #live = new Subject<LogEntry>();
  /** The append under way; the next one waits for it. */
  #tail: Promise<void> | undefined;

  constructor(options: { id: string; handle: LogHandle; entries: LogEntry[]; redact: Redact }) {
    this.#id = options.id;
    this.#handle = options.handle;
    this.#redact = options.redact;
    this.entries = options.entries;
  }

  /** A fold of the library's own: called for each durable entry, before any subscriber. */
  listen(listener: (entry: LogEntry) => void): void {
    this.#listeners.push(listener);
  }

  /** Answers nothing where the entries are durable at once; rejects or throws where they are not stored. */
  append(entries: readonly NewEntry[], at: number): void | Promise<void> {
    if (this.#tail) return this.#queue(() => this.#store(entries, at));
    const { appendNow } = this.#handle;
    if (!appendNow) return this.#queue(() => this.#store(entries, at));
    const stamped = this.#stamp(entries, at);
    appendNow.call(this.#handle, stamped, this.entries.length);
    this.#publish(stamped);
  }

  /** Stored entries from `from`, then live ones: no gap, no repeat. */
  stream(from: number, report: (error: unknown) => void): Observable<LogEntry> {
    return guarded(report, (subscriber) => {
      for (let seq = Math.max(0, from); seq < this.entries.length && !subscriber.closed; seq++) {
        subscriber.next(this.entries[seq] as LogEntry);
      }
      return this.#live.subscribe(subscriber);
    });
  }

  /** Waits for what is being appended, then lets go of the store. */
  async close(): Promise<void> {
    await this.#tail?.catch(() => undefined);
    this.#live.complete();
    await this.#handle.close();
  }

  #queue(store: () => Promise<void>): Promise<void> {
    const before = this.#tail ?? Promise.resolve();
    const mine = before.then(store, store);
    this.#tail = mine;
    const done = (): void => {
      if (this.#tail === mine) this.#tail = undefined;
    };
    mine.then(done, done);
    return mine;
  }

  async #store(entries: readonly NewEntry[], at: number): Promise<void> {
    const stamped = this.#stamp(entries, at);
    await this.#handle.append(stamped, this.entries.length);
    this.#publish(stamped);
  }

  #stamp(entries: readonly NewEntry[], at: number): LogEntry[] {
    const first = this.entries.length;
    return entries.map((entry, index) =>
      deepFreeze({ seq: first + index, at, conversationId: this.#id, ...redactEntry(entry, this.#redact) } as LogEntry),
    );
  }

  /** One by one, so that a subscriber that comes in between sees each entry once. */
  #publish(stamped: readonly LogEntry[]): void {
    for (const entry of stamped) {
      this.entries.push(entry);
      for (const listener of this.#listeners) listener(entry);
      this.#live.next(entry);
    }
  }
}
