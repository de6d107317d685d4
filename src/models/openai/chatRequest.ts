/**
 * Turns a model request into the body of a chat completions request. Rule: pure; the text of messages that were sent
 * before, and of the same tools, is used again. What the wire cannot say becomes text: a failed result gets a marker, and images of a result
 * follow in a user message after the results.
 */
import type { Json, Message, StoredPart, ToolCall } from '../../../machines/vocabulary.ts';
import { textOf } from '../../content/content.ts';
import { flag, isList, isObject, nonEmptyText, number, type Validator } from '../../validation.ts';
import { ModelError, type ModelRequest, type WrittenMessages } from '../model.ts';
import { isOfProvider, wireArguments, wireName } from '../sentBack.ts';
import { isRecord } from '../wireJson.ts';
import { fieldsFor } from './keptFields.ts';

/** What is sent with every request, as it is. */
export interface SentOptions {
  /** Where the request names none. */
  temperature?: number;
  topP?: number;
  reasoningEffort?: string;
  /** Sent where tools are. */
  toolChoice?: Json;
  /** Sent where tools are. */
  parallelToolCalls?: boolean;
  seed?: number;
  stop?: string | string[];
  /** Any other fields of the body. Those that this library writes are written over them. */
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
/** Each option, its name on the wire and what it takes. */
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

/** What is sent with every request, by its names on the wire: without tools, and with some. */
export function sentFieldsOf(sent: SentOptions) {
  const withoutTools = { ...sent.extraBody, ...fieldsOf(sent, SENT) };
  return { withoutTools, withTools: { ...withoutTools, ...fieldsOf(sent, SENT_WITH_TOOLS) } };
}

interface ChatRequestOptions {
  modelName: string;
  /** The name under which this server takes the output limit. */
  limitField: 'max_tokens' | 'max_completion_tokens';
  /** Where the request names no limit. */
  maxOutputTokens: number | undefined;
  sent: ReturnType<typeof sentFieldsOf>;
}

/** The JSON text. Throws ModelError bad-request where the request holds what JSON cannot. */
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
    // Joined by `+` alone: the text of earlier messages is copied once, when it is sent.
    let text = '{';
    for (const [field, value] of Object.entries(body)) {
      let of: string | undefined;
      if (value !== undefined) of = JSON.stringify(value);
      else if (field === 'messages') of = messagesText(request, options.modelName, written);
      else if (field === 'tools') of = toolsText(request.tools);
      if (of !== undefined) text += `${text === '{' ? '' : ','}${JSON.stringify(field)}:${of}`;
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
  const known = writtenTools.get(tools);
  if (known !== undefined) return known;
  const text = JSON.stringify(tools.map(wireTool));
  // A list that may still change has another text the next time.
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
  /** The images of a tool result, as a user message of their own. */
  readonly images: WireMessage | undefined;
}

function startsWith(messages: readonly Message[], first: readonly Message[]): boolean {
  for (let index = 0; index < first.length; index++) if (messages[index] !== first[index]) return false;
  return true;
}

/** Messages are never changed: where the same ones come first, their text is the same. */
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

/** The whole list as the wire takes it, the system text first. `model`: the name of the one that is asked. */
export const wireMessages = (system: string, messages: readonly Message[], model = ''): WireMessage[] => [
  ...(system === '' ? [] : [{ role: 'system' as const, content: system }]),
  ...converted(messages, 0, model).wire,
];

/** Messages from the one at `from` on. Of them, up to message `done`, so many (`wireDone`) stay what they are whatever follows. */
function converted(messages: readonly Message[], from: number, model: string) {
  const wire: WireMessage[] = [];
  let held: WireMessage[] = [];
  let done = from;
  let wireDone = 0;
  for (let index = from; index < messages.length; index++) {
    const message = messages[index] as Message;
    // Results must follow their calls without a gap, so images wait for the last of them.
    if (held.length > 0 && message.role !== 'tool') {
      wire.push(...held);
      held = [];
    }
    const made = convert(message);
    const fields = fieldsFor(message, model);
    wire.push(fields === undefined ? made.wire : { ...fields, ...made.wire });
    if (made.images !== undefined) held.push(made.images);
    if (held.length > 0) continue;
    done = index + 1;
    wireDone = wire.length;
  }
  wire.push(...held);
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
  // Base64 has no colon: this is a reference nobody resolved, and a server would refuse the whole request for it.
  if (data.slice(0, 256).includes(':')) return { type: 'text', text: `[image ${mediaType}: not available]` };
  return { type: 'image_url', image_url: { url: `data:${mediaType};base64,${data}` } };
}

const ERROR_MARK = '[tool error]';

function toolResult(message: Extract<Message, { role: 'tool' }>): Converted {
  const texts: string[] = message.isError ? [ERROR_MARK] : [];
  const images: WireContent[] = [];
  for (const part of message.content) {
    const said = wirePart(part);
    if (said.type === 'text') texts.push(said.text);
    else images.push(said);
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

/** A call as it came: the provider's own fields merged back in, below the known ones. */
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
