/**
 * Models with a chat completions API: OpenAI's, and every server with the same API. Invariant: a call is one
 * request without its own retry, and every failure is a ModelError.
 */
import { ConfigurationError } from '../../errors.ts';
import { checkOptionsOf, object } from '../../validation.ts';
import { type Model, type ModelRequest, type StreamContext, WRITTEN } from '../model.ts';
import { httpStream } from '../wire/httpCall.ts';
import { type ClientOptions, clientValidators } from '../wire/vendorConnection.ts';
import { type VendorModelOptions, vendorModel, vendorModelValidators } from '../wire/vendorModel.ts';
import { ChatReply } from './chatReply.ts';
import { chatRequestBody, type SentOptions, sentFieldsOf, sentValidators, wireTypes } from './chatRequest.ts';
import { connect } from './connection.ts';
import { isVendorHost } from './vendorClient.ts';

/** The options of `openai`. */
export interface OpenAIOptions extends ClientOptions, SentOptions, VendorModelOptions {}

/** The validator of each option. */
const optionsValidator = object({
  ...clientValidators,
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
  const connection = connect(options, '/chat/completions');
  const server = new URL(connection.baseURL).origin;
  const limitField = isVendorHost(connection.baseURL) ? 'max_completion_tokens' : 'max_tokens';
  const { maxOutputTokens } = options;
  const sent = sentFieldsOf(options);
  const bodyOf = (request: ModelRequest, written: StreamContext[typeof WRITTEN]): string =>
    chatRequestBody(request, { modelName, server, limitField, maxOutputTokens, sent }, written);
  const stream: Model['stream'] = (request, { signal, [WRITTEN]: written }) =>
    httpStream(
      connection.call(
        () => ({ text: bodyOf(request, written) }),
        (write) => new ChatReply(write, { model: modelName, server, secrets: connection.secrets }),
      ),
      signal,
    );
  return vendorModel(modelName, options, connection.secrets, stream, {
    provider: 'openai',
    defaultAccepts: acceptedBy(modelName, isVendorHost(connection.baseURL)),
  });
}

/** All that the API has parts for. Of the vendor's models, only those for sound take it. Other servers serve any model. */
function acceptedBy(modelName: string, isVendor: boolean): readonly string[] {
  if (isVendor && /^(ft:)?(gpt-3\.5|o1-mini|o1-preview|o3-mini)/.test(modelName)) return [];
  return [...wireTypes.documents, ...(!isVendor || modelName.includes('audio') ? wireTypes.sounds : [])];
}
