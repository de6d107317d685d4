/**
 * Turns a model request into the body of a Responses request. Invariant: pure. The provider stores nothing, so every
 * request has the whole history, with the items that only the provider reads in their places.
 */
import type { Json, Message, StoredPart } from '../../../machines/vocabulary.ts';
import { type FilePart, fileAsText, fileName, leftOut, sourceOf } from '../../content/filePart.ts';
import { isEncoded } from '../../content/imageFormat.ts';
import { isTextType } from '../../content/mediaTypes.ts';
import { flag, isList, isObject, nonEmptyText, number, type Validator } from '../../validation.ts';
import type { ModelRequest } from '../model.ts';
import { unwritableRequest } from '../wire/httpErrors.ts';
import { blocksOf, type Filled } from '../wire/replyBlocks.ts';
import { ERROR_MARK, wireArguments, wireName } from '../wire/toolCalls.ts';
import { wireParameters } from '../wire/toolSchema.ts';
import { isRecord, wholeCharacters } from '../wire/wireJson.ts';
import { namedSchema } from './answerSchema.ts';

/** Options that are sent with every request. */
export interface ResponsesOptions {
  /** Used if the request names none. */
  temperature?: number;
  /** Used if the request names none. */
  topP?: number;
  /** Used if the request names none, for example `low` or `high`. */
  reasoningEffort?: string;
  /** The form in which the model summarizes its reasoning: `auto`, `concise` or `detailed`. Without it no reasoning is shown. */
  reasoningSummary?: string;
  /** Sent only with tools. */
  toolChoice?: Json;
  /** Tools of the provider, which it executes itself, beside those of the agent. */
  builtInTools?: readonly Json[];
  /** Sent only with tools. */
  parallelToolCalls?: boolean;
  /** Requests with the same key are more likely to find a cached prompt. */
  promptCacheKey?: string;
  /** Other fields of the body. Fields that this library writes override them; lists of `include` are joined. */
  extraBody?: { [key: string]: Json };
}

const choice: Validator = {
  expected: 'a string or an object',
  test: (value) => typeof value === 'string' || isObject(value),
};
const tools: Validator = {
  expected: 'a list of objects, each with a type',
  test: (value) => isList(value) && value.every((tool) => isRecord(tool) && typeof tool.type === 'string'),
};
/** The validator of each option. */
export const responsesValidators = {
  temperature: number(0),
  topP: number(0),
  reasoningEffort: nonEmptyText,
  reasoningSummary: nonEmptyText,
  toolChoice: choice,
  builtInTools: tools,
  parallelToolCalls: flag,
  promptCacheKey: nonEmptyText,
  extraBody: { expected: 'an object', test: isObject } satisfies Validator,
};

/** The name under which a message keeps the data that this model needs back. */
export const providerOf = (modelName: string): string => `openai.responses/${modelName}`;

/** Models that do not reason refuse a request for encrypted reasoning. */
const REASONS_NOT = /^(ft:)?(gpt-3|gpt-4|chatgpt)|-chat\b/;
const ENCRYPTED = 'reasoning.encrypted_content';

function includes(modelName: string, { extraBody }: ResponsesOptions): readonly Json[] {
  const asked = Array.isArray(extraBody?.include) ? extraBody.include : [];
  return REASONS_NOT.test(modelName) || asked.includes(ENCRYPTED) ? asked : [...asked, ENCRYPTED];
}

function reasoningField({ reasoningEffort, reasoningSummary, extraBody }: ResponsesOptions) {
  const fields = {
    ...(isRecord(extraBody?.reasoning) && extraBody.reasoning),
    ...(reasoningEffort !== undefined && { effort: reasoningEffort }),
    ...(reasoningSummary !== undefined && { summary: reasoningSummary }),
  };
  return Object.keys(fields).length > 0 && { reasoning: fields };
}

/** Other fields of `text` may be in the extra body, for example how long an answer is. */
const textField = ({ output }: ModelRequest, extraBody: ResponsesOptions['extraBody']) =>
  output && {
    text: { ...(isRecord(extraBody?.text) && extraBody.text), format: { type: 'json_schema', ...namedSchema(output) } },
  };

/** Returns the JSON text. Throws ModelError bad-request if the request contains something that JSON cannot represent. */
export function responsesBody(
  request: ModelRequest,
  modelName: string,
  options: ResponsesOptions & { maxOutputTokens?: number },
): string {
  const { builtInTools = [], parallelToolCalls, promptCacheKey, extraBody } = options;
  const temperature = request.temperature ?? options.temperature;
  const topP = request.topP ?? options.topP;
  const toolChoice = request.toolChoice === undefined ? options.toolChoice : wireChoice(request.toolChoice);
  const reasoningEffort = request.reasoningEffort ?? options.reasoningEffort;
  const limit = request.maxOutputTokens ?? options.maxOutputTokens;
  const wireTools = [...request.tools.map(wireTool), ...builtInTools];
  const include = includes(modelName, options);
  const body = {
    ...extraBody,
    model: modelName,
    ...(request.system !== '' && { instructions: request.system }),
    input: inputItems(request.messages, providerOf(modelName)),
    ...(wireTools.length > 0 && {
      tools: wireTools,
      ...(toolChoice !== undefined && { tool_choice: toolChoice }),
      ...(parallelToolCalls !== undefined && { parallel_tool_calls: parallelToolCalls }),
    }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(limit !== undefined && { max_output_tokens: limit }),
    ...textField(request, extraBody),
    ...(promptCacheKey !== undefined && { prompt_cache_key: promptCacheKey }),
    ...reasoningField({ ...options, ...(reasoningEffort !== undefined && { reasoningEffort }) }),
    ...(include.length > 0 && { include }),
    store: false,
    stream: true,
  };
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw unwritableRequest(cause);
  }
}

const wireChoice = (choice: NonNullable<ModelRequest['toolChoice']>): Json =>
  typeof choice === 'string' ? choice : { type: 'function', name: choice.tool };

const wireTool = ({ name, description, parameters }: ModelRequest['tools'][number]) => ({
  type: 'function',
  name,
  description,
  parameters: wireParameters(parameters),
  // Strict schemas must require every property, which schemas of tools need not.
  strict: false,
});

type Item = { readonly [field: string]: unknown };

/** Returns the items of a history. `provider`: whose own items are sent back. */
export const inputItems = (messages: readonly Message[], provider: string): readonly Item[] =>
  messages.flatMap((message): readonly Item[] => {
    if (message.role === 'user') return [{ role: 'user', content: message.content.map(inputPart) }];
    if (message.role === 'tool') return [outputItem(message)];
    return blocksOf(provider, message).map(replyItem);
  });

function inputPart(part: StoredPart): Item {
  if (part.type === 'text') return { type: 'input_text', text: part.text };
  const { data, mediaType } = part;
  if (part.type === 'file') return filePart(part);
  if (/^(https?|data):/i.test(data)) return { type: 'input_image', image_url: data, detail: 'auto' };
  // This is an unresolved reference, for which a server would refuse the whole request.
  if (!isEncoded(data)) return inputText(leftOut(part, 'not available'));
  return { type: 'input_image', image_url: `data:${mediaType};base64,${data}`, detail: 'auto' };
}

const inputText = ({ text }: { text: string }): Item => ({ type: 'input_text', text });

function filePart(part: FilePart): Item {
  const source = sourceOf(part);
  if (!source) return inputText(leftOut(part, 'not available'));
  // The API takes no name beside a URL.
  if ('url' in source) return { type: 'input_file', file_url: source.url };
  const { base64 } = source;
  const text = isTextType(part.mediaType) ? fileAsText(part, base64) : undefined;
  if (text) return inputText(text);
  return { type: 'input_file', filename: fileName(part), file_data: `data:${part.mediaType};base64,${base64}` };
}

function outputItem({ callId, content, isError }: Extract<Message, { role: 'tool' }>): Item {
  const marked: readonly StoredPart[] = isError ? [{ type: 'text', text: ERROR_MARK }, ...content] : content;
  const texts = marked.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const output = texts.length === marked.length ? texts.join('\n') : marked.map(inputPart);
  return { type: 'function_call_output', call_id: callId, output };
}

function replyItem(block: Filled): Item {
  switch (block.type) {
    case 'call': {
      const { call } = block;
      const text = wholeCharacters(JSON.stringify(wireArguments(call)));
      return { type: 'function_call', call_id: call.callId, name: wireName(call.name), arguments: text };
    }
    case 'executed':
      return block.part as Item;
    default:
      return {
        ...block.options?.openai,
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: block.text }],
      };
  }
}
