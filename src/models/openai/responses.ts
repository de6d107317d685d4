/**
 * Models with OpenAI's Responses API. Invariant: a call is one request without its own retry, the provider stores
 * nothing, and every failure is a ModelError.
 */
import { ConfigurationError } from '../../errors.ts';
import { checkOptionsOf, object } from '../../validation.ts';
import type { Model } from '../model.ts';
import { httpStream } from '../wire/httpCall.ts';
import { type ClientOptions, clientValidators } from '../wire/vendorConnection.ts';
import { type VendorModelOptions, vendorModel, vendorModelValidators } from '../wire/vendorModel.ts';
import { connect } from './connection.ts';
import { ResponsesReply } from './responsesReply.ts';
import { providerOf, type ResponsesOptions, responsesBody, responsesValidators } from './responsesRequest.ts';

/** The options of `openaiResponses`. */
export interface OpenAIResponsesOptions extends ClientOptions, ResponsesOptions, VendorModelOptions {}

const optionsValidator = object({ ...clientValidators, ...responsesValidators, ...vendorModelValidators });

/**
 * A model with OpenAI's Responses API. The provider stores nothing (`store: false`). It encrypts the reasoning, which
 * the log keeps and every later request sends back. The model continues its reasoning after tool calls. The calls and
 * results of `builtInTools` are kept in the same way. Key and base URL come from the options, else from OPENAI_API_KEY
 * and OPENAI_BASE_URL. Throws ConfigurationError for a missing key and for an unknown or invalid option.
 */
export function openaiResponses(modelName: string, options: OpenAIResponsesOptions = {}): Model {
  if (typeof modelName !== 'string' || modelName.trim() === '') {
    throw new ConfigurationError("openaiResponses() needs the model's name, as its server knows it");
  }
  checkOptionsOf('openaiResponses()', options, optionsValidator);
  const connection = connect(options, '/responses');
  const { secrets } = connection;
  const provider = providerOf(modelName);
  const stream: Model['stream'] = (request, { signal }) =>
    httpStream(
      connection.call(
        () => ({ text: responsesBody(request, modelName, options) }),
        (write) => new ResponsesReply(write, { provider, secrets }),
      ),
      signal,
    );
  return vendorModel(modelName, options, secrets, stream, {
    provider: 'openai',
    defaultAccepts: ['image/*', 'application/pdf'],
  });
}
