/**
 * `runchart/anthropic`: models with Anthropic's Messages API. Invariant: a call is one request without its own retry, and
 * every failure is a ModelError.
 */
import { ConfigurationError } from '../../errors.ts';
import { checkOptionsOf, object } from '../../validation.ts';
import type { Model } from '../model.ts';
import { httpStream } from '../wire/httpCall.ts';
import { type ClientOptions, clientValidators } from '../wire/vendorConnection.ts';
import { type VendorModelOptions, vendorModel, vendorModelValidators } from '../wire/vendorModel.ts';
import { connect } from './anthropicClient.ts';
import { MessagesReply } from './messagesReply.ts';
import { type MessagesOptions, messagesBody, messagesValidators, providerOf } from './messagesRequest.ts';

/** The options of `anthropic`. */
export interface AnthropicOptions extends ClientOptions, MessagesOptions, VendorModelOptions {}

const optionsValidator = object({ ...clientValidators, ...messagesValidators, ...vendorModelValidators });

/**
 * A model with Anthropic's Messages API. Signed thinking is kept in the log and sent back unchanged. Key and base URL
 * (without /v1) come from the options, else from ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL. `headers` are sent with
 * every request, and `fetch` sends it. Printing the model shows no secret. Throws ConfigurationError for a missing key
 * and for an unknown or invalid option.
 */
export function anthropic(modelName: string, options: AnthropicOptions = {}): Model {
  if (typeof modelName !== 'string' || modelName.trim() === '') {
    throw new ConfigurationError("anthropic() needs the model's name, as its server knows it");
  }
  checkOptionsOf('anthropic()', options, optionsValidator);
  const { thinking, maxOutputTokens } = options;
  if (typeof thinking === 'object' && maxOutputTokens !== undefined && maxOutputTokens <= thinking.budgetTokens) {
    throw new ConfigurationError('anthropic(): maxOutputTokens includes thinking, so it must exceed budgetTokens');
  }
  const connection = connect(options);
  const { secrets } = connection;
  const provider = providerOf(modelName);
  const stream: Model['stream'] = (request, { signal }) =>
    httpStream(
      connection.call(
        () => messagesBody(request, modelName, options),
        (write) => new MessagesReply(write, { provider, secrets }),
      ),
      signal,
    );
  return vendorModel(modelName, options, secrets, stream, {
    provider: 'anthropic',
    defaultAccepts: ['image/*', 'application/pdf', 'text/*'],
  });
}
