/**
 * The vendor's client, used for what it knows: environment, authentication, address, headers. Rule: it builds URL and
 * headers once and never sends; a configuration that cannot work is a ConfigurationError.
 */
import OpenAI from 'openai';
import { ConfigurationError } from '../../errors.ts';

export interface ClientOptions {
  apiKey?: string;
  baseURL?: string;
  fetch?: typeof fetch;
  headers?: Record<string, string>;
}

/** What stays the same from call to call. */
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
      // The vendor keeps its key out of browsers; a page that talks to a proxy of its own has nothing to keep out.
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

/** Is this the vendor's own service? It takes the output limit under a newer name. */
export function isVendorHost(baseURL: string): boolean {
  try {
    return /(^|\.)api\.openai\.com$/i.test(new URL(baseURL).hostname);
  } catch {
    return false;
  }
}

// "localhost:8080/v1" is a URL too, of the scheme "localhost".
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
