/**
 * Entries back in the order of their seq. Rule: what comes too early waits, at most a window of it; then the gap is
 * given up with a note. A seq that was passed is a repeat and changes nothing. A list may start at any seq, so where
 * none is 0 the start is fixed only when the window is full.
 */
import type { Entry } from './read.ts';

export const WINDOW = 64;

type Hand = (entry: Entry) => void;
/** Told of the first and the last seq that are missing. */
type Miss = (from: number, to: number) => void;

export class Order {
  /** Undefined until the start is fixed. */
  private next: number | undefined;
  private readonly held = new Map<number, Entry>();

  get holds(): boolean {
    return this.held.size > 0;
  }

  /** Hands on what is in order now: this entry and those it held up, or behind a full window those after the gap. */
  take(seq: number, entry: Entry, hand: Hand, miss: Miss): void {
    if (seq === 0) this.next ??= 0;
    if (this.next !== undefined && seq < this.next) return;
    if (seq === this.next) {
      this.next++;
      hand(entry);
    } else {
      if (!this.held.has(seq)) this.held.set(seq, entry);
      if (this.held.size <= WINDOW) return;
      this.skip(miss);
    }
    this.release(hand);
  }

  /** Hands on what waits as if the gaps were closed; it goes on waiting. */
  peek(hand: Hand, miss: Miss): void {
    let { next } = this;
    for (const [seq, entry] of [...this.held].sort(([a], [b]) => a - b)) {
      if (next !== undefined && seq > next) miss(next, seq - 1);
      next = seq + 1;
      hand(entry);
    }
  }

  private skip(miss: Miss): void {
    const first = Math.min(...this.held.keys());
    if (this.next !== undefined) miss(this.next, first - 1);
    this.next = first;
  }

  private release(hand: Hand): void {
    if (this.next === undefined || this.held.size === 0) return;
    for (let entry = this.held.get(this.next); entry !== undefined; entry = this.held.get(this.next)) {
      this.held.delete(this.next++);
      hand(entry);
    }
  }
}
