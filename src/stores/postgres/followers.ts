/**
 * The followers of conversations that other processes hold. Invariant: a follower receives every entry once and in order, because it
 * reads them from the tables. A signal comes after every entry that was appended before it was sent; one that comes too late is
 * left out.
 */
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { RunchartError } from '../../errors.ts';
import type { Live } from '../../live.ts';
import { noConversation } from '../logStore.ts';
import { arrayText, type Database, type Row, storeError } from './database.ts';
import { fitsHint, type Hints, POLL_MS } from './hints.ts';
import { readEntries } from './postgresEntries.ts';
import type { Statements } from './statements.ts';

/** Signals that wait for entries. */
const SIGNALS_MAX = 1000;

class Follower {
  readonly id: string;
  next: number;
  /** The entries that are stored. Undefined until the tables were asked. */
  length: number | undefined;
  /** The conversation is gone, or its holder has died in the middle of a run. */
  isOver = false;
  isStopped = false;
  error: unknown;
  #signals: { next: number; signal: Live }[] = [];
  #wake: () => void = () => {};

  constructor(id: string, from: number) {
    this.id = id;
    this.next = from;
  }

  wake(): void {
    this.#wake();
  }

  waken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  addSignals(next: number, signals: readonly Live[]): void {
    for (const signal of signals) this.#signals.push({ next, signal });
    this.#signals.splice(0, this.#signals.length - SIGNALS_MAX);
  }

  takeSignal(): Live | undefined {
    for (;;) {
      const [first] = this.#signals;
      if (!first || first.next > this.next) return undefined;
      this.#signals.shift();
      if (first.next === this.next) return first.signal;
    }
  }
}

export interface FollowersOptions {
  database: Database;
  statements: Statements;
  hints: Hints;
  leaseMs: number;
  /** Resolves when there are tables. */
  ready(): Promise<void>;
  /** A follower of a run whose holder has died is ended, so that its reader takes the conversation over. */
  takesOver: boolean;
}

export class Followers {
  readonly #options: FollowersOptions;
  readonly #followers = new Map<string, Set<Follower>>();
  #stopTimer: (() => void) | undefined;
  #hintedAt = 0;
  /** The ids whose states are due, and whether a query is under way. */
  #due = new Set<string>();
  #isAsking = false;
  /** The time of the first query that the database has not answered. */
  #unansweredSince: number | undefined;
  #isClosed = false;

  constructor(options: FollowersOptions) {
    this.#options = options;
  }

  /** Rejects with `not_found`, and with `store`. Ends when the conversation is gone, or must be taken over. */
  follow(id: string, from: number): AsyncIterableIterator<LogEntry | Live> {
    const follower = new Follower(id, Math.max(0, Math.ceil(from) || 0));
    const items = this.#items(follower);
    return {
      next: () => items.next(),
      // A generator would wait for the next item.
      return: () => {
        follower.isStopped = true;
        follower.wake();
        return items.return(undefined);
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  async *#items(follower: Follower): AsyncGenerator<LogEntry | Live> {
    const { id } = follower;
    await this.#options.ready();
    // The store was closed meanwhile.
    if (this.#isClosed) return;
    this.#add(follower);
    try {
      while (!follower.isStopped) {
        const { length } = follower;
        if (follower.error !== undefined) throw follower.error;
        if (length !== undefined && follower.next < length) {
          for await (const entry of readEntries(this.#options, id, follower.next, length)) {
            follower.next = entry.seq + 1;
            yield entry;
            if (follower.isStopped) return;
          }
          // Less was read if the conversation was deleted meanwhile; the next state shows that.
          if (follower.next < length) {
            // Both may have been set during the reading, when nothing waited to be woken.
            if (follower.isOver || follower.isStopped) return;
            await follower.waken();
          }
          continue;
        }
        const signal = follower.takeSignal();
        if (signal) yield signal;
        else if (follower.isOver) return;
        else await follower.waken();
      }
    } finally {
      this.#remove(follower);
    }
  }

  /** Entries were appended. */
  appended(ids: readonly string[]): void {
    this.#ask(ids.filter((id) => this.#followers.has(id)));
  }

  /** The holder has sent signals. */
  signalled(id: string, next: number, signals: readonly Live[]): void {
    for (const follower of this.#followers.get(id) ?? []) {
      follower.addSignals(next, signals);
      if (next > follower.next) this.#ask([id]);
      follower.wake();
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#stopTimer?.();
    for (const followers of this.#followers.values())
      for (const follower of followers) {
        follower.isOver = true;
        follower.wake();
      }
  }

  #add(follower: Follower): void {
    const { hints } = this.#options;
    // A failure before the first follower does not count.
    if (this.#followers.size === 0) this.#unansweredSince = undefined;
    const siblings = this.#followers.get(follower.id) ?? new Set();
    this.#followers.set(follower.id, siblings.add(follower));
    hints.listen();
    hints.send({ followed: [follower.id], isNew: true });
    this.#ask([follower.id]);
    this.#schedule();
  }

  #remove(follower: Follower): void {
    const siblings = this.#followers.get(follower.id);
    siblings?.delete(follower);
    if (siblings?.size === 0) this.#followers.delete(follower.id);
    if (this.#followers.size > 0) return;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  #schedule(): void {
    if (this.#stopTimer || this.#isClosed) return;
    const { database, hints, leaseMs } = this.#options;
    const ms = Math.min(hints.isListening ? POLL_MS.listening : POLL_MS.polling, leaseMs / 4);
    this.#stopTimer = database.time.setTimer(ms, () => {
      this.#stopTimer = undefined;
      if (this.#followers.size === 0) return;
      this.#endWithoutDatabase();
      this.#ask([...this.#followers.keys()]);
      this.#tellHolders();
      this.#schedule();
    });
  }

  /** Readers of this process then go to one that has the database. */
  #endWithoutDatabase(): void {
    const { database, leaseMs } = this.#options;
    if (this.#unansweredSince === undefined || database.time.now() - this.#unansweredSince < leaseMs / 2) return;
    for (const followers of this.#followers.values())
      for (const follower of followers) {
        follower.error ??= new RunchartError(
          'unavailable',
          'the database does not answer: follow the conversation again',
        );
        follower.wake();
      }
  }

  /** Holders send hints and signals only for a while. */
  #tellHolders(): void {
    const { database, hints, leaseMs } = this.#options;
    const now = database.time.now();
    if (now - this.#hintedAt < leaseMs / 3) return;
    this.#hintedAt = now;
    let followed: string[] = [];
    for (const id of this.#followers.keys()) {
      if (!fitsHint({ followed: [...followed, id] })) {
        hints.send({ followed });
        followed = [];
      }
      followed.push(id);
    }
    hints.send({ followed });
  }

  /** Queries the states of these conversations, after the current query. */
  #ask(ids: readonly string[]): void {
    for (const id of ids) this.#due.add(id);
    if (this.#isAsking || this.#due.size === 0) return;
    void this.#askAll();
  }

  async #askAll(): Promise<void> {
    const { database, statements } = this.#options;
    this.#isAsking = true;
    while (this.#due.size > 0 && !this.#isClosed) {
      const ids = [...this.#due];
      this.#due = new Set();
      this.#unansweredSince ??= database.time.now();
      try {
        const rows = await database.repeat(statements.states, [arrayText(ids)]);
        this.#unansweredSince = undefined;
        const found = new Map(rows.map((row) => [String(row.id), row]));
        for (const id of ids) this.#update(id, found.get(id));
      } catch (cause) {
        // A follower waits while the database cannot be reached, but not at its beginning.
        for (const id of ids)
          for (const follower of this.#followers.get(id) ?? []) {
            if (follower.length !== undefined) continue;
            follower.error = storeError(`conversation "${id}" cannot be followed`, cause);
            follower.wake();
          }
      }
    }
    // This is in the same turn as the last check of the due ids, so a later id starts a query of its own.
    this.#isAsking = false;
  }

  #update(id: string, row: Row | undefined): void {
    const length = Number(row?.length ?? 0);
    for (const follower of this.#followers.get(id) ?? []) {
      if (length === 0 && follower.length === undefined) follower.error = noConversation();
      // Another log has the id, or none has it.
      if (length === 0 || length < (follower.length ?? 0)) follower.isOver = true;
      else follower.length = length;
      if (this.#options.takesOver && row?.cut_off === true) follower.isOver = true;
      follower.wake();
    }
  }
}
