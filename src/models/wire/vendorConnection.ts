/**
 * A connection to the server of a vendor: its options, and URL and headers between the calls. Invariant: a call is one
 * request without its own retry. No message quotes a key.
 */
import { ConfigurationError } from '../../errors.ts';
import { callback, isObject, text, type Validator } from '../../validation.ts';
import type { HttpCall } from './httpCall.ts';
import type { Advice } from './httpErrors.ts';
import { wholeCharacters } from './wireJson.ts';

/** The connection to the server of a model. */
export interface ClientOptions {
  /** The key of the API. Default: the vendor's environment variable. It is never logged. */
  apiKey?: string;
  /** The address of the API. Default: the vendor's environment variable, or its public address. */
  baseURL?: string;
  /** Sends the requests. Default: the platform's `fetch`. */
  fetch?: typeof fetch;
  /** Headers that are added to each request. Credentials in them are never logged. */
  headers?: Record<string, string>;
}

const headers: Validator = {
  expected: 'an object of strings',
  test: (value) => isObject(value) && Object.values(value).every((each) => typeof each === 'string'),
  secret: true,
};
/** The validator of each option of the connection. */
export const clientValidators: Readonly<Record<keyof ClientOptions, Validator>> = {
  apiKey: { ...text, secret: true },
  baseURL: { ...text, secret: true },
  fetch: callback,
  headers,
};

/** Throws ConfigurationError for a key and headers that no request can have. */
export function checkHeaders(ownHeaders: Record<string, string> | undefined, apiKey: string): void {
  try {
    new Headers({ ...ownHeaders, authorization: `Bearer ${apiKey}` });
  } catch {
    // The reason would quote the key.
    throw new ConfigurationError(
      'the API key or a header holds characters that no header can: remove line ends and non-Latin characters',
    );
  }
}

/** Throws ConfigurationError. `advice`: an example, and where the URL comes from. */
export function checkBaseURL(baseURL: string, advice: string): void {
  // "localhost:8080/v1" is also a URL, with the scheme "localhost".
  if (/^https?:$/.test(urlOf(baseURL)?.protocol ?? '')) return;
  throw new ConfigurationError(`the base URL must be a whole URL such as ${advice}`);
}

/** Returns true for this host and those below it. */
export function isHostOf(baseURL: string, host: string): boolean {
  const hostname = urlOf(baseURL)?.hostname.toLowerCase() ?? '';
  return hostname === host || hostname.endsWith(`.${host}`);
}

function urlOf(baseURL: string): URL | undefined {
  try {
    return new URL(baseURL);
  } catch {
    return undefined;
  }
}

/** The constant parts of all calls. */
export interface PreparedRequest {
  readonly url: string;
  readonly headers: Headers;
}

export interface RequestBody {
  /** JSON. */
  readonly text: string;
  /** Completes the prepared headers for this request. */
  readonly headers?: (prepared: Headers) => Headers;
}

export interface Connection {
  readonly baseURL: string;
  readonly secrets: readonly string[];
  /** Makes a call. `body` is called when the request is sent, `reply` makes the reader of its answer. */
  call(body: () => RequestBody, reply: HttpCall['reply']): HttpCall;
}

interface ConnectionParts {
  baseURL: string;
  secrets: readonly string[];
  advice: Advice;
  fetch: typeof fetch | undefined;
  /** Makes URL and headers: before the first call, and again after a 401, because the environment may have a new key. */
  prepare(): Promise<PreparedRequest>;
}

export function vendorConnection({ baseURL, secrets, advice, fetch: ownFetch, prepare }: ConnectionParts): Connection {
  let prepared: PreparedRequest | undefined;
  return {
    baseURL,
    secrets,
    call: (body, reply) => ({
      secrets,
      url: baseURL,
      advice,
      reply,
      async send(signal) {
        prepared ??= await prepare();
        const { url } = prepared;
        const { text, headers: completed } = body();
        const send = ownFetch ?? globalThis.fetch;
        const headers = completed ? completed(prepared.headers) : prepared.headers;
        const response = await send(url, { method: 'POST', headers, body: wholeCharacters(text), signal });
        if (response.status === 401) prepared = undefined;
        return response;
      },
    }),
  };
}
