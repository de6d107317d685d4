/**
 * Turns errors of an AI SDK provider, thrown or streamed, into a ModelError. Invariant: errors are recognized by
 * name, because several copies of the SDK may be installed. Quoted text is short and has no secrets. The thrown error
 * is never the cause, because it has the request, the address and headers.
 */
import { thrownMessage } from '../../errors.ts';
import { ModelError, type ModelErrorCode } from '../model.ts';
import { type Advice, excerpt, networkError, providerError, statusError } from '../wire/httpErrors.ts';

interface Thrown {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly statusCode?: unknown;
  readonly responseHeaders?: unknown;
  readonly responseBody?: unknown;
  readonly url?: unknown;
}

const ADVICE: Advice = {
  auth: "check the provider's API key and what it may do",
  quota: 'the account is out of credit or over its hard limit: check its billing',
  'not-found': "check the model's name and the provider's base URL",
  'bad-request': 'the provider refuses this request; sending it again does not help',
  'rate-limit': 'the provider asks for fewer requests',
};

/** The keys are names of the SDK. */
const CODES: { readonly [name: string]: ModelErrorCode } = {
  AI_LoadAPIKeyError: 'auth',
  AI_LoadSettingError: 'auth',
  AI_NoSuchModelError: 'not-found',
  AI_NoSuchProviderError: 'not-found',
  AI_InvalidArgumentError: 'bad-request',
  AI_InvalidPromptError: 'bad-request',
  AI_UnsupportedFunctionalityError: 'bad-request',
  AI_JSONParseError: 'bad-frame',
  AI_TypeValidationError: 'bad-frame',
  AI_InvalidResponseDataError: 'bad-frame',
  AI_EmptyResponseBodyError: 'stream-incomplete',
  AI_NoContentGeneratedError: 'stream-incomplete',
};

function headersOf(headers: unknown): Headers {
  try {
    return new Headers(headers as Record<string, string>);
  } catch {
    return new Headers();
  }
}

/** The error of a failed HTTP exchange: by its status, or without one a network error. */
function exchangeError(error: Thrown, secrets: readonly string[], now: number): ModelError {
  const { statusCode, responseBody, responseHeaders, message, url } = error;
  if (typeof statusCode !== 'number') return networkError(error, String(url), secrets);
  const quoted = typeof responseBody === 'string' && responseBody !== '' ? responseBody : String(message);
  if (statusCode >= 400) {
    const response = { status: statusCode, headers: headersOf(responseHeaders) };
    return statusError(response, quoted, { secrets, advice: ADVICE }, now);
  }
  return sdkError('bad-frame', error, secrets);
}

const sdkError = (code: ModelErrorCode, error: unknown, secrets: readonly string[]): ModelError => {
  const advice = ADVICE[code];
  const quoted = excerpt(thrownMessage(error), secrets);
  return new ModelError({
    code,
    message: `the provider failed (${code}): ${quoted}${advice === undefined ? '' : `: ${advice}`}`,
  });
};

/**
 * The error that `doStream` rejected with, or that broke its stream. `now` is in milliseconds, for a Retry-After with
 * a date.
 */
export function thrownError(error: unknown, secrets: readonly string[], now: number): ModelError {
  if (error instanceof ModelError) return error;
  const thrown: Thrown = typeof error === 'object' && error !== null ? error : {};
  if (thrown.name === 'AI_APICallError') return exchangeError(thrown, secrets, now);
  // The SDK retries nothing at this level, so a retry error only wraps another failure.
  const cause = (thrown as { cause?: unknown }).cause;
  if (thrown.name === 'AI_RetryError' && cause !== undefined) return thrownError(cause, secrets, now);
  const code = CODES[String(thrown.name)];
  return code === undefined ? networkError(error, 'https://provider', secrets) : sdkError(code, error, secrets);
}

/** The error of an error part. A body of the server is read as such. */
export function streamedError(error: unknown, secrets: readonly string[], now: number): ModelError {
  return error instanceof Error ? thrownError(error, secrets, now) : providerError(error, secrets);
}
