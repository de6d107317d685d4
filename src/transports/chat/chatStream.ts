/**
 * The pieces that a page receives for one request: those of a run, and of the runs that continue it. Rule: every
 * response begins and ends once. If the message stays in the queue while nothing runs, the response ends, because the
 * start of its run cannot be foreseen.
 */
import { type LogEntry, runOf } from '../../../machines/internal.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Run } from '../../conversation/run.ts';
import type { Live } from '../../live.ts';
import type { Ports } from '../../runtime/hostPorts.ts';
import { currentRun, openRun } from '../followed/eitherConversation.ts';
import type { Piece } from './pieces.ts';
import { StreamFold } from './streamFold.ts';

/** The state of the conversation when the request came. */
export interface RequestState {
  /** The number of entries in the log. */
  from: number;
  /** Calls that waited, and calls that the page answered. */
  callIds: ReadonlySet<string>;
  /** Ids of queued messages. No other response shows their runs to the page. */
  queued: ReadonlySet<string>;
}

type End = Extract<Piece, { kind: 'run-ends' | 'run-waits' }>;
const isEnd = (piece: Piece): piece is End => piece.kind === 'run-ends' || piece.kind === 'run-waits';

/** Resolves when the run's message is queued and no run can take it. */
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
  /** Also ends a pending read. */
  end(): void;
}

/** The items of a run; none if its message stays in the queue. */
function itemsOf(conversation: Conversation, run: Run): RunItems {
  const items = run[Symbol.asyncIterator]();
  const { parked, stop } = parkedRun(conversation, run.id);
  const end = (): void => {
    stop();
    void items.return?.();
  };
  async function* readItems(): AsyncGenerator<LogEntry | Live> {
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
  return { end, [Symbol.asyncIterator]: readItems };
}

export class ChatStream {
  readonly #conversation: Conversation;
  readonly #requestState: RequestState;
  readonly #fold = new StreamFold();
  /** Seq of the next entry for the fold. */
  #next = 0;
  #begun = false;
  /** Seq of the first entry that the page receives, besides those of the run. */
  #showFrom = Number.POSITIVE_INFINITY;
  #end: End | undefined;
  /** Calls whose results the page has received. */
  readonly #sentResults = new Set<string>();
  /** The items of the current run. */
  #items: RunItems | undefined;
  #isDisconnected = false;

  constructor(conversation: Conversation, requestState: RequestState) {
    this.#conversation = conversation;
    this.#requestState = requestState;
  }

  /** The pieces of a run, and of the runs that follow it without another request. */
  async *piecesOf(first: Run): AsyncGenerator<Piece> {
    for (let run: Run | undefined = first; run && !this.#isDisconnected; run = await this.#following(run)) {
      this.#end = undefined;
      this.#items = itemsOf(this.#conversation, run);
      for await (const item of this.#items) yield* this.#take(item);
      if (this.#isDisconnected) return;
    }
    const end = this.#end ?? (await this.#endOf(first));
    if (!this.#begun) yield this.#beginning(end);
    yield* this.#results();
    yield end;
  }

  /** The pieces of an active run, and of the earlier runs of its cycle. */
  async *wholeReply(run: Run): AsyncGenerator<Piece> {
    const entries = this.#conversation.log();
    const begins = entries.findIndex(({ runId, type }) => runId === run.id && /^run-(started|resumed)$/.test(type));
    const cycle = entries.slice(0, begins + 1).map(({ type }) => type === 'run-started');
    if (begins >= 0) this.#showFrom = cycle.lastIndexOf(true);
    yield* this.piecesOf(run);
  }

  /** Called when the page has disconnected. A pending read ends at once, not with the run's next item. */
  disconnect(): void {
    this.#isDisconnected = true;
    this.#items?.end();
  }

  /** The end of the cycle that the page asks about, if no run starts. */
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
    if (!('seq' in item)) return yield* this.#forwarded(this.#fold.take(item));
    if (item.seq > this.#next)
      for (const entry of this.#conversation.log(this.#next)) {
        if (entry.seq >= item.seq) break;
        const pieces = this.#fold.take(entry);
        if (this.#begun || entry.seq >= this.#showFrom) yield* this.#forwarded(pieces);
      }
    this.#next = item.seq + 1;
    yield* this.#forwarded(this.#fold.take(item));
  }

  /** The page sees one run, with one beginning and one end, even if several runs follow each other. */
  *#forwarded(pieces: readonly Piece[]): Generator<Piece> {
    for (const piece of pieces) {
      if (isEnd(piece)) this.#end = piece;
      else if (piece.kind !== 'run-begins' || !this.#begun) {
        if (piece.kind === 'result') this.#sentResults.add(piece.callId);
        yield piece;
      }
      if (piece.kind !== 'run-begins' || this.#begun) continue;
      this.#begun = true;
      // A message may have denied calls that the page still shows as waiting.
      yield* this.#results(piece.runId);
    }
  }

  /**
   * The run that follows without a request, and may already be over. It applies late decisions, or takes a queued
   * message.
   */
  async #following(run: Run): Promise<Run | undefined> {
    const end = this.#end;
    if (!end) return undefined;
    await run.result;
    const isContinued = end.kind === 'run-waits' && end.calls.length === 0;
    for (const entry of this.#conversation.log(this.#next)) {
      const resumes = isContinued && entry.type === 'run-resumed' && entry.of === end.runId;
      const takes = entry.type === 'user-message' && this.#requestState.queued.has(entry.messageId);
      if ((resumes || takes) && entry.runId !== null) return openRun(this.#conversation, entry.runId);
    }
    if (this.#conversation.status !== 'active') return undefined;
    const current = currentRun(this.#conversation);
    if (!current) return undefined;
    const isQueued = [...this.#requestState.queued].some((messageId) => runOf(messageId) === current.id);
    return current.id !== run.id && (isContinued || isQueued) ? current : undefined;
  }

  /** The end of a run that left nothing in the log. */
  async #endOf({ id: runId, result }: Run): Promise<End> {
    const { id: conversationId, pending, queue } = this.#conversation;
    const ids = { runId, conversationId };
    if (queue.some(({ messageId }) => runOf(messageId) === runId))
      return pending.length > 0
        ? { kind: 'run-waits', calls: pending, ...ids }
        : { kind: 'run-ends', reason: 'interrupted', cause: 'queued', ...ids };
    const { reason, cause, pending: calls } = await result;
    if (reason === null && calls.length > 0) return { kind: 'run-waits', calls, ...ids };
    return { kind: 'run-ends', reason: reason ?? 'error', cause, ...ids };
  }

  #beginning({ runId, conversationId }: End): Piece {
    return { kind: 'run-begins', continues: true, runId, conversationId };
  }

  /** Results that the page waits for but that belong to no shown run. Before its run, those since the request. */
  *#results(ofRun?: string): Generator<Piece> {
    const { from, callIds } = this.#requestState;
    for (const entry of this.#conversation.log(ofRun === undefined ? 0 : from)) {
      if (ofRun !== undefined && entry.runId === ofRun) return;
      if (entry.type !== 'tool-result' || !callIds.has(entry.callId) || this.#sentResults.has(entry.callId)) continue;
      this.#sentResults.add(entry.callId);
      const { callId, outcome, code, content } = entry;
      yield { kind: 'result', callId, outcome, code, content };
    }
  }
}

const encoder = new TextEncoder();

export interface EventsOptions {
  /** The frame after the last event. */
  last: string;
  headers: Record<string, string>;
  /**
   * A comment is sent after this many milliseconds without an event. A page that reads nothing between two beats is
   * disconnected.
   */
  beatMs: number;
  setTimer: Ports['setTimer'];
  /** Called once, when the events end or the reader has gone. */
  over(isDisconnected: boolean): void;
}

class EventBody implements UnderlyingDefaultSource<Uint8Array> {
  readonly #events: AsyncGenerator<object>;
  readonly #options: EventsOptions;
  #stopBeat = (): void => {};
  /** At the last beat a frame was waiting, and the page has read nothing since. */
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
      // A page with unread frames needs no comment.
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

  #end(isDisconnected = false): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopBeat();
    this.#options.over(isDisconnected);
  }

  #leave(): void {
    this.#end(true);
    void this.#events.return(undefined);
  }
}

/** Sends events as they come, and comments in between. */
export function streamed(events: AsyncGenerator<object>, options: EventsOptions): Response {
  const body = new ReadableStream<Uint8Array>(new EventBody(events, options));
  const usual = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' };
  return new Response(body, { headers: { ...usual, 'x-content-type-options': 'nosniff', ...options.headers } });
}
