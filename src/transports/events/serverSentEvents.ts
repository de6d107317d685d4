/**
 * Streams a conversation as server-sent events. Rule: `id:` is an entry's seq. A client that reconnects sends the last
 * id it has, and misses no entry. Live signals have no id. A client that stops reading is disconnected and can
 * reconnect. A client that names an entry beyond the log's end receives a `reset`, then the log from entry 0.
 */
import type { Ports } from '../../runtime/hostPorts.ts';
import { nextTurn } from '../../timeLimit.ts';
import type { Broadcast } from './broadcast.ts';
import { ClientFeed } from './clientFeed.ts';
import { type Frames, signalFrame, textFrames } from './eventFrames.ts';

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
  /** Sent first. */
  beginning?: Frames | undefined;
  /** Called once when the stream ends, for whatever reason. */
  over(reason: EndOfStream): void;
}

/** `slow`: the client was disconnected because it read nothing. */
export type EndOfStream = 'ended' | 'gone' | 'slow';

/** The receiver of frames: a stream of the web, or a socket. */
export interface FrameSink {
  /** Takes frames. False: the sink takes no more until it calls `EventStream.resume`. */
  write(frames: Frames): boolean;
  end(): void;
  /** Disconnects the client. */
  cut(): void;
}

const WRITES_A_TURN = 8;
const BEAT = textFrames(': still connected\n\n');
const BEGINNING = textFrames('retry: 1000\n\n');

export class EventStream {
  readonly #options: EventStreamOptions;
  readonly #feed: ClientFeed;
  #sink: FrameSink | undefined;
  /** Frames that come before those of the feed. */
  readonly #first: Frames[] = [BEGINNING];
  /** The sink takes more. */
  #isReady = false;
  /** The sink became ready since the last beat. */
  #hasRead = false;
  #stopBeat: () => void = () => {};
  #isOver = false;

  constructor(broadcast: Broadcast, options: EventStreamOptions) {
    this.#options = options;
    const { from, waitingMax: sizeMax, beginning } = options;
    if (beginning) this.#first.push(beginning);
    this.#feed = new ClientFeed(broadcast, 0, { sizeMax, wake: () => this.#pump() });
    // A client that names an entry beyond the log's end has read another conversation, so it starts anew.
    if (from <= broadcast.listed) this.#feed.skipTo(from);
    else this.#first.push(textFrames(signalFrame({ type: 'reset', runId: '' })));
    this.#beat();
  }

  /** Begins to send. The sink is ready when it calls `resume`. */
  open(sink: FrameSink): void {
    this.#sink = sink;
  }

  /** The sink takes more. */
  resume(): void {
    this.#isReady = true;
    this.#hasRead = true;
    this.#pump();
  }

  /** The sink is not ready, and the client has taken a part of the written bytes. */
  progress(): void {
    this.#hasRead = true;
  }

  /** The client has gone. */
  leave(): void {
    this.#finish('gone');
  }

  #pump(): void {
    for (let written = 0; this.#sink && this.#isReady && !this.#isOver; written += 1) {
      // Other readers and requests get a turn.
      if (written === WRITES_A_TURN) return void nextTurn().then(() => this.#pump());
      const frames = this.#first.shift() ?? this.#feed.takeFrames();
      if (!frames) return this.#feed.isEnded ? this.#end(this.#sink) : undefined;
      this.#write(this.#sink, frames);
    }
  }

  #write(sink: FrameSink, frames: Frames): void {
    this.#isReady = false;
    if (!sink.write(frames)) return;
    this.#isReady = true;
    this.#hasRead = true;
  }

  #end(sink: FrameSink): void {
    this.#finish('ended');
    sink.end();
  }

  #beat(): void {
    this.#stopBeat = this.#options.setTimer(this.#options.beatMs, () => {
      if (!this.#isReady && !this.#hasRead) return this.#cut();
      if (this.#isReady && this.#sink) this.#write(this.#sink, BEAT);
      this.#hasRead = false;
      if (!this.#isOver) this.#beat();
    });
  }

  #cut(): void {
    this.#finish('slow');
    this.#sink?.cut();
  }

  #finish(reason: EndOfStream): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopBeat();
    this.#feed.close();
    this.#options.over(reason);
  }
}

/** Sends frames to the reader of the stream. */
class WebSource implements UnderlyingDefaultSource<Uint8Array> {
  readonly #stream: EventStream;

  constructor(stream: EventStream) {
    this.#stream = stream;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#stream.open({
      write({ bytes }) {
        // Another reader has the same frames, and this one may transfer its own.
        controller.enqueue(bytes.slice());
        return false;
      },
      end: () => controller.close(),
      cut: () => controller.error(tooSlow()),
    });
  }

  pull(): void {
    this.#stream.resume();
  }

  cancel(): void {
    this.#stream.leave();
  }
}

/** Servers know the code as that of a connection that ended early, and print no stack. */
const tooSlow = (): Error =>
  Object.assign(new Error('the reader is too slow'), { code: 'ERR_STREAM_PREMATURE_CLOSE', stack: '' });

/** The streams of responses whose body nobody has begun to read. */
const unread = new WeakMap<ReadableStream, EventStream>();

/** The event stream of a response, for a server that writes frames itself. The body must not be read then. */
export function eventStreamOf({ body }: Response): EventStream | undefined {
  const stream = body && !body.locked ? unread.get(body) : undefined;
  if (body && stream) unread.delete(body);
  return stream;
}

export function eventResponse(stream: EventStream): Response {
  // Nothing is made in advance; everything waits in the log.
  const body = new ReadableStream<Uint8Array>(new WebSource(stream), new CountQueuingStrategy({ highWaterMark: 0 }));
  unread.set(body, stream);
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' };
  return new Response(body, { headers: { ...headers, 'x-content-type-options': 'nosniff' } });
}
