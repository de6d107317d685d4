/**
 * What one client is shown of a conversation: entries without gap or repeat, and live signals between them at their place. Rule: a client
 * takes, nothing is pushed at it; entries wait in the log and cost nothing, live signals wait within a bound.
 */
import type { Subscription } from 'rxjs';
import type { LogEntry } from '../../machines/internal.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Live } from '../live.ts';

export type FeedItem = { entry: LogEntry } | { signal: Live } | { said: object };

/** About what a signal holds, without making it JSON. */
const sizeOf = (signal: Live): number =>
  64 + ('text' in signal ? signal.text.length : 0) + ('update' in signal ? 256 : 0);

export interface FeedLimit {
  /** Characters of live signals that may wait. */
  sizeMax: number;
  /** More than that waited, and is dropped: the client is too slow. Without it the client gets what is streamed as a whole when it has caught up. */
  overrun?(): void;
}

export class Feed {
  readonly #conversation: Conversation;
  readonly #limit: FeedLimit;
  #entries: readonly LogEntry[] = [];
  /** Seq of the next entry. */
  #next: number;
  /** Each with the length of the log when it came. */
  #waiting: { item: Exclude<FeedItem, { entry: LogEntry }>; behind: number }[] = [];
  #size = 0;
  #live: Subscription | undefined;
  /** What is shown at once to who comes; it is in memory already, and does not count. */
  #isBeginning = false;
  #ended = false;
  #wake: () => void = () => {};
  readonly #stop: () => void;

  constructor(conversation: Conversation, from: number, limit: FeedLimit) {
    this.#conversation = conversation;
    this.#next = from;
    this.#limit = limit;
    const log = conversation.log$(Number.MAX_SAFE_INTEGER).subscribe({ complete: () => this.#end() });
    const entries = conversation.log$(conversation.log().length).subscribe(() => this.#wake());
    this.#follow();
    this.#stop = () => {
      this.#live?.unsubscribe();
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
    const [first] = this.#waiting;
    if (first && first.behind <= this.#next) {
      this.#waiting.shift();
      if ('signal' in first.item) this.#size -= sizeOf(first.item.signal);
      return first.item;
    }
    const item = this.#entry();
    if (item || this.#live || this.#ended) return item;
    this.#follow();
    return this.takeNow();
  }

  /** Something of the transport's own, behind all that is in the log now. */
  say(said: object): void {
    this.#waiting.push({ item: { said }, behind: this.#conversation.log().length });
    this.#wake();
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  /** What waits and what is in the log is taken still, and then no more. */
  end(): void {
    this.#stop();
    this.#end();
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

  #follow(): void {
    const { inFlight } = this.#conversation;
    this.#isBeginning = true;
    // Who was here before has some of it already, and is shown all of it now.
    if (inFlight) this.#put({ type: 'reset', runId: inFlight.runId });
    this.#live = this.#conversation.live$.subscribe((signal) => this.#put(signal));
    this.#isBeginning = false;
  }

  #put(signal: Live): void {
    this.#waiting.push({ item: { signal }, behind: this.#conversation.log().length });
    this.#size += sizeOf(signal);
    if (this.#size > this.#limit.sizeMax && !this.#isBeginning) this.#overrun();
    this.#wake();
  }

  #overrun(): void {
    this.#live?.unsubscribe();
    this.#live = undefined;
    this.#waiting = this.#waiting.filter(({ item }) => !('signal' in item));
    this.#size = 0;
    this.#limit.overrun?.();
  }

  #end(): void {
    this.#ended = true;
    this.#wake();
  }
}
