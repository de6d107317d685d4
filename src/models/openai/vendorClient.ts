/**
 * Uses the vendor's client for environment, authentication, address and headers. Invariant: it makes URL and headers
 * once and never sends. An invalid configuration is a ConfigurationError.
 */
import OpenAI from 'openai';
import { ConfigurationError } from '../../errors.ts';

export interface ClientOptions {
  apiKey?: string;
  baseURL?: string;
  fetch?: typeof fetch;
  headers?: Record<string, string>;
}

/** The constant parts of all calls. */
export interface PreparedRequest {
  readonly url: string;
  readonly headers: Headers;
}

const PATH = '/chat/completions';

export function vendorClient(options: ClientOptions): OpenAI {
  let client: OpenAI;
  try {
    client = new OpenAI({
      maxRetries: 0,
      // The vendor's client refuses to run in browsers to protect its key. A page with its own proxy has no key to
      // protect.
      dangerouslyAllowBrowser: options.baseURL !== undefined && !isVendorHost(options.baseURL),
      ...(options.apiKey === undefined ? {} : { apiKey: options.apiKey }),
      ...(options.baseURL === undefined ? {} : { baseURL: options.baseURL }),
      ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
      ...(options.headers === undefined ? {} : { defaultHeaders: options.headers }),
    });
  } catch (cause) {
    throw /credentials/i.test(String(cause)) ? missingKey() : notUsable(cause);
  }
  if (!client.apiKey) throw missingKey();
  try {
    new Headers({ ...options.headers, authorization: `Bearer ${client.apiKey}` });
  } catch {
    // The reason would quote the key.
    throw new ConfigurationError(
      'the API key or a header holds characters that no header can: remove line ends and non-Latin characters',
    );
  }
  if (!isHttp(client.baseURL)) {
    throw new ConfigurationError(
      'the base URL must be a whole URL such as http://localhost:8080/v1: check OPENAI_BASE_URL or the baseURL option',
    );
  }
  return client;
}

export async function prepareRequest(client: OpenAI): Promise<PreparedRequest> {
  const { req, url } = await client.buildRequest({ method: 'post', path: PATH, body: {}, stream: true });
  return { url, headers: new Headers(req.headers) };
}

/** Returns true for the vendor's own service, which expects the output limit under a newer name. */
export function isVendorHost(baseURL: string): boolean {
  try {
    return /(^|\.)api\.openai\.com$/i.test(new URL(baseURL).hostname);
  } catch {
    return false;
  }
}

// "localhost:8080/v1" is also a URL, with the scheme "localhost".
function isHttp(baseURL: string): boolean {
  try {
    return /^https?:$/.test(new URL(baseURL).protocol);
  } catch {
    return false;
  }
}

const missingKey = (): ConfigurationError =>
  new ConfigurationError(
    'no API key: set OPENAI_API_KEY or give the apiKey option. ' +
      "Where the server needs none, give any longer text, e.g. apiKey: 'not-needed'",
  );

const notUsable = (cause: unknown): ConfigurationError =>
  new ConfigurationError(
    `the openai client refuses its options: ${cause instanceof Error ? cause.message : String(cause)}`,
    {
      cause,
    },
  );
