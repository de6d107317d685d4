/**
 * Requests to the server of a remote conversation. Invariant: a failure is a RunchartError with a stable code: the
 * server's own one, or that of its status. A request whose answer is lost is repeated after growing waits; the caller names
 * it so that the server acts once.
 */
import { RunchartError, thrownText } from '../errors.ts';
import { type BodyPiece, bodyText, responseBody } from '../models/wire/responseBody.ts';
import { errorOfCode, requestJson } from '../remote/errorOfCode.ts';
import type { Ports } from '../runtime/hostPorts.ts';

/** The headers of a request. */
type Headers = Readonly<Record<string, string>>;

/** The options of `connect`. */
export interface ClientOptions {
  /** The address of the handlers: the part before `/conversations`. */
  baseURL: string;
  /** Sent with each request. A function is called for each request, so it can return a new token. */
  headers?: Headers | (() => Headers | Promise<Headers>);
  /** Sends the requests. Default: the platform's. */
  fetch?: typeof fetch;
  /** After so long without a byte, the connection of the events counts as lost. Default: 40 s. */
  silenceMs?: number;
  /** Receives one fact for each subscriber that throws. Default: the console. */
  logger?: { warn?(fact: object): void };
  /** The timer of a test. Default: the timer of the platform. */
  setTimer?: Ports['setTimer'];
  /** Makes the ids of messages and requests. Default: random UUIDs. */
  newId?: Ports['newId'];
  /** Spreads the pauses between repetitions. Default: `Math.random`. */
  random?: Ports['random'];
}

export interface CallOptions {
  body?: object;
  signal: AbortSignal;
}

const ATTEMPTS = 7;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** The server answers some requests only after a store or a run has. */
const ANSWER_MS = 60_000;
const ANSWER_BYTES = 64 * 1_048_576;

/** The server may take a repetition. */
const PASSING: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);
const CODES: Readonly<Record<number, string>> = {
  401: 'unauthorized',
  403: 'unauthorized',
  404: 'not_found',
  413: 'too_large',
  429: 'limit',
  502: 'network',
  503: 'network',
  504: 'network',
};

export const badAnswer = (expected: string, cause?: unknown): RunchartError =>
  new RunchartError(
    'bad_answer',
    `expected ${expected}; check baseURL and any proxy before the server`,
    cause === undefined ? undefined : { cause },
  );

export const closedClient = (): RunchartError => new RunchartError('closed', 'the connection to the server is closed');

/** The server refused the request. */
class Refusal {
  readonly error: RunchartError;
  readonly isPassing: boolean;
  readonly waitMs: number;

  constructor(error: RunchartError, { status, headers }: Response) {
    this.error = error;
    this.isPassing = PASSING.has(status);
    const seconds = Number(headers.get('retry-after') ?? 0);
    this.waitMs = seconds > 0 && seconds <= 60 ? seconds * 1000 : 0;
  }
}

export class ServerCalls {
  readonly #base: string;
  readonly #options: ClientOptions & Pick<Ports, 'setTimer' | 'random'>;

  constructor(options: ClientOptions & Pick<Ports, 'setTimer' | 'random'>) {
    this.#options = options;
    this.#base = options.baseURL.replace(/\/+$/, '');
  }

  /** The address of a path of the server. */
  addressOf(path: string): string {
    return `${this.#base}${path}`;
  }

  /** The answer of the server, a JSON object or list. Where it is lost, the request is repeated. */
  async call(method: 'GET' | 'POST', path: string, options: CallOptions): Promise<unknown> {
    let hasExpired = false;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const response = await this.#fetch(method, path, options);
        if (!response.ok) throw await refusalOf(response);
        return parsed(await textOf(response));
      } catch (error) {
        const { signal } = options;
        const failure = failureOf(error, signal);
        // The next request asks for another token.
        const isExpired: boolean =
          !hasExpired && failure.error.code === 'unauthorized' && typeof this.#options.headers === 'function';
        hasExpired ||= isExpired;
        if (!(failure.isPassing || isExpired) || attempt === ATTEMPTS) throw failure.error;
        await this.wait(attempt, signal, failure.waitMs);
        if (signal.aborted) throw closedClient();
      }
    }
  }

  /** The stream of a conversation's events. Rejects with a RunchartError; `isPassing` is true if a later attempt may succeed. */
  async events(path: string, lastSeq: number, signal: AbortSignal): Promise<Response> {
    const headers: Headers = { accept: 'text/event-stream', ...(lastSeq >= 0 && { 'last-event-id': `${lastSeq}` }) };
    const response = await this.#fetch('GET', path, { signal }, headers);
    if (!response.ok) throw await refusalOf(response);
    if (!/^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '') || !response.body) {
      await response.body?.cancel().catch(() => undefined);
      throw badAnswer('a stream of server-sent events');
    }
    return response;
  }

  /** Waits before a repetition. The wait doubles with each attempt, and its random part separates clients. */
  wait(attempt: number, signal: AbortSignal, leastMs = 0): Promise<void> {
    const { random, setTimer } = this.#options;
    const ms = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(attempt - 1, 10)) * (0.5 + random() / 2);
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const done = (): void => {
        stop();
        signal.removeEventListener('abort', done);
        resolve();
      };
      const stop = setTimer(Math.max(ms, leastMs), done);
      signal.addEventListener('abort', done, { once: true });
    });
  }

  async #fetch(method: string, path: string, { body, signal }: CallOptions, more: Headers = {}): Promise<Response> {
    const { headers, fetch: send = fetch, setTimer } = this.#options;
    const own = typeof headers === 'function' ? await headers() : headers;
    const late = new AbortController();
    const abort = (): void => late.abort();
    const stop = setTimer(ANSWER_MS, abort);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    try {
      return await send(this.addressOf(path), {
        method,
        cache: 'no-store',
        headers: { ...more, ...own, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: requestJson(body) }),
        // The body of the events is read under a signal of its own.
        signal: late.signal,
      });
    } finally {
      stop();
      signal.removeEventListener('abort', abort);
    }
  }
}

async function textOf(response: Response): Promise<string> {
  const body = responseBody(response);
  try {
    return await bodyText(body, ANSWER_BYTES, ANSWER_MS);
  } finally {
    body.close();
  }
}

function parsed(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw badAnswer('an answer that is JSON', error);
  }
  if (typeof value === 'object' && value !== null) return value;
  throw badAnswer('an answer that is a JSON object');
}

/** A server answers with its code. A proxy before it may answer with a page. */
async function refusalOf(response: Response): Promise<Refusal> {
  const { status } = response;
  const text = await textOf(response).catch(() => '');
  let code: unknown;
  let message: unknown;
  try {
    ({ code, message } = JSON.parse(text) as { code?: unknown; message?: unknown });
  } catch {
    // The status alone describes the fault.
  }
  if (typeof code === 'string' && code !== '' && typeof message === 'string')
    return new Refusal(errorOfCode(code, message), response);
  return new Refusal(errorOfCode(CODES[status] ?? 'bad_answer', `the server answered with status ${status}`), response);
}

/** Converts a rejection of `call` or `events` to an error, with the information whether a repetition may succeed. */
export function failureOf(error: unknown, signal: AbortSignal): Pick<Refusal, 'error' | 'isPassing' | 'waitMs'> {
  if (signal.aborted) return { error: closedClient(), isPassing: false, waitMs: 0 };
  if (error instanceof Refusal) return error;
  if (RunchartError.isRunchartError(error)) return { error, isPassing: false, waitMs: 0 };
  const message = `the server cannot be reached: ${thrownText(error)}`;
  return { error: new RunchartError('network', message, { cause: error }), isPassing: true, waitMs: 0 };
}

/** Reads the body until it ends or is silent for too long. Rejects where the connection is lost. */
export async function readBody(
  response: Response,
  { signal, silenceMs, setTimer }: { signal: AbortSignal; silenceMs: number; setTimer: Ports['setTimer'] },
  take: (bytes: Uint8Array) => void,
): Promise<void> {
  const body = responseBody(response);
  const close = (): void => body.close();
  signal.addEventListener('abort', close, { once: true });
  try {
    while (!signal.aborted) {
      const stop = setTimer(silenceMs, close);
      let piece: BodyPiece;
      try {
        piece = await body.read();
      } finally {
        stop();
      }
      if (!piece.value) return;
      take(piece.value);
    }
  } finally {
    signal.removeEventListener('abort', close);
    close();
  }
}
