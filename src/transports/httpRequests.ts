/**
 * The common parts of all HTTP handlers: authorization, body, error response. Rule: the body is read only after
 * authorization. Nothing acts on an incomplete body. An error response contains only the stable code and its message.
 */
import { RunchartError } from '../errors.ts';
import { failureOf, malformed } from './clientActs.ts';

/**
 * Returns true or the name of the caller, which becomes `by` in the decisions of that request. False, an empty name or
 * an error refuses the request.
 */
export type Authorize = (request: Request) => boolean | string | Promise<boolean | string>;

const STATUS: Readonly<Record<string, number>> = {
  ...{ malformed: 400, configuration: 400, invalid_decision: 400, unauthorized: 401, decision_refused: 403 },
  ...{ not_found: 404, method: 405, agent_busy: 409, cancellation_in_progress: 409, session_busy: 409 },
  ...{ too_large: 413, content_type: 415, limit: 429, closed: 503 },
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

export function refusal(error: unknown): Response {
  const failure = failureOf(error);
  const status = STATUS[failure.code] ?? 500;
  if (error instanceof WrongMethod) return json(status, failure, { allow: error.allow });
  return json(status, failure, status === 429 || status === 503 ? { 'retry-after': '1' } : {});
}

export const notFound = (): RunchartError => new RunchartError('not_found', 'there is no such conversation or path');
/** Throws RunchartError, code method, unless the request has one of these methods. */
export function mustHaveMethod({ method }: Request, ...allowed: readonly string[]): void {
  if (!allowed.includes(method)) throw new WrongMethod(allowed.join(', '));
}

/** The caller's name, if the host gives one. Throws RunchartError, code unauthorized. */
export async function authorizedBy(request: Request, authorize: Authorize): Promise<string | undefined> {
  let who: unknown;
  try {
    who = await authorize(request);
  } catch {
    // An authorizer that throws refuses the request.
  }
  if (who === true) return undefined;
  if (typeof who === 'string' && who !== '') return who;
  throw new RunchartError('unauthorized', 'the request is not authorized');
}

async function bodyBytes(request: Request, bytesMax: number): Promise<Uint8Array> {
  const tooLarge = new RunchartError('too_large', `expected a body of at most ${bytesMax} bytes`);
  if (Number(request.headers.get('content-length') ?? 0) > bytesMax) throw tooLarge;
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader();
  for (;;) {
    const next = await reader?.read();
    if (!next || next.done) break;
    size += next.value.byteLength;
    if (size > bytesMax) {
      await reader?.cancel().catch(() => undefined);
      throw tooLarge;
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

/** Reads JSON up to the limit. With `optional`, an empty body is an empty object. Throws RunchartError. */
export async function jsonBody(request: Request, bytesMax: number = BODY_MOST, optional = false): Promise<unknown> {
  const type = request.headers.get('content-type');
  const bytes = await bodyBytes(request, bytesMax);
  if (bytes.length === 0 && optional) return {};
  // A page of another origin can send any other content type without a CORS preflight.
  if (!/^application\/json\s*(;|$)/i.test(type ?? ''))
    throw new RunchartError('content_type', 'expected content-type: application/json');
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown;
  } catch {
    throw malformed('a body that is JSON in UTF-8');
  }
}
