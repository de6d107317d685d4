/**
 * The appends of an open log, for stores that write after the call. Invariant: appends are stored in the order
 * of their calls. Those that wait share one write, and fail together. Each must follow those before it.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { refuseOutOfOrder } from './logStore.ts';

export interface QueuedLog<P> {
  readonly id: string;
  nextSeq(): number;
  /** Stores all, or none and rejects. Called again only after it has settled. */
  store(pending: readonly P[]): Promise<void>;
  /** Called for each append after it was stored. */
  appended?(entries: readonly LogEntry[]): void;
}

interface QueuedAppend<P> {
  entries: readonly LogEntry[];
  /** The entries as they were at the call. */
  pending: readonly P[];
  expectedSeq: number;
  resolve(): void;
  reject(error: unknown): void;
}

export class OrderedAppends<P extends { readonly seq: number }> {
  readonly #log: QueuedLog<P>;
  /** Appends that wait for the write before theirs. */
  #queue: QueuedAppend<P>[] = [];
  /** Resolves when no append waits. Undefined if there is none. */
  #storing: Promise<void> | undefined;

  constructor(log: QueuedLog<P>) {
    this.#log = log;
  }

  add(entries: readonly LogEntry[], pending: readonly P[], expectedSeq: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ entries, pending, expectedSeq, resolve, reject });
      this.#storing ??= this.#storeQueue();
    });
  }

  /** Resolves when no append waits. */
  async drained(): Promise<void> {
    await this.#storing;
  }

  async #storeQueue(): Promise<void> {
    // Appends of one tick share a write.
    await undefined;
    while (this.#queue.length > 0) {
      const appends = this.#takeOrdered();
      try {
        await this.#log.store(appends.flatMap((append) => append.pending));
        for (const { entries, resolve } of appends) {
          this.#log.appended?.(entries);
          resolve();
        }
      } catch (error) {
        for (const { reject } of appends) reject(error);
      }
    }
    this.#storing = undefined;
  }

  /** Takes the queue, and rejects each append that does not follow those before it. */
  #takeOrdered(): QueuedAppend<P>[] {
    let next = this.#log.nextSeq();
    return this.#queue.splice(0).filter(({ pending, expectedSeq, reject }) => {
      try {
        refuseOutOfOrder(this.#log.id, next, pending, expectedSeq);
        next += pending.length;
        return true;
      } catch (error) {
        reject(error);
        return false;
      }
    });
  }
}
