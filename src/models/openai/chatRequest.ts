/**
 * Turns a model request into the body of a chat completions request. Invariant: pure. The text of earlier messages,
 * and of the same tools, is reused. Content that the API lacks becomes text: a failed result gets a marker, and
 * images and files of a result follow in a user message after the results.
 */
import type { Json, Message, StoredPart, ToolCall } from '../../../machines/vocabulary.ts';
import { textOf } from '../../content/content.ts';
import { type FilePart, fileAsText, fileName, leftOut, sourceOf } from '../../content/filePart.ts';
import { isEncoded } from '../../content/imageFormat.ts';
import { isTextType, mediaTypeOf } from '../../content/mediaTypes.ts';
import { flag, isList, isObject, nonEmptyText, number, type Validator } from '../../validation.ts';
import type { ModelRequest, WrittenMessages } from '../model.ts';
import { unwritableRequest } from '../wire/httpErrors.ts';
import { ERROR_MARK, wireArguments, wireName } from '../wire/toolCalls.ts';
import { wireParameters } from '../wire/toolSchema.ts';
import { isRecord, wholeCharacters } from '../wire/wireJson.ts';
import { namedSchema } from './answerSchema.ts';
import { callFieldsFor, fieldsFor } from './reasoningFields.ts';
import {
  BETWEEN,
  type ChatModel,
  isMistral,
  isMistralHost,
  mistralId,
  needsSignature,
  signedCalls,
} from './serverRules.ts';

/** Options that are sent unchanged with every request. */
export interface SentOptions {
  /** Used if the request names none. */
  temperature?: number;
  /** Used if the request names none. */
  topP?: number;
  /** Used if the request names none, for example `low` or `high`. */
  reasoningEffort?: string;
  /** Sent only with tools. */
  toolChoice?: Json;
  /** Sent only with tools. */
  parallelToolCalls?: boolean;
  /** A seed for servers that sample with one. */
  seed?: number;
  /** Texts at which the reply ends. */
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
  /** The origin of its server. */
  server?: string;
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
    ...settingsFields(request, hasTools),
    ...(request.output && { response_format: { type: 'json_schema', json_schema: namedSchema(request.output) } }),
    stream: true,
    ...(!isMistralHost(options.server ?? '') && { stream_options: { include_usage: true } }),
  };
  try {
    // `+` joins the texts without a copy. The text of earlier messages is copied once, when it is sent.
    let text = '{';
    for (const [field, value] of Object.entries(body)) {
      let valueText: string | undefined;
      if (value !== undefined) valueText = JSON.stringify(value);
      else if (field === 'messages')
        valueText = messagesText(request, { model: options.modelName, server: options.server ?? '' }, written);
      else if (field === 'tools') valueText = toolsText(request.tools);
      if (valueText !== undefined) text += `${text === '{' ? '' : ','}${JSON.stringify(field)}:${valueText}`;
    }
    return `${text}}`;
  } catch (cause) {
    throw unwritableRequest(cause);
  }
}

/** The settings of the request, over those of the model. */
const settingsFields = (
  { temperature, topP, reasoningEffort, toolChoice }: ModelRequest,
  hasTools: boolean,
): { [field: string]: unknown } => ({
  ...(temperature !== undefined && { temperature }),
  ...(topP !== undefined && { top_p: topP }),
  ...(reasoningEffort !== undefined && { reasoning_effort: reasoningEffort }),
  ...(hasTools && toolChoice !== undefined && { tool_choice: wireChoice(toolChoice) }),
});

const wireChoice = (choice: NonNullable<ModelRequest['toolChoice']>): unknown =>
  typeof choice === 'string' ? choice : { type: 'function', function: { name: choice.tool } };

const wireTool = ({ name, description, parameters }: ModelRequest['tools'][number]) => ({
  type: 'function',
  function: { name, description, parameters: wireParameters(parameters) },
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
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
  | { readonly type: 'file'; readonly file: { readonly filename: string; readonly file_data: string } }
  | { readonly type: 'input_audio'; readonly input_audio: { readonly data: string; readonly format: 'wav' | 'mp3' } };
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
  /** The images and files of a tool result, as a separate user message. */
  readonly followers: WireMessage | undefined;
}

function startsWith(messages: readonly Message[], first: readonly Message[]): boolean {
  for (let index = 0; index < first.length; index++) if (messages[index] !== first[index]) return false;
  return true;
}

/** Messages never change: the same first messages have the same text. */
function messagesText(
  { system, messages }: ModelRequest,
  receiver: ChatModel,
  written: { last?: WrittenMessages },
): string {
  const { last } = written;
  const model = JSON.stringify([receiver.model, receiver.server]);
  const isSame = last?.model === model && startsWith(messages, last.messages);
  const before = isSame ? last.messages.length : 0;
  const { wire, done, wireDone } = converted(messages, before, receiver);
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
export const wireMessages = (system: string, messages: readonly Message[], model = '', server = ''): WireMessage[] => [
  ...(system === '' ? [] : [{ role: 'system' as const, content: system }]),
  ...converted(messages, 0, { model, server }).wire,
];

/**
 * Converts messages from index `from` on. The first `wireDone` results, of messages before `done`, do not depend on
 * later messages.
 */
function converted(messages: readonly Message[], from: number, receiver: ChatModel) {
  const wire: WireMessage[] = [];
  const mayFollow = !isMistral(receiver);
  let waitingFollowers: WireMessage[] = [];
  let done = from;
  let wireDone = 0;
  let last: WireMessage['role'] | undefined = messages[from - 1]?.role;
  const push = (message: WireMessage): void => {
    if (!mayFollow && last === 'tool' && message.role === 'user') wire.push(BETWEEN);
    wire.push(message);
    last = message.role;
  };
  for (let index = from; index < messages.length; index++) {
    const message = messages[index] as Message;
    // Results must directly follow their calls, so images and files wait for the last of them.
    if (waitingFollowers.length > 0 && message.role !== 'tool') {
      waitingFollowers.forEach(push);
      waitingFollowers = [];
    }
    const made = convert(message, receiver);
    const fields = fieldsFor(message, receiver);
    push(fields === undefined ? made.wire : { ...fields, ...made.wire });
    if (made.followers !== undefined) waitingFollowers.push(made.followers);
    if (waitingFollowers.length > 0) continue;
    done = index + 1;
    wireDone = wire.length;
  }
  waitingFollowers.forEach(push);
  return { wire, done, wireDone };
}

function convert(message: Message, receiver: ChatModel): Converted {
  if (message.role === 'user')
    return { wire: { role: 'user', content: userContent(message.content) }, followers: undefined };
  if (message.role === 'assistant') {
    const text = textOf(message.content);
    if (message.toolCalls.length === 0) return { wire: { role: 'assistant', content: text }, followers: undefined };
    const own = message.toolCalls.map((call) => wireCall(call, receiver));
    const calls = needsSignature(receiver) ? signedCalls(own) : own;
    return { wire: { role: 'assistant', content: text === '' ? null : text, tool_calls: calls }, followers: undefined };
  }
  return toolResult(message, receiver);
}

const wireId = (callId: string, receiver: ChatModel): string => (isMistral(receiver) ? mistralId(callId) : callId);

function userContent(parts: readonly StoredPart[]): string | readonly WireContent[] {
  if (parts.every((part) => part.type === 'text')) {
    return parts.length > 1 ? parts.map(wirePart) : textOf(parts);
  }
  return parts.map(wirePart);
}

function wirePart(part: StoredPart): WireContent {
  if (part.type === 'text') return { type: 'text', text: part.text };
  if (part.type === 'file') return filePart(part);
  const { data, mediaType } = part;
  if (/^(https?|data):/i.test(data)) return { type: 'image_url', image_url: { url: data } };
  // This is an unresolved reference, for which a server would refuse the whole request.
  if (!isEncoded(data)) return leftOut(part, 'not available');
  return { type: 'image_url', image_url: { url: `data:${mediaType};base64,${data}` } };
}

/** The formats of `input_audio` by media type. */
const SOUNDS: { readonly [mediaType: string]: 'wav' | 'mp3' } = {
  ...{ 'audio/wav': 'wav', 'audio/x-wav': 'wav', 'audio/wave': 'wav', 'audio/vnd.wave': 'wav' },
  ...{ 'audio/mpeg': 'mp3', 'audio/mp3': 'mp3' },
};
/** The media types that the API has parts for. */
export const wireTypes = { documents: ['image/*', 'application/pdf'], sounds: Object.keys(SOUNDS) } as const;

/** The API has parts for files and sounds by their bytes. A text is sent as text. */
function filePart(part: FilePart): WireContent {
  const source = sourceOf(part);
  if (!source) return leftOut(part, 'not available');
  if ('url' in source) return leftOut(part, `at ${source.url}: not sent, this API takes no URL of a file`);
  const { base64 } = source;
  const mediaType = mediaTypeOf(part.mediaType) ?? part.mediaType;
  const format = Object.hasOwn(SOUNDS, mediaType) ? SOUNDS[mediaType] : undefined;
  if (format) return { type: 'input_audio', input_audio: { data: base64, format } };
  const text = isTextType(mediaType) ? fileAsText(part, base64) : undefined;
  return text ?? { type: 'file', file: { filename: fileName(part), file_data: `data:${mediaType};base64,${base64}` } };
}

/** Names the parts of a result that follow it in another message. */
const namesOf = (followers: readonly WireContent[]): string =>
  followers.every(({ type }) => type === 'image_url') ? 'image(s)' : 'file(s)';

function toolResult(message: Extract<Message, { role: 'tool' }>, receiver: ChatModel): Converted {
  const texts: string[] = message.isError ? [ERROR_MARK] : [];
  const followers: WireContent[] = [];
  for (const part of message.content) {
    const converted = wirePart(part);
    if (converted.type === 'text') texts.push(converted.text);
    else followers.push(converted);
  }
  const callId = wireId(message.callId, receiver);
  const names = namesOf(followers);
  if (followers.length > 0) texts.push(`[${followers.length} ${names} of this result follow in the next user message]`);
  return {
    wire: { role: 'tool', tool_call_id: callId, content: texts.join('\n') },
    followers:
      followers.length === 0
        ? undefined
        : {
            role: 'user',
            content: [
              {
                type: 'text',
                text: `${names === 'image(s)' ? 'Image(s)' : 'File(s)'} of the result of tool call ${callId}:`,
              },
              ...followers,
            ],
          },
  };
}

/** Returns a call with the provider's own fields, which the known fields override. */
function wireCall(call: ToolCall, receiver: ChatModel): WireToolCall {
  const { function: ofFunction, ...extra } = ownFields(callFieldsFor(call.extra, receiver));
  const name = wireName(call.name);
  return {
    ...extra,
    id: wireId(call.callId, receiver),
    type: 'function',
    function: { ...ownFields(ofFunction), name, arguments: wholeCharacters(JSON.stringify(wireArguments(call))) },
  };
}

function ownFields(value: Json | undefined): { [key: string]: Json } {
  if (!isRecord(value)) return {};
  return Object.fromEntries(Object.entries(value as { [key: string]: Json }).filter(([key]) => key !== '__proto__'));
}
