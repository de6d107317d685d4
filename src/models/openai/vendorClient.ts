/**
 * Uses the vendor's client for environment, authentication, address and headers. Invariant: it makes URL and headers
 * once and never sends. An invalid configuration is a ConfigurationError.
 */
import type OpenAI from 'openai';
import { ConfigurationError } from '../../errors.ts';
import {
  type ClientOptions,
  checkBaseURL,
  checkHeaders,
  isHostOf,
  type PreparedRequest,
} from '../wire/vendorConnection.ts';

/** Loaded here, so that a missing package is an error of the model and not of the import. */
const loaded = await import('openai').then(
  ({ default: Client }) => ({ Client }),
  (cause: unknown) => ({ cause }),
);

export function vendorClient(options: ClientOptions): OpenAI {
  if ('cause' in loaded) {
    const { cause } = loaded;
    throw new ConfigurationError('models of runchart/openai need the package openai: npm install openai', { cause });
  }
  const { Client } = loaded;
  let client: OpenAI;
  try {
    client = new Client({
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
  checkHeaders(options.headers, client.apiKey);
  checkBaseURL(client.baseURL, 'http://localhost:8080/v1: check OPENAI_BASE_URL or the baseURL option');
  return client;
}

/** `path`: the path of the API below the base URL. */
export async function prepareRequest(client: OpenAI, path: string): Promise<PreparedRequest> {
  const { req, url } = await client.buildRequest({ method: 'post', path, body: {}, stream: true });
  return { url, headers: new Headers(req.headers) };
}

/** Returns true for the vendor's own service, which expects the output limit under a newer name. */
export const isVendorHost = (baseURL: string): boolean => isHostOf(baseURL, 'api.openai.com');

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
