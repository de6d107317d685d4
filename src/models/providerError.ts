/**
 * What a server says went wrong → ModelError. Rule: the code follows from the server's own type and code, then from
 * the status; the message quotes a cut, printable excerpt that holds no secret.
 */
import { formsOf, withoutSecrets } from '../redact.ts';
import { ModelError, type ModelErrorCode } from './model.ts';
import { isRecord } from './wireJson.ts';

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
export function errorFacts(body: unknown): ErrorFacts {
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
export const finalCode = (facts: ErrorFacts): ModelErrorCode | undefined => firstMatch(FINAL_KINDS, facts.kind);

export function statusCode(status: number): ModelErrorCode {
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
