/**
 * The common parts of all HTTP handlers: authorization, body, error response. Rule: the body is read only after
 * authorization. Nothing acts on an incomplete body. An error response contains only the stable code and its message.
 */
import { RunchartError } from '../errors.ts';
import { type FailureLogger, failureOf, malformed } from './clientActs.ts';
import { QuotaRefusal, type RequestQuota } from './quotas.ts';

/**
 * True or the name of the caller, which becomes `by` in the decisions of that request. With an owner, the request is
 * limited to the conversations of that owner. False, an empty name or owner, or an error refuses the request.
 */
export type Authorized = boolean | string | { by: string; owner?: string };
/** Decides about a request: who asks, and whose conversations the request may reach. */
export type Authorize = (request: Request) => Authorized | Promise<Authorized>;

/** The caller of a request, and the owner whose conversations it may reach. Without an owner it may reach all. */
export interface Caller {
  by?: string;
  owner?: string;
}

const STATUS: Readonly<Record<string, number>> = {
  ...{
    malformed: 400,
    configuration: 400,
    invalid_decision: 400,
    unauthorized: 401,
    decision_refused: 403,
    not_allowed: 403,
  },
  ...{ not_found: 404, method: 405, agent_busy: 409, cancellation_in_progress: 409, session_busy: 409 },
  ...{ too_large: 413, content_type: 415, media_type: 415, limit: 429, closed: 503, unavailable: 503 },
};

export const json = (status: number, value: unknown, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(value), {
    status,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...headers,
    },
  });

/** The path accepts other methods, which the `Allow` header lists. */
class WrongMethod extends RunchartError {
  readonly allow: string;

  constructor(allow: string) {
    super('method', `this path takes ${allow}`);
    this.allow = allow;
  }
}

/** The response to a request that failed. The logger receives the details that the client must not. */
export function refusal(error: unknown, logger?: FailureLogger): Response {
  const failure = failureOf(error, logger);
  if (error instanceof QuotaRefusal) return json(error.status, failure, { 'retry-after': `${error.retryAfterS}` });
  const status = STATUS[failure.code] ?? 500;
  if (error instanceof WrongMethod) return json(status, failure, { allow: error.allow });
  return json(status, failure, status === 429 || status === 503 ? { 'retry-after': '1' } : {});
}

/** Writes a base path as the URLs of requests do: escaped, with a slash at its beginning, and without one at its end. */
export const basePathOf = (path: string): string =>
  new URL(`/${path.replace(/^\/+/, '')}`, 'http://localhost').pathname.replace(/\/+$/, '');

export const notFound = (): RunchartError => new RunchartError('not_found', 'there is no such conversation or path');
/** Throws RunchartError, code method, unless the request has one of these methods. */
export function mustHaveMethod({ method }: Request, ...allowed: readonly string[]): void {
  if (!allowed.includes(method)) throw new WrongMethod(allowed.join(', '));
}

const isName = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** Returns undefined if the answer of the host allows nothing. */
function callerIn(who: unknown): Caller | undefined {
  if (who === true) return {};
  if (isName(who)) return { by: who };
  if (typeof who !== 'object' || who === null || !('by' in who) || !isName(who.by)) return undefined;
  if (!('owner' in who)) return { by: who.by };
  // An empty owner is a mistake of the host. It must not give access to every conversation.
  return isName(who.owner) ? { by: who.by, owner: who.owner } : undefined;
}

/** The caller as the host names it. Throws RunchartError, code unauthorized. */
export async function authorizedCaller(request: Request, authorize: Authorize): Promise<Caller> {
  let who: unknown;
  try {
    who = await authorize(request);
  } catch {
    // An authorizer that throws refuses the request.
  }
  const caller = callerIn(who);
  if (caller) return caller;
  throw new RunchartError('unauthorized', 'the request is not authorized');
}

/** A body that declares at most this length is read without a stream. A stream takes a third of the time of a short request. */
const SHORT_BODY = 16_384;

async function bodyBytes(request: Request, bytesMax: number, quota?: RequestQuota): Promise<Uint8Array> {
  const tooLarge = (): RunchartError => new RunchartError('too_large', `expected a body of at most ${bytesMax} bytes`);
  const declared = request.headers.get('content-length') ?? '';
  if (Number(declared) > bytesMax) throw tooLarge();
  if (/^\d+$/.test(declared) && Number(declared) <= SHORT_BODY) {
    const bytes = new Uint8Array(await request.arrayBuffer());
    if (bytes.length > bytesMax) throw tooLarge();
    quota?.addBytes(bytes.length);
    return bytes;
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader();
  for (;;) {
    const next = await reader?.read();
    if (!next || next.done) break;
    size += next.value.byteLength;
    try {
      if (size > bytesMax) throw tooLarge();
      quota?.addBytes(next.value.byteLength);
    } catch (error) {
      await reader?.cancel().catch(() => undefined);
      throw error;
    }
    chunks.push(next.value);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

const BODY_MOST = 8 * 1_048_576;

export interface BodyOptions {
  bytesMax?: number | undefined;
  /** An empty body is an empty object. */
  isOptional?: boolean;
  quota?: RequestQuota;
}

/** Throws RunchartError, code malformed, if the client disconnects before its body is complete. */
async function completeBody(request: Request, bytesMax: number, quota?: RequestQuota): Promise<Uint8Array> {
  try {
    return await bodyBytes(request, bytesMax, quota);
  } catch (error) {
    // A body that `authorize` has read is a mistake of the host, which its log must show.
    const isOfHost = error instanceof TypeError || RunchartError.isRunchartError(error);
    throw isOfHost ? error : malformed('a complete body');
  }
}

/** Reads JSON up to the limits. Throws RunchartError. */
export async function jsonBody(request: Request, options: BodyOptions): Promise<unknown> {
  const { bytesMax = BODY_MOST, isOptional = false, quota } = options;
  const type = request.headers.get('content-type');
  const bytes = await completeBody(request, bytesMax, quota);
  if (bytes.length === 0 && isOptional) return {};
  // A page of another origin can send any other content type without a CORS preflight.
  if (!/^application\/json\s*(;|$)/i.test(type ?? ''))
    throw new RunchartError('content_type', 'expected content-type: application/json');
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown;
  } catch {
    throw malformed('a body that is JSON in UTF-8');
  }
}

/** The id of a request that may be repeated, from its address. */
export function requestKeyOf(url: URL, act: string, by: string | undefined): string | undefined {
  const requestId = url.searchParams.get('request');
  const isId = requestId !== null && requestId !== '' && requestId.length <= 200;
  return isId ? JSON.stringify([act, by ?? null, requestId]) : undefined;
}
