/**
 * Models with a chat completions API: OpenAI's, and every server with the same API. Invariant: a call is one
 * request without its own retry, and every failure is a ModelError.
 */
import { ConfigurationError } from '../../errors.ts';
import { callback, checkOptionsOf, isObject, object, text, type Validator } from '../../validation.ts';
import { type Model, ModelError, type ModelRequest, type StreamContext, WRITTEN } from '../model.ts';
import { type HttpCall, httpStream } from '../wire/httpCall.ts';
import type { Advice } from '../wire/httpErrors.ts';
import { secretsIn } from '../wire/secrets.ts';
import { type VendorModelOptions, vendorModel, vendorModelValidators } from '../wire/vendorModel.ts';
import { ChatReply } from './chatReply.ts';
import { chatRequestBody, type SentOptions, sentFieldsOf, sentValidators } from './chatRequest.ts';
import {
  type ClientOptions,
  isVendorHost,
  type PreparedRequest,
  prepareRequest,
  vendorClient,
} from './vendorClient.ts';

export interface OpenAIOptions extends ClientOptions, SentOptions, VendorModelOptions {}

const ADVICE: Advice = {
  auth: 'check OPENAI_API_KEY (or the apiKey option) and what the key may do',
  quota: 'the account is out of credit or over its hard limit: check its billing',
  'not-found': 'check the model name and the base URL (OPENAI_BASE_URL or the baseURL option)',
  'bad-request': 'the server refuses this request; sending it again does not help',
  'rate-limit': 'the server asks for fewer requests',
};

const headers: Validator = {
  expected: 'an object of strings',
  test: (value) => isObject(value) && Object.values(value).every((each) => typeof each === 'string'),
  secret: true,
};
/** The validator of each option. */
const optionsValidator = object({
  apiKey: { ...text, secret: true },
  baseURL: { ...text, secret: true },
  fetch: callback,
  headers,
  ...vendorModelValidators,
  ...Object.fromEntries(sentValidators),
});

/**
 * A model with a chat completions API. Key and base URL come from the options, else from OPENAI_API_KEY and
 * OPENAI_BASE_URL as the vendor's client reads them. `headers` are sent with every request, and `fetch` sends it.
 * Printing the model shows no secret. Throws ConfigurationError for a missing key and for an unknown or invalid
 * option.
 */
export function openai(modelName: string, options: OpenAIOptions = {}): Model {
  if (typeof modelName !== 'string' || modelName.trim() === '') {
    throw new ConfigurationError("openai() needs the model's name, as its server knows it");
  }
  checkOptionsOf('openai()', options, optionsValidator);
  const connection = connect(modelName, options);
  const limitField = isVendorHost(connection.baseURL) ? 'max_completion_tokens' : 'max_tokens';
  const { maxOutputTokens } = options;
  const sent = sentFieldsOf(options);
  const bodyOf = (request: ModelRequest, written: StreamContext[typeof WRITTEN]): string =>
    chatRequestBody(request, { modelName, limitField, maxOutputTokens, sent }, written);
  return vendorModel(modelName, options, connection.secrets, (request, { signal, [WRITTEN]: written }) =>
    httpStream(
      connection.call(() => bodyOf(request, written)),
      signal,
    ),
  );
}

interface Connection {
  readonly baseURL: string;
  readonly secrets: readonly string[];
  /** Makes a call. `body` is called when the request is sent. */
  call(body: () => string): HttpCall;
}

/** Keeps URL and headers between calls. After a 401 they are made again, because the environment may have a new key. */
function connect(model: string, options: ClientOptions): Connection {
  const first = vendorClient(options);
  const secrets = secretsIn(options.headers, first.apiKey);
  let client: typeof first | undefined = first;
  let prepared: PreparedRequest | undefined;

  async function prepare(): Promise<PreparedRequest> {
    try {
      client ??= vendorClient(options);
    } catch (cause) {
      throw new ModelError({ code: 'auth', message: 'the key was refused, and there is no other', cause });
    }
    if (client.apiKey && !secrets.includes(client.apiKey)) secrets.push(client.apiKey);
    prepared = await prepareRequest(client);
    return prepared;
  }

  return {
    baseURL: first.baseURL,
    secrets,
    call: (body) => ({
      secrets,
      url: first.baseURL,
      advice: ADVICE,
      reply: (write) => new ChatReply(write, { model, secrets }),
      async send(signal) {
        const { url, headers } = prepared ?? (await prepare());
        const send = options.fetch ?? globalThis.fetch;
        const response = await send(url, { method: 'POST', headers, body: body(), signal });
        if (response.status === 401) client = prepared = undefined;
        return response;
      },
    }),
  };
}
