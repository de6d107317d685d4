/**
 * The items of a conversation for one client: entries without gap or repeat, and live signals between them in order.
 * Rule: the client pulls items, and nothing is pushed. Entries stay in the log and need no memory here; waiting live
 * signals are bounded.
 */
import type { Subscription } from 'rxjs';
import type { LogEntry } from '../../machines/internal.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Live } from '../live.ts';

export type FeedItem = { entry: LogEntry } | { signal: Live } | { message: object };

/** The approximate size of a signal, without serializing it. */
const sizeOf = (signal: Live): number =>
  64 + ('text' in signal ? signal.text.length : 0) + ('update' in signal ? 256 : 0);

export interface FeedLimit {
  /** The characters of live signals that may wait. */
  sizeMax: number;
  /**
   * Called when more than `sizeMax` waits and the signals are dropped, because the client is too slow. Without it, the
   * client receives the whole streamed text after it has caught up.
   */
  overrun?(): void;
}

export class ClientFeed {
  readonly #conversation: Conversation;
  readonly #limit: FeedLimit;
  #entries: readonly LogEntry[] = [];
  /** Seq of the next entry. */
  #next: number;
  /** Each item with the length of the log at its arrival. */
  #waiting: { item: Exclude<FeedItem, { entry: LogEntry }>; logLength: number }[] = [];
  #size = 0;
  #live: Subscription | undefined;
  /** Set while the first signals are added: they are in memory already, so the limit does not apply. */
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
    this.#subscribe();
    this.#stop = () => {
      this.#live?.unsubscribe();
      log.unsubscribe();
      entries.unsubscribe();
    };
  }

  /** Waits for an item; undefined if the conversation is closed and every item was taken. */
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
    if (first && first.logLength <= this.#next) {
      this.#waiting.shift();
      if ('signal' in first.item) this.#size -= sizeOf(first.item.signal);
      return first.item;
    }
    const item = this.#entry();
    if (item || this.#live || this.#ended) return item;
    this.#subscribe();
    return this.takeNow();
  }

  /** Adds an item of the transport after all entries that are in the log now. */
  add(message: object): void {
    this.#waiting.push({ item: { message }, logLength: this.#conversation.log().length });
    this.#wake();
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  /** Ends the feed. Items that wait or are in the log can still be taken. */
  end(): void {
    this.#stop();
    this.#end();
  }

  /** Ends the feed when its reader has gone. */
  close(): void {
    this.#stop();
    this.#end();
  }

  #entry(): FeedItem | undefined {
    const [first] = this.#entries;
    const buffered = first ? this.#entries[this.#next - first.seq] : undefined;
    if (!buffered) this.#entries = this.#conversation.log(this.#next);
    const entry = buffered ?? this.#entries[0];
    if (!entry) return undefined;
    this.#next = entry.seq + 1;
    return { entry };
  }

  #subscribe(): void {
    const { inFlight } = this.#conversation;
    this.#isBeginning = true;
    // A client that was connected before has a part of the streamed text, and now receives all of it.
    if (inFlight) this.#addSignal({ type: 'reset', runId: inFlight.runId });
    this.#live = this.#conversation.live$.subscribe((signal) => this.#addSignal(signal));
    this.#isBeginning = false;
  }

  #addSignal(signal: Live): void {
    this.#waiting.push({ item: { signal }, logLength: this.#conversation.log().length });
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
