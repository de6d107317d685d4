/**
 * The live signals of a holder for the followers in other processes. Invariant: nothing is sent while nobody follows. Text is sent in
 * pieces that fit a hint, at most every 50 ms. A follower that joins during a reply receives a reset, then the text so far.
 */
import type { Observable, Subscription } from 'rxjs';
import type { Live } from '../../live.ts';
import { fitsHint, type Hints } from './hints.ts';

const COALESCE_MS = 50;
/** A character takes at most six bytes as JSON. */
const TEXT_MAX = 1200;

type Text = Extract<Live, { text: string }>;
const isText = (signal: Live): signal is Text => 'text' in signal;

/** The two signals as one, if they are pieces of one text and fit a notification. */
export function joined(last: Live | undefined, signal: Live): Text | undefined {
  if (!last || !isText(last) || !isText(signal)) return undefined;
  const { text: _, ...before } = last;
  const { text: __, ...after } = signal;
  if (JSON.stringify(before) !== JSON.stringify(after) || last.text.length + signal.text.length > TEXT_MAX) return;
  return { ...last, text: last.text + signal.text };
}

/** The signal in pieces that fit a notification. */
export function piecesOf(signal: Live): Live[] {
  if (!isText(signal) || signal.text.length <= TEXT_MAX) return [signal];
  const pieces: Live[] = [];
  const { text } = signal;
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = at + TEXT_MAX;
    // Both halves of a surrogate pair are in one piece.
    if (/[\ud800-\udbff]/.test(text.charAt(end - 1))) end -= 1;
    pieces.push({ ...signal, text: text.slice(at, end) });
  }
  return pieces;
}

export class LiveFeed {
  readonly #id: string;
  readonly #hints: Hints;
  readonly #live$: Observable<Live>;
  /** The number of durable entries. */
  readonly #next: () => number;
  #subscription: Subscription | undefined;
  #waiting: { next: number; signal: Live }[] = [];
  /** Cancels the next send. Undefined if none is due. */
  #stopFlush: (() => void) | undefined;
  /** Cancels the timer that ends the following. */
  #stopEnd: (() => void) | undefined;

  constructor(id: string, hints: Hints, live$: Observable<Live>, next: () => number) {
    this.#id = id;
    this.#hints = hints;
    this.#live$ = live$;
    this.#next = next;
  }

  get isFollowed(): boolean {
    return this.#subscription !== undefined;
  }

  /** A process follows, for this time. `isNew`: it may have received nothing of the current reply. */
  follow(ms: number, isNew: boolean): void {
    this.#stopEnd?.();
    this.#stopEnd = this.#hints.time.setTimer(ms, () => this.stop(), true);
    if (this.#subscription && !isNew) return;
    this.#subscription?.unsubscribe();
    let isReplayed = true;
    let hasReset = false;
    this.#subscription = this.#live$.subscribe((signal) => {
      // Signals that arrive inside this call are the text so far of the reply.
      if (isReplayed && !hasReset && 'runId' in signal) {
        hasReset = true;
        this.#add({ type: 'reset', runId: signal.runId });
      }
      this.#add(signal);
    });
    isReplayed = false;
  }

  /** Sends the waiting signals, before an entry is announced. */
  flush(): void {
    this.#stopFlush?.();
    this.#stopFlush = undefined;
    let [first] = this.#waiting;
    let signals: Live[] = [];
    for (const { next, signal } of this.#waiting.splice(0)) {
      if (first && (next !== first.next || !fitsHint({ live: this.#id, next, signals: [...signals, signal] }))) {
        this.#hints.send({ live: this.#id, next: first.next, signals });
        signals = [];
      }
      first = { next, signal };
      signals.push(signal);
    }
    if (first && signals.length > 0) this.#hints.send({ live: this.#id, next: first.next, signals });
  }

  stop(): void {
    this.#stopEnd?.();
    this.#stopFlush?.();
    this.#stopFlush = undefined;
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
    this.#waiting = [];
  }

  #add(signal: Live): void {
    const next = this.#next();
    for (const piece of piecesOf(signal)) {
      const last = this.#waiting.at(-1);
      const one = last?.next === next ? joined(last.signal, piece) : undefined;
      if (last && one) last.signal = one;
      else this.#waiting.push({ next, signal: piece });
    }
    this.#stopFlush ??= this.#hints.time.setTimer(COALESCE_MS, () => this.flush());
  }
}
