/**
 * What one client is shown of a conversation: entries without gap or repeat, and live signals between them at their place. Rule: a client
 * takes, nothing is pushed at it; entries wait in the log and cost nothing, live signals wait within a bound.
 */
import type { LogEntry } from '../../machines/internal.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Live } from '../live.ts';

export type FeedItem = { entry: LogEntry } | { signal: Live };

/** About what a signal holds, without making it JSON. */
const sizeOf = (signal: Live): number =>
  64 + ('text' in signal ? signal.text.length : 0) + ('update' in signal ? 256 : 0);

export interface FeedLimit {
  /** Characters of live signals that may wait. */
  sizeMax: number;
  /** More than that waited, and is dropped: the client is too slow. */
  overrun(): void;
}

export class Feed {
  readonly #conversation: Conversation;
  readonly #limit: FeedLimit;
  #entries: readonly LogEntry[] = [];
  /** Seq of the next entry. */
  #next: number;
  /** Each with the length of the log when it came. */
  #signals: { signal: Live; behind: number }[] = [];
  #size = 0;
  #ended = false;
  #wake: () => void = () => {};
  readonly #stop: () => void;

  constructor(conversation: Conversation, from: number, limit: FeedLimit) {
    this.#conversation = conversation;
    this.#next = from;
    this.#limit = limit;
    const { inFlight } = conversation;
    // Who was here before has some of it already, and is shown all of it now.
    if (inFlight) this.#put({ type: 'reset', runId: inFlight.runId });
    const live = conversation.live$.subscribe((signal) => this.#put(signal));
    const log = conversation.log$(Number.MAX_SAFE_INTEGER).subscribe({ complete: () => this.#end() });
    const entries = conversation.log$(conversation.log().length).subscribe(() => this.#wake());
    this.#stop = () => {
      live.unsubscribe();
      log.unsubscribe();
      entries.unsubscribe();
    };
  }

  /** Waits for an item; nothing where the conversation is closed and all of it was taken. */
  async take(): Promise<FeedItem | undefined> {
    for (;;) {
      const item = this.takeNow();
      if (item || this.#ended) return item;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  takeNow(): FeedItem | undefined {
    const [first] = this.#signals;
    // Signals of long ago go first as well: `from` may lie beyond what there is.
    if (first && first.behind <= this.#next) {
      this.#signals.shift();
      this.#size -= sizeOf(first.signal);
      return { signal: first.signal };
    }
    return this.#entry();
  }

  /** Nobody takes any more. */
  close(): void {
    this.#stop();
    this.#end();
  }

  #entry(): FeedItem | undefined {
    const [first] = this.#entries;
    const known = first ? this.#entries[this.#next - first.seq] : undefined;
    if (!known) this.#entries = this.#conversation.log(this.#next);
    const entry = known ?? this.#entries[0];
    if (!entry) return undefined;
    this.#next = entry.seq + 1;
    return { entry };
  }

  #put(signal: Live): void {
    this.#signals.push({ signal, behind: this.#conversation.log().length });
    this.#size += sizeOf(signal);
    if (this.#size > this.#limit.sizeMax) this.#overrun();
    this.#wake();
  }

  #overrun(): void {
    this.#signals = [];
    this.#size = 0;
    this.#limit.overrun();
  }

  #end(): void {
    this.#ended = true;
    this.#wake();
  }
}
