/**
 * A failed HTTP exchange → ModelError. Rule: every way to fail has a code, a status where there is one, the wait the
 * server asked for, and a message that says what to do.
 */
import { thrownMessage } from '../thrown.ts';
import { ModelError } from './model.ts';
import { errorFacts, excerpt, finalCode, statusCode } from './providerError.ts';
import { parseJson } from './wireJson.ts';

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
): ModelError {
  const { status } = response;
  const parsed = parseJson(body);
  const facts = errorFacts(parsed === undefined ? body : parsed);
  const code = finalCode(facts) ?? statusCode(status);
  const said = excerpt(facts.message || body, secrets);
  const advice = ADVICE[code];
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
