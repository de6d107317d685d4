/**
 * Streams a conversation as server-sent events. Rule: `id:` is an entry's seq. A client that reconnects sends the last
 * id it has, and misses no entry. Live signals have no id. A client that stops reading is disconnected and can
 * reconnect. A client that names an entry beyond the log's end receives a `reset`, then the log from entry 0.
 */
import type { Conversation } from '../conversation/conversation.ts';
import type { Ports } from '../runtime/hostPorts.ts';
import { ClientFeed, type FeedItem } from './clientFeed.ts';

export interface EventStreamOptions {
  /** Seq of the first entry to send. */
  from: number;
  /** The characters of live signals that may wait for a client. */
  waitingMax: number;
  /**
   * A client that reads nothing for this long while data waits is disconnected. After this long without data, a comment
   * is sent.
   */
  beatMs: number;
  setTimer: Ports['setTimer'];
  /** Called once when the stream ends, for whatever reason. */
  over(): void;
}

const CHUNK = 16_384;
const encoder = new TextEncoder();

function frameOf(item: FeedItem): string {
  if ('entry' in item) return `id: ${item.entry.seq}\nevent: entry\ndata: ${JSON.stringify(item.entry)}\n\n`;
  return 'signal' in item ? `event: live\ndata: ${JSON.stringify(item.signal)}\n\n` : '';
}

class EventSource implements UnderlyingDefaultSource<Uint8Array> {
  readonly #options: EventStreamOptions;
  readonly #feed: ClientFeed;
  readonly #isForeign: boolean;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** Everything was read and no new item has come. */
  #waiting = false;
  /** An item was read since the last beat. */
  #taken = false;
  #stopBeat: () => void = () => {};
  #isOver = false;

  constructor(conversation: Conversation, options: EventStreamOptions) {
    this.#options = options;
    const { waitingMax } = options;
    // A client that names an entry beyond the log's end has read another conversation, so it starts anew.
    this.#isForeign = options.from > 0 && conversation.log(options.from - 1).length === 0;
    this.#feed = new ClientFeed(conversation, this.#isForeign ? 0 : options.from, {
      sizeMax: waitingMax,
      overrun: () => this.#cut(),
    });
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
    this.#say('retry: 1000\n\n');
    if (this.#isForeign) this.#say(frameOf({ signal: { type: 'reset', runId: '' } }));
    this.#beat();
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#taken = true;
    this.#waiting = true;
    const first = await this.#feed.take();
    this.#waiting = false;
    if (this.#isOver) return;
    if (!first) {
      this.#finish();
      controller.close();
      return;
    }
    let text = frameOf(first);
    while (text.length < CHUNK) {
      const next = this.#feed.takeNow();
      if (!next) break;
      text += frameOf(next);
    }
    this.#say(text);
  }

  cancel(): void {
    this.#finish();
  }

  #say(text: string): void {
    this.#controller?.enqueue(encoder.encode(text));
  }

  #beat(): void {
    this.#stopBeat = this.#options.setTimer(this.#options.beatMs, () => {
      if (!this.#waiting && !this.#taken) return this.#cut();
      if (this.#waiting) this.#say(': still connected\n\n');
      this.#taken = false;
      this.#beat();
    });
  }

  #cut(): void {
    if (this.#isOver) return;
    this.#finish();
    this.#controller?.error(new Error('the reader is too slow'));
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopBeat();
    this.#feed.close();
    this.#options.over();
  }
}

export function eventStream(conversation: Conversation, options: EventStreamOptions): Response {
  // Only one chunk is made in advance; everything else waits in the log.
  const source = new EventSource(conversation, options);
  const body = new ReadableStream<Uint8Array>(source, new CountQueuingStrategy({ highWaterMark: 1 }));
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' };
  return new Response(body, { headers: { ...headers, 'x-content-type-options': 'nosniff' } });
}
