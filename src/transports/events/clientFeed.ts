/**
 * The items of a conversation for one client: entries without gap or repeat, and live signals between them in order.
 * Invariant: the client pulls items, and nothing is pushed. Entries stay in the log and need no memory here. A client that
 * is too slow for live signals loses them, and receives the whole streamed text after it has caught up.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import type { Broadcast, BroadcastItem, BroadcastLink, Reader } from './broadcast.ts';
import { type Frames, framesAfter, framesOf, storedFrames } from './eventFrames.ts';

export type FeedItem = BroadcastItem | { message: object };

export interface FeedOptions {
  /** The characters of live signals that may wait. */
  sizeMax: number;
  /** Called in a later turn of the event loop after an item has come. */
  wake?(): void;
}

export class ClientFeed implements Reader {
  readonly #broadcast: Broadcast;
  readonly #options: FeedOptions;
  /** The seq of the next entry. */
  #next: number;
  /** The last link that the client has taken. Undefined while the client is too slow for the list and reads the log. */
  #at: BroadcastLink | undefined;
  /** Entries before this seq are read from the log, and not from the list. */
  #until = 0;
  /** The streamed text so far, which comes before the links. */
  #beginning: BroadcastItem[] = [];
  #added: { message: object; after: BroadcastLink; logLength: number }[] = [];
  #ended = false;
  #wakeTake: () => void = () => {};

  constructor(broadcast: Broadcast, from: number, options: FeedOptions) {
    this.#broadcast = broadcast;
    this.#next = from;
    this.#options = options;
    this.#join();
  }

  get next(): number {
    return this.#next;
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  /** Before the first item: leaves out entries that the client has. */
  skipTo(seq: number): void {
    this.#next = seq;
  }

  /** Waits for an item; undefined if the conversation is closed and every item was taken. */
  async take(): Promise<FeedItem | undefined> {
    for (;;) {
      const item = this.takeNow();
      if (item || this.#ended) return item;
      await new Promise<void>((resolve) => {
        this.#wakeTake = resolve;
      });
    }
  }

  takeNow(): FeedItem | undefined {
    this.#checkLag();
    const [added] = this.#added;
    if (added && added.logLength <= this.#next && this.#hasTaken(added.after)) {
      this.#added.shift();
      return { message: added.message };
    }
    const entry = this.#storedEntry();
    if (entry) return { entry };
    const first = this.#beginning.shift();
    if (first) return first;
    if (this.#at) return this.#linked(this.#at);
    if (this.#ended) return undefined;
    this.#rejoin();
    return this.takeNow();
  }

  /** The next items as frames of server-sent events. Clients at the same place share them. */
  takeFrames(): Frames | undefined {
    this.#checkLag();
    const stored =
      this.#storedMax > this.#next ? storedFrames(this.#broadcast, this.#next, this.#storedMax) : undefined;
    if (stored) {
      this.#next = stored.next;
      return stored;
    }
    if (this.#beginning.length > 0) return framesOf(this.#beginning.splice(0));
    if (!this.#at) {
      if (this.#ended) return undefined;
      this.#rejoin();
      return this.takeFrames();
    }
    const frames = framesAfter(this.#broadcast, this.#at);
    if (!frames) {
      this.#broadcast.forgetEntries();
      return undefined;
    }
    this.#at = frames.to;
    this.#next = frames.next || this.#next;
    this.#broadcast.taken(frames.to);
    return frames;
  }

  /** Adds an item of the transport after everything that has come so far. */
  add(message: object): void {
    const { tail, listed } = this.#broadcast;
    this.#broadcast.taken(tail);
    this.#added.push({ message, after: tail, logLength: listed });
    this.wake();
  }

  /** Ends the feed. Items that have come can still be taken. */
  end(): void {
    this.#ended = true;
    this.wake();
  }

  /** Ends the feed when its reader has gone. */
  close(): void {
    this.#broadcast.leave(this);
    this.end();
  }

  wake(): void {
    this.#checkLag();
    this.#wakeTake();
    this.#options.wake?.();
  }

  #hasTaken(link: BroadcastLink): boolean {
    return !this.#at || (this.#at === link && this.#beginning.length === 0 && this.#next >= this.#until);
  }

  get #storedMax(): number {
    return this.#at ? this.#until : this.#broadcast.listed;
  }

  #storedEntry(): LogEntry | undefined {
    if (this.#next >= this.#storedMax) return undefined;
    const entry = this.#broadcast.entryAt(this.#next);
    if (entry) this.#next = entry.seq + 1;
    return entry;
  }

  #linked(at: BroadcastLink): FeedItem | undefined {
    const link = at.next;
    if (!link?.item) {
      this.#broadcast.forgetEntries();
      return undefined;
    }
    this.#at = link;
    this.#broadcast.taken(link);
    if ('entry' in link.item) this.#next = link.item.entry.seq + 1;
    return link.item;
  }

  #join(): void {
    this.#broadcast.join(this);
    this.#at = this.#broadcast.tail;
    this.#until = this.#broadcast.listed;
    for (const added of this.#added) added.after = this.#at;
    const runId = this.#broadcast.inFlightRunId;
    // A client that was connected before has a part of the streamed text, and now receives all of it.
    if (runId !== undefined) this.#beginning.push({ signal: { type: 'reset', runId } });
    this.#beginning.push(...this.#broadcast.inFlight().map((signal) => ({ signal })));
  }

  #rejoin(): void {
    this.#join();
    this.#beginning.push(...this.#broadcast.current().map((signal) => ({ signal })));
  }

  /** The links between the client and the tail are memory; those of a client that is too slow are given up. */
  #checkLag(): void {
    if (!this.#at || this.#broadcast.tail.size - this.#at.size <= this.#options.sizeMax) return;
    this.#at = undefined;
    this.#beginning = [];
  }
}
