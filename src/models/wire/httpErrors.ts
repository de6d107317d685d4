/**
 * Turns a failed HTTP exchange, or an error body of a server, into a ModelError. Invariant: the code follows from the
 * server's own type and code, then from the status. The error has the status and the requested wait, if any. The
 * message quotes a short, printable excerpt without secrets, and gives the adapter's advice.
 */
import { thrownMessage } from '../../errors.ts';
import { formsOf, withoutSecrets } from '../../log/secretText.ts';
import { shortened } from '../../printable.ts';
import { ModelError, type ModelErrorCode } from '../model.ts';
import { isRecord, parseJson } from './wireJson.ts';

/** The remedy for an error, by its code. The messages of an adapter contain it. */
export type Advice = { readonly [code: string]: string };

/** The error for a response that is not 2xx. `now` is in milliseconds, for a Retry-After with a date. */
export function statusError(
  response: { readonly status: number; readonly headers: Headers },
  body: string,
  { secrets, advice }: { secrets: readonly string[]; advice: Advice },
  now: number,
): ModelError {
  const { status } = response;
  const parsed = parseJson(body);
  const facts = errorFacts(parsed === undefined ? body : parsed);
  const code = finalCode(facts) ?? statusCode(status);
  // The advice continues the sentence.
  const quoted = excerpt(facts.message || body, secrets).replace(/\.$/, '');
  const retryAfterMs = retryAfter(response.headers, now);
  return new ModelError({
    code,
    status,
    message: [`the model server answered ${status} (${code})`, quoted, advice[code]].filter(Boolean).join(': '),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/**
 * Returns the wait that the server requests, in milliseconds: `retry-after-ms`, else `retry-after` (seconds or an
 * HTTP date).
 */
export function retryAfter(headers: Headers, now: number): number | undefined {
  const exact = decimal(headers.get('retry-after-ms'));
  if (exact !== undefined) return Math.ceil(exact);
  const value = headers.get('retry-after');
  const seconds = decimal(value);
  if (seconds !== undefined) return Math.ceil(seconds * 1000);
  // Date.parse accepts almost any text ("-5" is a year), so the form is checked first.
  if (value === null || !/^\s*(mon|tue|wed|thu|fri|sat|sun)[a-z]*, .*\d:\d\d:\d\d/i.test(value)) return undefined;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function decimal(value: string | null): number | undefined {
  if (value === null || !/^\s*\d{1,15}(\.\d*)?\s*$/.test(value)) return undefined;
  return Number(value);
}

/** The error for a value that `fetch` or a body threw. A ModelError is returned unchanged; others count as network errors. */
export function networkError(error: unknown, url: string, secrets: readonly string[]): ModelError {
  if (error instanceof ModelError) return error;
  const reason = systemCode(error);
  const code = /timeout|timedout/i.test(reason) ? 'timeout' : 'network';
  const detail = excerpt(withoutCredentials(thrownMessage(error)), secrets);
  const shown = reason === '' || detail.includes(reason) ? detail : `${detail} (${reason})`;
  // The thrown error is not the cause, because printed causes would show the whole URL.
  const cause = Object.assign(new Error(shown), reason === '' ? {} : { code: reason });
  return new ModelError({
    code,
    message: `the exchange with the model server at ${originOf(url)} failed (${code}): ${shown}`,
    cause,
  });
}

/** Removes user, query and fragment from the URLs in a text. */
const withoutCredentials = (text: string): string =>
  text.replace(/([a-z][a-z\d+.-]{0,20}:\/\/)(?:[^\s/?#"']*@)?([^\s?#"'<>)]*)(?:[?#][^\s"'<>)]*)?/gi, '$1$2');

/** Returns the system's code (ECONNRESET, UND_ERR_SOCKET, TimeoutError), which fetch keeps in the cause. */
function systemCode(error: unknown): string {
  if (!(error instanceof Error)) return '';
  for (const thrown of [error, error.cause]) {
    const code = (thrown as { code?: unknown } | undefined)?.code;
    if (typeof code === 'string' && /^\w{1,64}$/.test(code)) return code;
  }
  return error.name === 'TimeoutError' ? error.name : '';
}

// Messages omit path and query, because a query may contain a key.
function originOf(url: string): string {
  try {
    return new URL(url).origin;
  } catch {
    return 'an invalid URL';
  }
}

const EXCERPT_CHARS = 500;
/** A shorter secret is a placeholder such as "x". Redacting it would only garble the text. */
const SECRET_CHARS = 4;

/**
 * Returns a quotable part of foreign text: without secrets and control characters, with joined white space, at most
 * 500 characters.
 */
export function excerpt(text: string, secrets: readonly string[]): string {
  const long = secrets.filter((secret) => secret.length >= SECRET_CHARS);
  const quoted = withoutSecrets(text, long.flatMap(formsOf))
    .slice(0, EXCERPT_CHARS * 8)
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim();
  return shortened(quoted, EXCERPT_CHARS);
}

interface ErrorFacts {
  message: string;
  /** The server's `type` and `code` in one lower-case text. */
  kind: string;
  /** A numeric `code` or `status` in the body that is an HTTP error status. */
  status: number | undefined;
}

/** Reads the common error bodies: `{error: {…}}`, `{error: 'text'}`, `{message}`, `{detail}`, plain text. */
function errorFacts(body: unknown): ErrorFacts {
  // One server wraps its error body in a list.
  const outer: unknown = Array.isArray(body) ? body[0] : body;
  const inner = isRecord(outer) && outer.error ? outer.error : outer;
  if (!isRecord(inner)) return { message: typeof inner === 'string' ? inner : '', kind: '', status: undefined };
  const text = inner.message ?? inner.detail ?? inner.error;
  const message = typeof text === 'string' ? text : '';
  const kind = [inner.type, inner.code, inner.status].filter((word) => typeof word === 'string');
  return { message, kind: kind.join(' ').toLowerCase(), status: errorStatus(inner.code) ?? errorStatus(inner.status) };
}

const errorStatus = (value: unknown): number | undefined => {
  const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 600 ? status : undefined;
};

/** The first match wins, for every status. */
const FINAL_KINDS: readonly (readonly [RegExp, ModelErrorCode])[] = [
  [/insufficient_(quota|balance|credit|funds)|billing|quota_exhausted/, 'quota'],
  [/content_(filter|policy)/, 'content-filter'],
];
/** Used if there is no status. */
const KINDS: readonly (readonly [RegExp, ModelErrorCode])[] = [
  [/rate_?limit|too_many_requests|resource_exhausted|throttl/, 'rate-limit'],
  [/authentication|api_key|unauthori[sz]ed|permission|forbidden/, 'auth'],
  [/not_?found/, 'not-found'],
  [/timeout/, 'timeout'],
  [/invalid_(request|prompt|image|base64)|bad_?request|too_(large|small)|image_parse|empty_image/, 'bad-request'],
  [/context_length|unsupported|unprocessable/, 'bad-request'],
];

const firstMatch = (kinds: typeof KINDS, kind: string): ModelErrorCode | undefined =>
  kind === '' ? undefined : kinds.find(([pattern]) => pattern.test(kind))?.[1];

/** Returns a code that follows from the server's words alone: quota or content filter. */
const finalCode = (facts: ErrorFacts): ModelErrorCode | undefined => firstMatch(FINAL_KINDS, facts.kind);

function statusCode(status: number): ModelErrorCode {
  if (status === 401 || status === 403) return 'auth';
  if (status === 402) return 'quota';
  if (status === 404) return 'not-found';
  if (status === 408) return 'timeout';
  if (status === 429) return 'rate-limit';
  return status === 409 || status === 425 || status >= 500 ? 'server' : 'bad-request';
}

/** The error for an error body under status 200. A fault of the server itself is `provider`. */
export function providerError(body: unknown, secrets: readonly string[]): ModelError {
  const facts = errorFacts(body);
  const byStatus = facts.status === undefined || facts.status >= 500 ? undefined : statusCode(facts.status);
  const code = finalCode(facts) ?? byStatus ?? firstMatch(KINDS, facts.kind) ?? 'provider';
  const text = facts.message || facts.kind || jsonText(body);
  return new ModelError({
    code,
    message: `the model server sent an error instead of the rest of its reply (${code}): ${excerpt(text, secrets)}`,
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

/** The error for data of a server that is not JSON. */
export const badFrame = (): ModelError =>
  new ModelError({
    code: 'bad-frame',
    message: 'the model server sent data that is no JSON; the reply so far is not used',
  });

/** The error for a request that JSON cannot represent. */
export const unwritableRequest = (cause: unknown): ModelError =>
  new ModelError({
    code: 'bad-request',
    message: 'the request cannot be written as JSON: a message or a tool schema is nested too deep or holds no JSON',
    cause,
  });
