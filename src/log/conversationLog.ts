/**
 * The one ordered log of a conversation, sole stamper of seq, time and conversation id. Rule: an entry is seen by
 * anybody only once it is durable; appends are one after the other, and a failed one leaves no trace. Who watches hears
 * of an append when every fold has taken all of it. What follows is fitted to what was durable before it, since an
 * append that failed may have been followed by others already.
 */
import { type Observable, Subject } from 'rxjs';
import { type LogEntry, type LogState, type NewEntry, reconcile, type Transcript } from '../../machines/internal.ts';
import { deepFreeze } from '../json.ts';
import type { LogHandle } from '../stores/store.ts';
import { guarded } from './isolatedObservable.ts';
import type { Redact } from './redact.ts';

/** For agents without secrets. */
export const withoutRedaction: Redact = Object.assign(<T>(value: T): T => value, { entry: (entry: NewEntry) => entry });

export class ConversationLog {
  readonly entries: LogEntry[];
  readonly #id: string;
  readonly #handle: LogHandle;
  /** Takes secrets out of what is stored, and of what an observer is shown. */
  readonly redact: Redact;
  readonly #logState: LogState;
  readonly #transcript: Pick<Transcript, 'endsWithAssistant'>;
  readonly #listeners: ((entry: LogEntry) => void)[] = [];
  readonly #live = new Subject<LogEntry>();
  /** The append under way; the next one waits for it. */
  #tail: Promise<void> | undefined;
  #settledAppends = 0;

  /** `known` and `transcript`: what the durable entries say, kept up to date by a listener. */
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

  /** A fold of the library's own: called for each durable entry, before any subscriber hears of its append. */
  listen(listener: (entry: LogEntry) => void): void {
    this.#listeners.push(listener);
  }

  /** The library's own watcher: called for each entry of an append that is folded, before any other. */
  watch(listener: (entry: LogEntry) => void): void {
    this.#live.subscribe(listener);
  }

  /** Answers nothing where the entries are durable at once; rejects or throws where they are not stored. */
  append(entries: readonly NewEntry[], at: number): void | Promise<void> {
    return this.#append(() => entries, at);
  }

  /** The same for what charts logged: of it stays what may follow when its turn has come. */
  follow(entries: readonly NewEntry[], at: number): void | Promise<void> {
    return this.#append(() => reconcile(this.#logState, entries, this.#transcript.endsWithAssistant()), at);
  }

  /** Entries from number `from` on, stored ones first, then live ones: no gap, no repeat. */
  stream(from: number, report: (error: unknown) => void): Observable<LogEntry> {
    return guarded(report, (subscriber) => {
      const first = Math.max(0, Math.ceil(from) || 0);
      for (let seq = first; seq < this.entries.length && !subscriber.closed; seq++) {
        subscriber.next(this.entries[seq] as LogEntry);
      }
      // What was shown is not shown again, though its append may be told right now; who wants to begin further on than
      // the log is waits for that entry.
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
    return this.#tail !== undefined;
  }

  /** How many appends have come to an end, stored or not; those that end at once are not counted. */
  get settledAppends(): number {
    return this.#settledAppends;
  }

  /** Waits for what is being appended. */
  async settled(): Promise<void> {
    await this.#tail?.catch(() => undefined);
  }

  /** Lets go of the store. */
  close(): Promise<void> {
    this.#live.complete();
    return this.#handle.close();
  }

  #append(due: () => readonly NewEntry[], at: number): void | Promise<void> {
    const { appendNow } = this.#handle;
    if (this.#tail || !appendNow) return this.#queue(() => this.#store(due(), at));
    const entries = due();
    if (entries.length === 0) return;
    const stamped = this.#stamp(entries, at);
    appendNow.call(this.#handle, stamped, this.entries.length);
    this.#publish(stamped);
  }

  #queue(store: () => Promise<void>): Promise<void> {
    const before = this.#tail ?? Promise.resolve();
    const mine = before.then(store, store);
    this.#tail = mine;
    const done = (): void => {
      this.#settledAppends += 1;
      if (this.#tail === mine) this.#tail = undefined;
    };
    mine.then(done, done);
    return mine;
  }

  async #store(entries: readonly NewEntry[], at: number): Promise<void> {
    if (entries.length === 0) return;
    const stamped = this.#stamp(entries, at);
    await this.#handle.append(stamped, this.entries.length);
    this.#publish(stamped);
  }

  #stamp(entries: readonly NewEntry[], at: number): LogEntry[] {
    const first = this.entries.length;
    return entries.map((entry, index) =>
      deepFreeze({ seq: first + index, at, conversationId: this.#id, ...this.redact.entry(entry) } as LogEntry),
    );
  }

  #publish(stamped: readonly LogEntry[]): void {
    for (const entry of stamped) {
      this.entries.push(entry);
      for (const listener of this.#listeners) listener(entry);
    }
    for (const entry of stamped) this.#live.next(entry);
  }
}
