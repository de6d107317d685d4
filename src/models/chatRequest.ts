/**
 * A model request → the body of a chat completions request. Rule: pure, and written as JSON once.
 */
import { wireMessages } from './chatMessages.ts';
import { ModelError, type ModelRequest } from './model.ts';

interface ChatRequestOptions {
  modelName: string;
  /** The name under which this server takes the output limit. */
  limitField: 'max_tokens' | 'max_completion_tokens';
  /** Where the request names no limit. */
  maxOutputTokens: number | undefined;
}

/** The JSON text. Throws ModelError bad-request where the request holds what JSON cannot. */
export function chatRequestBody(request: ModelRequest, options: ChatRequestOptions): string {
  const limit = request.maxOutputTokens ?? options.maxOutputTokens;
  const body = {
    model: options.modelName,
    messages: wireMessages(request.system, request.messages),
    ...(request.tools.length === 0 ? {} : { tools: request.tools.map(wireTool) }),
    ...(limit === undefined ? {} : { [options.limitField]: limit }),
    ...(request.temperature === undefined ? {} : { temperature: request.temperature }),
    stream: true,
    stream_options: { include_usage: true },
  };
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw new ModelError({
      code: 'bad-request',
      message: 'the request cannot be written as JSON: a message or a tool schema is nested too deep or holds no JSON',
      cause,
    });
  }
}

const wireTool = ({ name, description, parameters }: ModelRequest['tools'][number]) => ({
  type: 'function',
  function: { name, description, parameters },
});
