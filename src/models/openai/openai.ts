/**
 * Models behind a chat completions API: OpenAI's, and every server with the same API. Invariant: a call is one
 * request without its own retry, and every failure is a ModelError.
 */

import { type ImageLimits, imageLimitsOf } from '../../content/imageFormat.ts';
import { ConfigurationError } from '../../errors.ts';
import { callback, checkOptionsOf, isObject, object, text, type Validator } from '../../validation.ts';
import { type Model, ModelError, type ModelRequest, type Prices, type StreamContext, WRITTEN } from '../model.ts';
import { secretsIn, withSecrets } from '../secrets.ts';
import { chatRequestBody, type SentOptions, sentFieldsOf, sentValidators } from './chatRequest.ts';
import { type ChatCall, chatStream } from './http.ts';
import {
  type ClientOptions,
  isVendorHost,
  type PreparedRequest,
  prepareRequest,
  vendorClient,
} from './vendorClient.ts';

export interface OpenAIOptions extends ClientOptions, SentOptions {
  /** The most tokens of input and output in one call. */
  contextWindow?: number;
  /** The output limit if a request names none. */
  maxOutputTokens?: number;
  prices?: Prices;
  /** Limits for images. Default: 2,000 pixels on the longer side and 4.5 MiB encoded. */
  imageLimits?: ImageLimits;
}

const tokens: Validator = {
  expected: 'a positive whole number of tokens',
  test: (value) => Number.isInteger(value) && Number(value) > 0,
};
/** Validated when the model is made. */
const group: Validator = { expected: 'an object', test: isObject };
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
  contextWindow: tokens,
  maxOutputTokens: tokens,
  prices: group,
  imageLimits: group,
  ...Object.fromEntries(sentValidators),
});

/**
 * A model behind a chat completions API. Key and base URL come from the options, else from OPENAI_API_KEY and
 * OPENAI_BASE_URL as the vendor's client reads them. `headers` are sent with every request, and `fetch` sends it.
 * Printing the model shows no secret. Throws ConfigurationError for a missing key and for an unknown or invalid
 * option.
 */
export function openai(modelName: string, options: OpenAIOptions = {}): Model {
  if (typeof modelName !== 'string' || modelName.trim() === '') {
    throw new ConfigurationError("openai() needs the model's name, as its server knows it");
  }
  checkOptionsOf('openai()', options, optionsValidator);
  const { contextWindow, maxOutputTokens, prices, imageLimits } = options;
  if (imageLimits) imageLimitsOf({ id: modelName, imageLimits });
  const connection = connect(modelName, options);
  const limitField = isVendorHost(connection.baseURL) ? 'max_completion_tokens' : 'max_tokens';
  const sent = sentFieldsOf(options);
  const bodyOf = (request: ModelRequest, written: StreamContext[typeof WRITTEN]): string =>
    chatRequestBody(request, { modelName, limitField, maxOutputTokens, sent }, written);
  const model: Model = {
    id: modelName,
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(prices === undefined ? {} : { prices }),
    ...(imageLimits === undefined ? {} : { imageLimits }),
    stream: (request, { signal, [WRITTEN]: written }) =>
      chatStream(
        connection.call(() => bodyOf(request, written)),
        signal,
      ),
  };
  return withSecrets(model, connection.secrets);
}

interface Connection {
  readonly baseURL: string;
  readonly secrets: readonly string[];
  /** Makes a call. `body` is called when the request is sent. */
  call(body: () => string): ChatCall;
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
      model,
      secrets,
      url: first.baseURL,
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
