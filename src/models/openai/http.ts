/**
 * One model call over HTTP: sends the request and yields the parts of the reply, one batch for each network chunk.
 * Invariant: a call ends with `finish`, with a ModelError, or with the caller's abort reason. Parts that came before
 * a failure are yielded before it. In each case the body is closed and the caller's signal has no listener.
 */

import { type AbortGate, abortGate } from '../abortGate.ts';
import { excerpt, networkError, statusError } from '../httpErrors.ts';
import { BATCHES, type BatchedParts, ModelError, type ModelPart, type PartBatches } from '../model.ts';
import { parseJson } from '../wireJson.ts';
import { ChatReply } from './chatReply.ts';
import { chunkOf } from './chunk.ts';
import { eventStream } from './eventStream.ts';

/** The part of a body that is read if it is only quoted. */
const QUOTED_BYTES = 64 * 1024;
const QUOTED_WAIT_MS = 2000;

/** The destination of a call, and how to send it. */
export interface ChatCall {
  model: string;
  url: string;
  secrets: readonly string[];
  /** Sends the request. May reject with any error. */
  send(signal: AbortSignal): Promise<Response>;
}

/**
 * The parts of one call, one batch for each network chunk: a delta costs neither a promise nor a turn of the event
 * loop.
 */
class ChatBatches implements PartBatches {
  readonly #call: ChatCall;
  readonly #gate: AbortGate;
  #body: ResponseBody | undefined;
  #source: BatchSource | undefined;
  /** The failure that ends the call after the parts before it. */
  #failed: { failure: unknown } | undefined;
  #ended = false;

  constructor(call: ChatCall, signal: AbortSignal) {
    this.#call = call;
    this.#gate = abortGate(signal);
  }

  async next(): Promise<readonly ModelPart[] | undefined> {
    if (this.#ended) return undefined;
    try {
      this.#gate.check();
      if (this.#failed) throw this.#failed.failure;
      this.#source ??= await this.#open();
      const read = await this.#source.read();
      // A body that an abort closed looks like one that has ended.
      this.#gate.check();
      const batch = this.#source.take(read);
      if (batch.kind === 'fail') this.#failed = batch;
      else if (batch.kind === 'end') this.close();
      return batch.parts;
    } catch (error) {
      this.close();
      this.#gate.check();
      throw networkError(error, this.#call.url, this.#call.secrets);
    }
  }

  /** Throws the caller's reason once its signal is aborted. */
  check(): void {
    this.#gate.check();
  }

  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#gate.close();
    this.#body?.close();
  }

  async #open(): Promise<BatchSource> {
    const response = await this.#gate.race(this.#call.send, (late) => openBody(late).close());
    this.#body = openBody(response);
    this.#gate.stage(this.#body.close);
    return batchesOf(response, this.#body, this.#call);
  }
}

export const chatStream = (call: ChatCall, signal: AbortSignal): BatchedParts => ({
  [BATCHES]: () => new ChatBatches(call, signal),
  [Symbol.asyncIterator]: () => partsOf(new ChatBatches(call, signal)),
});

async function* partsOf(batches: ChatBatches): AsyncGenerator<ModelPart, void> {
  try {
    for (let batch = await batches.next(); batch; batch = await batches.next()) {
      for (const part of batch) {
        yield part;
        batches.check();
      }
    }
  } finally {
    batches.close();
  }
}

async function batchesOf(response: Response, body: ResponseBody, call: ChatCall): Promise<BatchSource> {
  const quoted = (): Promise<string> => readText(body, QUOTED_BYTES, QUOTED_WAIT_MS).catch(() => '');
  if (!response.ok) throw statusError(response, await quoted(), call.secrets, Date.now());
  const type = (response.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  // Without a content type the bytes decide: a reply without a chunk is incomplete.
  if (type === 'text/event-stream' || type === '') return eventBatches(body, call);
  if (type === 'application/json') return wholeBatch(body, call);
  const quotedBody = excerpt(await quoted(), call.secrets);
  const came = `the model server answered with ${excerpt(type, [])} instead of text/event-stream`;
  throw new ModelError({
    code: 'content-type',
    status: response.status,
    message: `${came}: check the base URL and any proxy before it. It said: ${quotedBody}`,
  });
}

type Batch = { parts: readonly ModelPart[] } & ({ kind: 'more' | 'end' } | { kind: 'fail'; failure: unknown });
/**
 * Reads bytes and makes their batch. After `end` or `fail` there is none. No async step is between a chunk and its
 * parts.
 */
interface BatchSource {
  read(): Promise<Reading>;
  take(read: Reading): Batch;
}
/** No value: the body has ended. */
type Reading = { value?: Uint8Array | undefined };

/**
 * Limits of reading after the finish reason (for usage and `[DONE]`) and after `[DONE]` (until the server closes, so
 * that the connection can be reused): total bytes and total time.
 */
const TRAILING_LIMITS = {
  finished: { bytes: 1024 * 1024, waitMs: 2000 },
  done: { bytes: 64 * 1024, waitMs: 50 },
} as const;
const WHOLE_BYTES = 8 * 1024 * 1024;

function eventBatches(body: ResponseBody, call: ChatCall): BatchSource {
  let parts: ModelPart[] = [];
  const reply = new ChatReply((part) => parts.push(part), call);
  const events = eventStream((data, name, cut) => reply.event(data, name, cut));
  let trailing = 0;
  let phase = reply.phase;

  function cut(): Reading {
    reply.note('cut_after_finish');
    return {};
  }

  return {
    read() {
      parts = [];
      if (reply.phase === 'reading') return body.read();
      const limits = TRAILING_LIMITS[reply.phase];
      if (phase !== reply.phase) body.limit(limits.waitMs);
      phase = reply.phase;
      return trailing > limits.bytes ? Promise.resolve({}) : body.readInTime().catch(cut);
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

/** Reads a completion that was not streamed, or an error body under status 200. */
function wholeBatch(body: ResponseBody, call: ChatCall): BatchSource {
  const parts: ModelPart[] = [];
  const reply = new ChatReply((part) => parts.push(part), call);
  let text = '';
  return {
    async read() {
      text = await readText(body, WHOLE_BYTES);
      return {};
    },
    take() {
      try {
        const value = parseJson(text);
        reply.take(value === undefined ? { kind: 'malformed' } : chunkOf(value, 'message'));
        reply.end();
        return { parts, kind: 'end' };
      } catch (failure) {
        return { parts, kind: 'fail', failure };
      }
    },
  };
}

interface ResponseBody {
  /** Returns the next bytes of the body. None at the end, and after `close`. */
  read(): Promise<Reading>;
  /**
   * Limits the reading time from now on. All calls share the same lengths, because Node keeps a timer list for each
   * length.
   */
  limit(ms: number): void;
  /** Returns the next bytes within that time, or none after it. */
  readInTime(): Promise<Reading>;
  close(): void;
}

function openBody(response: Response): ResponseBody {
  const reader = response.body?.getReader();
  const read: ResponseBody['read'] = () => reader?.read() ?? Promise.resolve({});
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  let giveUp: (() => void) | undefined;
  const expire = (): void => {
    isOver = true;
    giveUp?.();
  };
  return {
    read,
    limit(ms) {
      clearTimeout(timer);
      timer = setTimeout(expire, ms);
    },
    readInTime: () =>
      new Promise((resolve, reject) => {
        giveUp = () => resolve({});
        if (isOver) giveUp();
        else read().then(resolve, reject);
      }),
    close() {
      clearTimeout(timer);
      // A source that cannot be cancelled is ignored.
      reader?.cancel().catch(() => {});
    },
  };
}

/** Returns the text of a body, cut at `limit` bytes, or when nothing comes for `waitMs`. */
async function readText(body: ResponseBody, limit: number, waitMs?: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let remaining = limit;
  while (remaining > 0) {
    if (waitMs !== undefined) body.limit(waitMs);
    const { value: bytes } = await body.readInTime();
    if (bytes === undefined) break;
    text += decoder.decode(bytes.subarray(0, remaining), { stream: true });
    remaining -= bytes.length;
  }
  return text + decoder.decode();
}
