/**
 * Turns a failed exchange, or an error body a server sent, into a ModelError. Rule: the code follows from the server's
 * own type and code, then from the status; the error holds the status and the wait the server asked for, where there
 * are any; the message quotes a cut, printable excerpt without secrets and says what to do.
 */

import { thrownMessage } from '../errors.ts';
import { formsOf, withoutSecrets } from '../log/redact.ts';
import { ModelError, type ModelErrorCode } from './model.ts';
import { isRecord, parseJson } from './wireJson.ts';

const ADVICE: { readonly [code: string]: string } = {
  auth: 'check OPENAI_API_KEY (or the apiKey option) and what the key may do',
  quota: 'the account is out of credit or over its hard limit: check its billing',
  'not-found': 'check the model name and the base URL (OPENAI_BASE_URL or the baseURL option)',
  'bad-request': 'the server refuses this request; sending it again does not help',
  'rate-limit': 'the server asks for fewer requests',
};

/** What a response that is not 2xx means. `now` is in milliseconds, for a Retry-After that is a date. */
export function statusError(
  response: { readonly status: number; readonly headers: Headers },
  body: string,
  secrets: readonly string[],
  now: number,
  advised: typeof ADVICE = ADVICE,
): ModelError {
  const { status } = response;
  const parsed = parseJson(body);
  const facts = errorFacts(parsed === undefined ? body : parsed);
  const code = finalCode(facts) ?? statusCode(status);
  const said = excerpt(facts.message || body, secrets);
  const advice = advised[code];
  const retryAfterMs = retryAfter(response.headers, now);
  return new ModelError({
    code,
    status,
    message: [`the model server answered ${status} (${code})`, said, advice].filter(Boolean).join(': '),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** The wait the server asks for, in milliseconds: `retry-after-ms`, else `retry-after` (seconds or an HTTP date). */
export function retryAfter(headers: Headers, now: number): number | undefined {
  const exact = decimal(headers.get('retry-after-ms'));
  if (exact !== undefined) return Math.ceil(exact);
  const value = headers.get('retry-after');
  const seconds = decimal(value);
  if (seconds !== undefined) return Math.ceil(seconds * 1000);
  // Date.parse takes almost anything for a date ("-5" is a year), so the form is checked first.
  if (value === null || !/^\s*(mon|tue|wed|thu|fri|sat|sun)[a-z]*, .*\d:\d\d:\d\d/i.test(value)) return undefined;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function decimal(value: string | null): number | undefined {
  if (value === null || !/^\s*\d{1,15}(\.\d*)?\s*$/.test(value)) return undefined;
  return Number(value);
}

/** What `fetch` or a body threw. A ModelError passes through, everything else is the network's. */
export function networkError(error: unknown, url: string, secrets: readonly string[]): ModelError {
  if (error instanceof ModelError) return error;
  const said = thrownMessage(error);
  const reason = reasonOf(error);
  const code = /timeout|timedout/i.test(reason) ? 'timeout' : 'network';
  const detail = excerpt(withoutCredentials(said), secrets);
  const shown = reason === '' || detail.includes(reason) ? detail : `${detail} (${reason})`;
  // What was thrown is not the cause: whoever prints an error prints its causes, and those name the whole URL.
  const cause = Object.assign(new Error(shown), reason === '' ? {} : { code: reason });
  return new ModelError({
    code,
    message: `the exchange with the model server at ${originOf(url)} failed (${code}): ${shown}`,
    cause,
  });
}

/** Addresses in a text lose their user, their query and what follows it. */
const withoutCredentials = (text: string): string =>
  text.replace(/([a-z][a-z\d+.-]{0,20}:\/\/)(?:[^\s/?#"']*@)?([^\s?#"'<>)]*)(?:[?#][^\s"'<>)]*)?/gi, '$1$2');

/** The system's word for it (ECONNRESET, UND_ERR_SOCKET, TimeoutError), which fetch keeps in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  for (const at of [error, error.cause]) {
    const code = (at as { code?: unknown } | undefined)?.code;
    if (typeof code === 'string' && /^\w{1,64}$/.test(code)) return code;
  }
  return error.name === 'TimeoutError' ? error.name : '';
}

// Path and query stay out of messages: a query may hold a key.
function originOf(url: string): string {
  try {
    return new URL(url).origin;
  } catch {
    return 'an invalid URL';
  }
}

const EXCERPT_CHARS = 500;
/** A shorter secret is a placeholder such as "x": taking it out would only garble the text. */
const SECRET_CHARS = 4;

/** A quotable piece of foreign text: secrets and control characters out, white space joined, cut to 500 characters. */
export function excerpt(text: string, secrets: readonly string[]): string {
  const long = secrets.filter((secret) => secret.length >= SECRET_CHARS);
  const quoted = withoutSecrets(text, long.flatMap(formsOf))
    .slice(0, EXCERPT_CHARS * 8)
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim();
  return quoted.length > EXCERPT_CHARS
    ? `${quoted.slice(0, EXCERPT_CHARS - 1).replace(/[\ud800-\udbff]$/, '')}…`
    : quoted;
}

interface ErrorFacts {
  message: string;
  /** The server's `type` and `code` in one lower-case text. */
  kind: string;
  /** A numeric `code` or `status` in the body that is an HTTP error status. */
  status: number | undefined;
}

/** Reads the error bodies in use: `{error: {…}}`, `{error: 'text'}`, `{message}`, `{detail}`, plain text. */
function errorFacts(body: unknown): ErrorFacts {
  // One server wraps its error body in a list.
  const outer: unknown = Array.isArray(body) ? body[0] : body;
  const inner = isRecord(outer) && outer.error ? outer.error : outer;
  if (!isRecord(inner)) return { message: typeof inner === 'string' ? inner : '', kind: '', status: undefined };
  const said = inner.message ?? inner.detail ?? inner.error;
  const message = typeof said === 'string' ? said : '';
  const kind = [inner.type, inner.code, inner.status].filter((word) => typeof word === 'string');
  return { message, kind: kind.join(' ').toLowerCase(), status: errorStatus(inner.code) ?? errorStatus(inner.status) };
}

const errorStatus = (value: unknown): number | undefined => {
  const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 600 ? status : undefined;
};

/** First match wins; these hold whatever the status says. */
const FINAL_KINDS: readonly (readonly [RegExp, ModelErrorCode])[] = [
  [/insufficient_(quota|balance|credit|funds)|billing|quota_exhausted/, 'quota'],
  [/content_(filter|policy)/, 'content-filter'],
];
/** Read where no status tells. */
const KINDS: readonly (readonly [RegExp, ModelErrorCode])[] = [
  [/rate_?limit|too_many_requests|resource_exhausted|throttl/, 'rate-limit'],
  [/authentication|api_key|unauthori[sz]ed|permission|forbidden/, 'auth'],
  [/not_?found/, 'not-found'],
  [/timeout/, 'timeout'],
  [/invalid_request|bad_?request|context_length|unsupported|unprocessable/, 'bad-request'],
];

const firstMatch = (kinds: typeof KINDS, kind: string): ModelErrorCode | undefined =>
  kind === '' ? undefined : kinds.find(([pattern]) => pattern.test(kind))?.[1];

/** A code from the server's words alone: quota and content filter. */
const finalCode = (facts: ErrorFacts): ModelErrorCode | undefined => firstMatch(FINAL_KINDS, facts.kind);

function statusCode(status: number): ModelErrorCode {
  if (status === 401 || status === 403) return 'auth';
  if (status === 402) return 'quota';
  if (status === 404) return 'not-found';
  if (status === 408) return 'timeout';
  if (status === 429) return 'rate-limit';
  return status === 409 || status === 425 || status >= 500 ? 'server' : 'bad-request';
}

/** An error that came in place of a reply, under status 200. A fault of the server itself is `provider`. */
export function providerError(body: unknown, secrets: readonly string[]): ModelError {
  const facts = errorFacts(body);
  const byStatus = facts.status === undefined || facts.status >= 500 ? undefined : statusCode(facts.status);
  const code = finalCode(facts) ?? byStatus ?? firstMatch(KINDS, facts.kind) ?? 'provider';
  const said = facts.message || facts.kind || jsonText(body);
  return new ModelError({
    code,
    message: `the model server sent an error instead of the rest of its reply (${code}): ${excerpt(said, secrets)}`,
    ...(facts.status === undefined ? {} : { status: facts.status }),
  });
}

function jsonText(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch {
    return 'an error nested too deep to quote';
  }
}
