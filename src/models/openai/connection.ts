/** A connection to a server with one of OpenAI's APIs. */
import { ModelError } from '../model.ts';
import type { Advice } from '../wire/httpErrors.ts';
import { secretsIn } from '../wire/secrets.ts';
import { type ClientOptions, type Connection, vendorConnection } from '../wire/vendorConnection.ts';
import { prepareRequest, vendorClient } from './vendorClient.ts';

const ADVICE: Advice = {
  auth: 'check OPENAI_API_KEY (or the apiKey option) and what the key may do',
  quota: 'the account is out of credit or over its hard limit: check its billing',
  'not-found': 'check the model name and the base URL (OPENAI_BASE_URL or the baseURL option)',
  'bad-request': 'the server refuses this request; sending it again does not help',
  'rate-limit': 'the server asks for fewer requests',
};

/** `path`: the path of the API below the base URL. Throws ConfigurationError for a missing key and an unusable base URL. */
export function connect(options: ClientOptions, path: string): Connection {
  const first = vendorClient(options);
  const secrets = secretsIn(options.headers, first.apiKey);
  let unused: typeof first | undefined = first;

  async function prepare() {
    const client = unused ?? nextClient();
    unused = undefined;
    if (client.apiKey && !secrets.includes(client.apiKey)) secrets.push(client.apiKey);
    return prepareRequest(client, path);
  }

  function nextClient(): typeof first {
    try {
      return vendorClient(options);
    } catch (cause) {
      throw new ModelError({ code: 'auth', message: 'the key was refused, and there is no other', cause });
    }
  }

  return vendorConnection({ baseURL: first.baseURL, secrets, advice: ADVICE, fetch: options.fetch, prepare });
}
