/**
 * One model call over HTTP: sends the request and yields the parts of the reply, one batch for each network chunk.
 * Invariant: a call ends with `finish`, with a ModelError, or with the caller's abort reason. Parts that came before
 * a failure are yielded before it. In each case the body is closed and the caller's signal has no listener.
 */
import { BATCHES, type BatchedParts, ModelError, type ModelPart, type PartBatches } from '../model.ts';
import { type AbortableCall, abortableCall } from './abortableCall.ts';
import { eventStream } from './eventStream.ts';
import { type Advice, excerpt, networkError, statusError } from './httpErrors.ts';
import { type BodyPiece, bodyText, type ResponseBody, responseBody } from './responseBody.ts';
import { parseJson } from './wireJson.ts';

/** The destination of a call, how to send it, and how to read its reply. */
export interface HttpCall {
  url: string;
  secrets: readonly string[];
  advice: Advice;
  /** Sends the request. May reject with any error. */
  send(signal: AbortSignal): Promise<Response>;
  /** Makes the reader of one reply. `write` receives the parts. */
  reply(write: (part: ModelPart) => void): WireReply;
}

/** The reader of one reply. Each method throws ModelError if the attempt has failed. */
export interface WireReply {
  /** `reading`, then `finished` (the reply is complete), then `done` (the end mark came). */
  readonly phase: 'reading' | 'finished' | 'done';
  /** Reads one server-sent event. `isCut`: the stream ended inside it. */
  event(data: string, name: string | undefined, isCut: boolean): void;
  /** Reads a reply that was not streamed. `body` is undefined if it is not JSON. */
  whole(body: unknown): void;
  diagnose(code: string): void;
  /** Emits the finish at the end of the body. */
  end(): void;
}

class HttpBatches implements PartBatches {
  readonly #call: HttpCall;
  readonly #abortable: AbortableCall;
  #body: ResponseBody | undefined;
  #source: BatchSource | undefined;
  /** The failure that ends the call after the parts before it. */
  #failed: { failure: unknown } | undefined;
  #ended = false;

  constructor(call: HttpCall, signal: AbortSignal) {
    this.#call = call;
    this.#abortable = abortableCall(signal);
  }

  async next(): Promise<readonly ModelPart[] | undefined> {
    if (this.#ended) return undefined;
    try {
      this.#abortable.throwIfAborted();
      if (this.#failed) throw this.#failed.failure;
      this.#source ??= await this.#open();
      const piece = await this.#source.read();
      // A body that an abort closed looks like one that has ended.
      this.#abortable.throwIfAborted();
      const batch = this.#source.take(piece);
      if (batch.kind === 'fail') this.#failed = batch;
      else if (batch.kind === 'end') this.close();
      return batch.parts;
    } catch (error) {
      this.close();
      this.#abortable.throwIfAborted();
      throw networkError(error, this.#call.url, this.#call.secrets);
    }
  }

  throwIfAborted(): void {
    this.#abortable.throwIfAborted();
  }

  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#abortable.end();
    this.#body?.close();
  }

  async #open(): Promise<BatchSource> {
    const response = await this.#abortable.race(this.#call.send, (late) => responseBody(late).close());
    this.#body = responseBody(response);
    this.#abortable.onAbort(this.#body.close);
    return batchSource(response, this.#body, this.#call);
  }
}

export const httpStream = (call: HttpCall, signal: AbortSignal): BatchedParts => ({
  [BATCHES]: () => new HttpBatches(call, signal),
  [Symbol.asyncIterator]: () => partsOf(new HttpBatches(call, signal)),
});

async function* partsOf(batches: HttpBatches): AsyncGenerator<ModelPart, void> {
  try {
    for (let batch = await batches.next(); batch; batch = await batches.next()) {
      for (const part of batch) {
        yield part;
        batches.throwIfAborted();
      }
    }
  } finally {
    batches.close();
  }
}

/** The part of a body that is read if it is only quoted. */
const QUOTED_BYTES = 64 * 1024;
const QUOTED_WAIT_MS = 2000;

async function batchSource(response: Response, body: ResponseBody, call: HttpCall): Promise<BatchSource> {
  const quotedText = (): Promise<string> => bodyText(body, QUOTED_BYTES, QUOTED_WAIT_MS).catch(() => '');
  if (!response.ok) throw statusError(response, await quotedText(), call, Date.now());
  const type = (response.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  // Without a content type the bytes decide: a reply without an event is incomplete.
  if (type === 'text/event-stream' || type === '') return eventBatches(body, call);
  if (type === 'application/json') return wholeBatch(body, call);
  const quoted = excerpt(await quotedText(), call.secrets);
  const came = `the model server answered with ${excerpt(type, [])} instead of text/event-stream`;
  throw new ModelError({
    code: 'content-type',
    status: response.status,
    message: `${came}: check the base URL and any proxy before it. It said: ${quoted}`,
  });
}

type Batch = { parts: readonly ModelPart[] } & ({ kind: 'more' | 'end' } | { kind: 'fail'; failure: unknown });
/**
 * Reads bytes and makes their batch. After `end` or `fail` there is none. No async step is between a chunk and its
 * parts.
 */
interface BatchSource {
  read(): Promise<BodyPiece>;
  take(piece: BodyPiece): Batch;
}

/**
 * Limits for the bytes and the time of a read after the reply is complete (for usage and the end mark). They also apply
 * after the end mark, until the server closes.
 */
const TRAILING_LIMITS = {
  finished: { bytes: 1024 * 1024, waitMs: 2000 },
  done: { bytes: 64 * 1024, waitMs: 50 },
} as const;
const WHOLE_BYTES = 8 * 1024 * 1024;

function eventBatches(body: ResponseBody, call: HttpCall): BatchSource {
  let parts: ModelPart[] = [];
  const reply = call.reply((part) => parts.push(part));
  const events = eventStream((data, name, isCut) => reply.event(data, name, isCut));
  let trailing = 0;
  let { phase } = reply;

  function endWhereCut(): BodyPiece {
    reply.diagnose('cut_after_finish');
    return {};
  }

  return {
    read() {
      parts = [];
      if (reply.phase === 'reading') return body.read();
      const limits = TRAILING_LIMITS[reply.phase];
      if (phase !== reply.phase) body.limit(limits.waitMs);
      phase = reply.phase;
      return trailing > limits.bytes ? Promise.resolve({}) : body.readInTime().catch(endWhereCut);
    },
    take({ value }) {
      try {
        if (value !== undefined) {
          if (phase !== 'reading') trailing += 1 + value.length;
          events.push(value);
          return { parts, kind: 'more' };
        }
        events.end();
        reply.end();
        return { parts, kind: 'end' };
      } catch (failure) {
        return { parts, kind: 'fail', failure };
      }
    },
  };
}

/** Reads a reply that was not streamed, or an error body under status 200. */
function wholeBatch(body: ResponseBody, call: HttpCall): BatchSource {
  const parts: ModelPart[] = [];
  const reply = call.reply((part) => parts.push(part));
  let text = '';
  return {
    async read() {
      text = await bodyText(body, WHOLE_BYTES);
      return {};
    },
    take() {
      try {
        reply.whole(parseJson(text));
        reply.end();
        return { parts, kind: 'end' };
      } catch (failure) {
        return { parts, kind: 'fail', failure };
      }
    },
  };
}
