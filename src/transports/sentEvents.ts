/**
 * A conversation as server-sent events. Rule: `id:` is an entry's seq, so a client that comes back names the last one it has and misses
 * none; live signals have no id. A client that does not read is cut off, and can come back. A client that names an entry beyond the
 * log's end receives a `reset`, then the log from entry 0.
 */
import type { Conversation } from '../conversation/conversation.ts';
import type { Ports } from '../runtime/hostPorts.ts';
import { Feed, type FeedItem } from './clientFeed.ts';

export interface EventStreamOptions {
  /** Seq of the first entry that is wanted. */
  from: number;
  /** Characters of live signals that may wait for a client. */
  waitingMax: number;
  /** A client that takes nothing for this long, while something waits, is cut off; one that hears nothing is told that it is connected. */
  beatMs: number;
  setTimer: Ports['setTimer'];
  /** Called once, when the stream is over for whatever reason. */
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
  readonly #feed: Feed;
  readonly #isForeign: boolean;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** Everything was taken and nothing has come. */
  #waiting = false;
  /** Something was taken since the last beat. */
  #taken = false;
  #stopBeat: () => void = () => {};
  #isOver = false;

  constructor(conversation: Conversation, options: EventStreamOptions) {
    this.#options = options;
    const { waitingMax } = options;
    // A client that names an entry beyond the log's end has the log of another conversation: it begins anew.
    this.#isForeign = options.from > 0 && conversation.log(options.from - 1).length === 0;
    this.#feed = new Feed(conversation, this.#isForeign ? 0 : options.from, {
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
  // One chunk is made ahead and no more: what waits, waits in the log.
  const source = new EventSource(conversation, options);
  const body = new ReadableStream<Uint8Array>(source, new CountQueuingStrategy({ highWaterMark: 1 }));
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' };
  return new Response(body, { headers: { ...headers, 'x-content-type-options': 'nosniff' } });
}
