/**
 * What a page receives for one request: the pieces of a run, and of runs that continue it. Rule: every answer begins and ends once. A
 * message that waits in the queue while nothing runs ends its answer; nobody knows when its run comes.
 */
import { type LogEntry, runOf } from '../../../machines/internal.ts';
import { type Conversation, openRun } from '../../conversation/conversation.ts';
import type { Run } from '../../conversation/run.ts';
import type { Live } from '../../live.ts';
import type { Ports } from '../../runtime/hostPorts.ts';
import { type Piece, StreamFold } from './streamFold.ts';

/** What stood when the request came. */
export interface Asked {
  /** Entries of the log. */
  from: number;
  /** Calls that waited, and calls that the page answered. */
  callIds: ReadonlySet<string>;
  /** Ids of queued messages: no other answer tells the page of their runs. */
  queued: ReadonlySet<string>;
}

type End = Extract<Piece, { kind: 'run-ends' | 'run-waits' }>;
const isEnd = (piece: Piece): piece is End => piece.kind === 'run-ends' || piece.kind === 'run-waits';

/** Resolves when the run's message is queued and nothing runs that could take it. */
function parkedRun(conversation: Conversation, runId: string): { parked: Promise<undefined>; stop(): void } {
  const isParked = (): boolean => {
    const { status, queue } = conversation;
    return status !== 'active' && status !== 'cancelling' && queue.some(({ messageId }) => runOf(messageId) === runId);
  };
  let stop = (): void => {};
  const parked = new Promise<undefined>((resolve) => {
    const check = (): void => {
      if (isParked()) resolve(undefined);
    };
    const live = conversation.live$.subscribe({ next: ({ type }) => type === 'status' && check() });
    const log = conversation
      .log$(conversation.log().length)
      .subscribe({ next: check, complete: () => resolve(undefined) });
    stop = () => {
      live.unsubscribe();
      log.unsubscribe();
    };
    check();
  });
  return { parked, stop };
}

interface RunItems extends AsyncIterable<LogEntry | Live> {
  /** Ends a read that waits, too. */
  end(): void;
}

/** The items of a run; none where its message stays in the queue. */
function itemsOf(conversation: Conversation, run: Run): RunItems {
  const items = run[Symbol.asyncIterator]();
  const { parked, stop } = parkedRun(conversation, run.id);
  const end = (): void => {
    stop();
    void items.return?.();
  };
  async function* read(): AsyncGenerator<LogEntry | Live> {
    try {
      let next = await Promise.race([items.next(), parked]);
      stop();
      while (next && !next.done) {
        yield next.value;
        next = await items.next();
      }
    } finally {
      end();
    }
  }
  return { end, [Symbol.asyncIterator]: read };
}

export class ChatStream {
  readonly #conversation: Conversation;
  readonly #asked: Asked;
  readonly #fold = new StreamFold();
  /** Seq of the next entry for the fold. */
  #next = 0;
  #begun = false;
  #end: End | undefined;
  /** Calls whose results the page has. */
  readonly #told = new Set<string>();
  /** Of the run that is read now. */
  #items: RunItems | undefined;
  #hasLeft = false;

  constructor(conversation: Conversation, asked: Asked) {
    this.#conversation = conversation;
    this.#asked = asked;
  }

  /** The pieces of a run, and of the runs that follow it without a request of their own. */
  async *piecesOf(first: Run): AsyncGenerator<Piece> {
    for (let run: Run | undefined = first; run && !this.#hasLeft; run = await this.#following(run)) {
      this.#end = undefined;
      this.#items = itemsOf(this.#conversation, run);
      for await (const item of this.#items) yield* this.#take(item);
      if (this.#hasLeft) return;
    }
    const end = this.#end ?? (await this.#endOf(first));
    if (!this.#begun) yield this.#beginning(end);
    yield* this.#results();
    yield end;
  }

  /** The page is gone: what it waits for ends now, and not with the next item of the run. */
  leave(): void {
    this.#hasLeft = true;
    this.#items?.end();
  }

  /** How a cycle ended that the page asks about, where nothing begins. */
  async *endOf({
    runId,
    conversationId,
    reason,
    cause,
  }: Extract<LogEntry, { type: 'run-stop' }>): AsyncGenerator<Piece> {
    const end = { kind: 'run-ends', reason, cause, runId: runId ?? '', conversationId } as const;
    yield this.#beginning(end);
    yield* this.#results();
    yield end;
  }

  *#take(item: LogEntry | Live): Generator<Piece> {
    if (!('seq' in item)) return yield* this.#pass(this.#fold.take(item));
    if (item.seq > this.#next)
      for (const entry of this.#conversation.log(this.#next)) {
        if (entry.seq >= item.seq) break;
        const pieces = this.#fold.take(entry);
        if (this.#begun) yield* this.#pass(pieces);
      }
    this.#next = item.seq + 1;
    yield* this.#pass(this.#fold.take(item));
  }

  /** The page is told of one run: its beginning once, and its end last. */
  *#pass(pieces: readonly Piece[]): Generator<Piece> {
    for (const piece of pieces) {
      if (isEnd(piece)) this.#end = piece;
      else if (piece.kind !== 'run-begins' || !this.#begun) {
        if (piece.kind === 'result') this.#told.add(piece.callId);
        yield piece;
      }
      if (piece.kind !== 'run-begins' || this.#begun) continue;
      this.#begun = true;
      // A message may have denied what the page still shows as waiting.
      yield* this.#results(piece.runId);
    }
  }

  /** A run that begins by itself, and may be over by now: it applies decisions that came late, or takes a message that was queued. */
  async #following(run: Run): Promise<Run | undefined> {
    const end = this.#end;
    if (!end) return undefined;
    await run.result;
    const isContinued = end.kind === 'run-waits' && end.calls.length === 0;
    for (const entry of this.#conversation.log(this.#next)) {
      const resumes = isContinued && entry.type === 'run-resumed' && entry.of === end.runId;
      const takes = entry.type === 'user-message' && this.#asked.queued.has(entry.messageId);
      if ((resumes || takes) && entry.runId !== null) return openRun(this.#conversation, entry.runId);
    }
    if (this.#conversation.status !== 'active') return undefined;
    const current = this.#conversation.resume();
    const isQueued = [...this.#asked.queued].some((messageId) => runOf(messageId) === current.id);
    return current.id !== run.id && (isContinued || isQueued) ? current : undefined;
  }

  /** The end of a run that left nothing in the log. */
  async #endOf({ id: runId, result }: Run): Promise<End> {
    const { id: conversationId, pending, queue } = this.#conversation;
    const of = { runId, conversationId };
    if (queue.some(({ messageId }) => runOf(messageId) === runId))
      return pending.length > 0
        ? { kind: 'run-waits', calls: pending, ...of }
        : { kind: 'run-ends', reason: 'interrupted', cause: 'queued', ...of };
    const { reason, cause, pending: calls } = await result;
    if (reason === null && calls.length > 0) return { kind: 'run-waits', calls, ...of };
    return { kind: 'run-ends', reason: reason ?? 'error', cause, ...of };
  }

  #beginning({ runId, conversationId }: End): Piece {
    return { kind: 'run-begins', continues: true, runId, conversationId };
  }

  /** Results that the page waits for and that stand outside of what it is told; before its run those since its request. */
  *#results(ofRun?: string): Generator<Piece> {
    const { from, callIds } = this.#asked;
    for (const entry of this.#conversation.log(ofRun === undefined ? 0 : from)) {
      if (ofRun !== undefined && entry.runId === ofRun) return;
      if (entry.type !== 'tool-result' || !callIds.has(entry.callId) || this.#told.has(entry.callId)) continue;
      this.#told.add(entry.callId);
      const { callId, outcome, code, content } = entry;
      yield { kind: 'result', callId, outcome, code, content };
    }
  }
}

const encoder = new TextEncoder();

export interface EventsOptions {
  /** After the last event. */
  last: string;
  headers: Record<string, string>;
  /** A comment is sent after so many milliseconds without an event. A page that takes nothing from one beat to the next is disconnected. */
  beatMs: number;
  setTimer: Ports['setTimer'];
  /** Called once, when the events end or nobody reads them any more. */
  over(): void;
}

class EventBody implements UnderlyingDefaultSource<Uint8Array> {
  readonly #events: AsyncGenerator<object>;
  readonly #options: EventsOptions;
  #stopBeat = (): void => {};
  /** A frame waited for the page at the last beat, and none was taken since. */
  #isStalled = false;
  #isOver = false;

  constructor(events: AsyncGenerator<object>, options: EventsOptions) {
    this.#events = events;
    this.#options = options;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#beat(controller);
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#isStalled = false;
    const { last } = this.#options;
    try {
      const next = await this.#events.next();
      if (this.#isOver) return;
      if (!next.done) return controller.enqueue(encoder.encode(`data: ${JSON.stringify(next.value)}\n\n`));
      if (last !== '') controller.enqueue(encoder.encode(`data: ${last}\n\n`));
      this.#end();
      controller.close();
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  cancel(): void {
    this.#leave();
  }

  #beat(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#stopBeat = this.#options.setTimer(this.#options.beatMs, () => {
      // A page that still has frames to read needs no comment.
      const isWaiting = (controller.desiredSize ?? 0) > 0;
      if (isWaiting) controller.enqueue(encoder.encode(': still connected\n\n'));
      else if (this.#isStalled) {
        this.#leave();
        return controller.error(new Error('the reader is too slow'));
      }
      this.#isStalled = !isWaiting;
      this.#beat(controller);
    });
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopBeat();
    this.#options.over();
  }

  /** The run continues; only its reader ends. */
  #leave(): void {
    this.#end();
    void this.#events.return(undefined);
  }
}

/** Events as they come, with comments while none comes. */
export function streamed(events: AsyncGenerator<object>, options: EventsOptions): Response {
  const body = new ReadableStream<Uint8Array>(new EventBody(events, options));
  const usual = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' };
  return new Response(body, { headers: { ...usual, 'x-content-type-options': 'nosniff', ...options.headers } });
}
