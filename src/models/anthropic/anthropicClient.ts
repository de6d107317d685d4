/**
 * The connection to a server with Anthropic's Messages API, over the vendor's client. Invariant: the client makes URL and
 * headers and never sends. It is loaded at the first call, and always receives the key, so it searches for no other.
 */
import { ConfigurationError } from '../../errors.ts';
import { ModelError } from '../model.ts';
import type { Advice } from '../wire/httpErrors.ts';
import { secretsIn } from '../wire/secrets.ts';
import {
  type ClientOptions,
  type Connection,
  checkBaseURL,
  checkHeaders,
  isHostOf,
  type PreparedRequest,
  vendorConnection,
} from '../wire/vendorConnection.ts';

const ADVICE: Advice = {
  auth: 'check ANTHROPIC_API_KEY (or the apiKey option) and what the key may do',
  quota: 'the account is out of credit: check its billing',
  'not-found': 'check the model name and the base URL (ANTHROPIC_BASE_URL or the baseURL option), which has no /v1',
  'bad-request': 'the server refuses this request; sending it again does not help',
  'rate-limit': 'the server asks for fewer requests',
};

const VENDOR_HOST = 'api.anthropic.com';

/** Throws ConfigurationError for a missing key and an unusable base URL. */
export function connect(options: ClientOptions): Connection {
  const firstKey = keyOf(options);
  checkHeaders(options.headers, firstKey);
  const baseURL = options.baseURL ?? (fromEnvironment('ANTHROPIC_BASE_URL') || `https://${VENDOR_HOST}`);
  checkBaseURL(baseURL, 'https://llm.example.com: check ANTHROPIC_BASE_URL or the baseURL option');
  const secrets = secretsIn(options.headers, firstKey);

  async function prepare(): Promise<PreparedRequest> {
    const apiKey = keyOf(options);
    const prepared = await preparedRequest(apiKey, baseURL, options.headers);
    // The environment can add headers with credentials.
    for (const secret of secretsIn(Object.fromEntries(prepared.headers), apiKey)) {
      if (!secrets.includes(secret)) secrets.push(secret);
    }
    return prepared;
  }

  return vendorConnection({ baseURL, secrets, advice: ADVICE, fetch: options.fetch, prepare });
}

async function preparedRequest(
  apiKey: string,
  baseURL: string,
  headers: ClientOptions['headers'],
): Promise<PreparedRequest> {
  const Anthropic = await vendorPackage();
  try {
    const client = new Anthropic({
      apiKey,
      baseURL,
      maxRetries: 0,
      // The vendor's client refuses to run in browsers to protect its key. A page with its own proxy has no key to
      // protect.
      dangerouslyAllowBrowser: !isHostOf(baseURL, VENDOR_HOST),
      ...(headers && { defaultHeaders: headers }),
    });
    const { req, url } = await client.buildRequest({ method: 'post', path: '/v1/messages', body: {}, stream: true });
    return { url, headers: new Headers(req.headers) };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ModelError({ code: 'configuration', message: `the client @anthropic-ai/sdk refuses: ${reason}`, cause });
  }
}

async function vendorPackage() {
  try {
    return (await import('@anthropic-ai/sdk')).default;
  } catch (cause) {
    const message = 'anthropic() needs the package @anthropic-ai/sdk, which is missing: npm install @anthropic-ai/sdk';
    throw new ModelError({ code: 'configuration', message, cause });
  }
}

/** A browser has no environment. */
function fromEnvironment(name: string): string {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name]?.trim() ?? '';
}

function keyOf({ apiKey }: ClientOptions): string {
  const key = apiKey ?? fromEnvironment('ANTHROPIC_API_KEY');
  if (key !== '') return key;
  throw new ConfigurationError(
    'no API key: set ANTHROPIC_API_KEY or give the apiKey option. ' +
      "Where the server needs none, give any longer text, e.g. apiKey: 'not-needed'",
  );
}
