/**
 * Turns a model request into the body of a chat completions request. Invariant: pure. The text of earlier messages,
 * and of the same tools, is reused. Content that the API lacks becomes text: a failed result gets a marker, and
 * images of a result follow in a user message after the results.
 */
import type { Json, Message, StoredPart, ToolCall } from '../../../machines/vocabulary.ts';
import { textOf } from '../../content/content.ts';
import { flag, isList, isObject, nonEmptyText, number, type Validator } from '../../validation.ts';
import { ModelError, type ModelRequest, type WrittenMessages } from '../model.ts';
import { isOfProvider } from '../wire/providerExtra.ts';
import { wireArguments, wireName } from '../wire/toolCalls.ts';
import { isRecord } from '../wire/wireJson.ts';
import { fieldsFor } from './reasoningFields.ts';

/** Options that are sent unchanged with every request. */
export interface SentOptions {
  /** Used if the request names none. */
  temperature?: number;
  topP?: number;
  reasoningEffort?: string;
  /** Sent only with tools. */
  toolChoice?: Json;
  /** Sent only with tools. */
  parallelToolCalls?: boolean;
  seed?: number;
  stop?: string | string[];
  /** Other fields of the body. Fields that this library writes override them. */
  extraBody?: { [key: string]: Json };
}

const isText = (value: unknown): boolean => typeof value === 'string';
const choice: Validator = {
  expected: 'a string or an object',
  test: (value) => isText(value) || (typeof value === 'object' && value !== null),
};
const whole: Validator = { expected: 'a whole number', test: Number.isSafeInteger };
const stops: Validator = {
  expected: 'a string or a list of strings',
  test: (value) => isText(value) || (isList(value) && value.every(isText)),
};
const body: Validator = {
  expected: 'an object',
  test: isObject,
};
/** Each option, its name in the API, and its validator. */
const SENT: readonly (readonly [keyof SentOptions, string, Validator])[] = [
  ['temperature', 'temperature', number(0)],
  ['topP', 'top_p', number(0)],
  ['reasoningEffort', 'reasoning_effort', nonEmptyText],
  ['seed', 'seed', whole],
  ['stop', 'stop', stops],
];
const SENT_WITH_TOOLS: typeof SENT = [
  ['toolChoice', 'tool_choice', choice],
  ['parallelToolCalls', 'parallel_tool_calls', flag],
];
export const sentValidators: readonly (readonly [string, Validator])[] = [
  ...[...SENT, ...SENT_WITH_TOOLS].map(([option, , validator]) => [option, validator] as const),
  ['extraBody', body],
];

const fieldsOf = (sent: SentOptions, table: typeof SENT): { [field: string]: unknown } =>
  Object.fromEntries(table.flatMap(([option, field]) => (sent[option] === undefined ? [] : [[field, sent[option]]])));

/** The constant fields of every request by their API names: without tools, and with tools. */
export function sentFieldsOf(sent: SentOptions) {
  const withoutTools = { ...sent.extraBody, ...fieldsOf(sent, SENT) };
  return { withoutTools, withTools: { ...withoutTools, ...fieldsOf(sent, SENT_WITH_TOOLS) } };
}

interface ChatRequestOptions {
  modelName: string;
  /** The field in which this server expects the output limit. */
  limitField: 'max_tokens' | 'max_completion_tokens';
  /** Used if the request names no limit. */
  maxOutputTokens: number | undefined;
  sent: ReturnType<typeof sentFieldsOf>;
}

/** Returns the JSON text. Throws ModelError bad-request if the request contains something that JSON cannot represent. */
export function chatRequestBody(
  request: ModelRequest,
  options: ChatRequestOptions,
  written: { last?: WrittenMessages } = {},
): string {
  const limit = request.maxOutputTokens ?? options.maxOutputTokens;
  const { sent } = options;
  const hasTools = request.tools.length > 0;
  const body = {
    ...(hasTools ? sent.withTools : sent.withoutTools),
    model: options.modelName,
    messages: undefined,
    ...(hasTools && { tools: undefined }),
    ...(limit === undefined ? {} : { [options.limitField]: limit }),
    ...(request.temperature === undefined ? {} : { temperature: request.temperature }),
    stream: true,
    stream_options: { include_usage: true },
  };
  try {
    // Joined only by `+`: the text of earlier messages is copied once, when it is sent.
    let text = '{';
    for (const [field, value] of Object.entries(body)) {
      let valueText: string | undefined;
      if (value !== undefined) valueText = JSON.stringify(value);
      else if (field === 'messages') valueText = messagesText(request, options.modelName, written);
      else if (field === 'tools') valueText = toolsText(request.tools);
      if (valueText !== undefined) text += `${text === '{' ? '' : ','}${JSON.stringify(field)}:${valueText}`;
    }
    return `${text}}`;
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

const writtenTools = new WeakMap<ModelRequest['tools'], string>();

function toolsText(tools: ModelRequest['tools']): string {
  const existing = writtenTools.get(tools);
  if (existing !== undefined) return existing;
  const text = JSON.stringify(tools.map(wireTool));
  // A list that is not frozen may change, so its text is not cached.
  if (Object.isFrozen(tools)) writtenTools.set(tools, text);
  return text;
}

type WireContent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } };
interface WireToolCall {
  readonly [unknown: string]: unknown;
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}
type WireMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: string | readonly WireContent[] }
  | { readonly role: 'assistant'; readonly content: string | null; readonly tool_calls?: readonly WireToolCall[] }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string };

interface Converted {
  readonly wire: WireMessage;
  /** The images of a tool result, as a separate user message. */
  readonly images: WireMessage | undefined;
}

function startsWith(messages: readonly Message[], first: readonly Message[]): boolean {
  for (let index = 0; index < first.length; index++) if (messages[index] !== first[index]) return false;
  return true;
}

/** Messages never change: the same first messages have the same text. */
function messagesText({ system, messages }: ModelRequest, model: string, written: { last?: WrittenMessages }): string {
  const { last } = written;
  const isSame = last?.model === model && startsWith(messages, last.messages);
  const before = isSame ? last.messages.length : 0;
  const { wire, done, wireDone } = converted(messages, before, model);
  const listText = (list: readonly WireMessage[]): string => JSON.stringify(list).slice(1, -1);
  const joined = (first: string, second: string): string =>
    first === '' || second === '' ? first + second : `${first},${second}`;
  const isDone = wireDone === wire.length;
  const text = joined(isSame ? last.text : '', listText(isDone ? wire : wire.slice(0, wireDone)));
  if (done > before) written.last = { model, messages: messages.slice(0, done), text };
  const head = system === '' ? '' : listText([{ role: 'system', content: system }]);
  return `[${joined(joined(head, text), isDone ? '' : listText(wire.slice(wireDone)))}]`;
}

/** Returns the whole list for the API, the system text first. `model` is the name of the called model. */
export const wireMessages = (system: string, messages: readonly Message[], model = ''): WireMessage[] => [
  ...(system === '' ? [] : [{ role: 'system' as const, content: system }]),
  ...converted(messages, 0, model).wire,
];

/**
 * Converts messages from index `from` on. The first `wireDone` results, of messages before `done`, do not depend on
 * later messages.
 */
function converted(messages: readonly Message[], from: number, model: string) {
  const wire: WireMessage[] = [];
  let waitingImages: WireMessage[] = [];
  let done = from;
  let wireDone = 0;
  for (let index = from; index < messages.length; index++) {
    const message = messages[index] as Message;
    // Results must directly follow their calls, so images wait for the last of them.
    if (waitingImages.length > 0 && message.role !== 'tool') {
      wire.push(...waitingImages);
      waitingImages = [];
    }
    const made = convert(message);
    const fields = fieldsFor(message, model);
    wire.push(fields === undefined ? made.wire : { ...fields, ...made.wire });
    if (made.images !== undefined) waitingImages.push(made.images);
    if (waitingImages.length > 0) continue;
    done = index + 1;
    wireDone = wire.length;
  }
  wire.push(...waitingImages);
  return { wire, done, wireDone };
}

function convert(message: Message): Converted {
  if (message.role === 'user')
    return { wire: { role: 'user', content: userContent(message.content) }, images: undefined };
  if (message.role === 'assistant') {
    const text = textOf(message.content);
    if (message.toolCalls.length === 0) return { wire: { role: 'assistant', content: text }, images: undefined };
    const calls = message.toolCalls.map(wireCall);
    return { wire: { role: 'assistant', content: text === '' ? null : text, tool_calls: calls }, images: undefined };
  }
  return toolResult(message);
}

function userContent(parts: readonly StoredPart[]): string | readonly WireContent[] {
  if (parts.every((part) => part.type === 'text')) {
    return parts.length > 1 ? parts.map(wirePart) : textOf(parts);
  }
  return parts.map(wirePart);
}

function wirePart(part: StoredPart): WireContent {
  if (part.type === 'text') return { type: 'text', text: part.text };
  const { data, mediaType } = part;
  if (/^(https?|data):/i.test(data)) return { type: 'image_url', image_url: { url: data } };
  // Base64 has no colon, so this is an unresolved reference, for which a server would refuse the whole request.
  if (data.slice(0, 256).includes(':')) return { type: 'text', text: `[image ${mediaType}: not available]` };
  return { type: 'image_url', image_url: { url: `data:${mediaType};base64,${data}` } };
}

const ERROR_MARK = '[tool error]';

function toolResult(message: Extract<Message, { role: 'tool' }>): Converted {
  const texts: string[] = message.isError ? [ERROR_MARK] : [];
  const images: WireContent[] = [];
  for (const part of message.content) {
    const converted = wirePart(part);
    if (converted.type === 'text') texts.push(converted.text);
    else images.push(converted);
  }
  const { callId } = message;
  if (images.length > 0) texts.push(`[${images.length} image(s) of this result follow in the next user message]`);
  return {
    wire: { role: 'tool', tool_call_id: callId, content: texts.join('\n') },
    images:
      images.length === 0
        ? undefined
        : {
            role: 'user',
            content: [{ type: 'text', text: `Image(s) of the result of tool call ${callId}:` }, ...images],
          },
  };
}

/** Returns a call with the provider's own fields, which the known fields override. */
function wireCall(call: ToolCall): WireToolCall {
  const { function: ofFunction, ...extra } = isOfProvider(call.extra) ? {} : ownFields(call.extra);
  const name = wireName(call.name);
  return {
    ...extra,
    id: call.callId,
    type: 'function',
    function: { ...ownFields(ofFunction), name, arguments: JSON.stringify(wireArguments(call)) },
  };
}

function ownFields(value: Json | undefined): { [key: string]: Json } {
  if (!isRecord(value)) return {};
  return Object.fromEntries(Object.entries(value as { [key: string]: Json }).filter(([key]) => key !== '__proto__'));
}
