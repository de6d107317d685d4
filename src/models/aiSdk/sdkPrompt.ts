/**
 * A model request in the form of the AI SDK. Invariant: pure. Content that the specification lacks becomes text,
 * images of a result follow in a user message, and results of one reply form one message.
 */
import type { LanguageModelV3CallOptions, LanguageModelV3Message, LanguageModelV3Prompt } from '@ai-sdk/provider';
import type { Message, StoredPart } from '../../../machines/vocabulary.ts';
import type { ModelRequest } from '../model.ts';
import { wireArguments, wireName } from '../wire/toolCalls.ts';
import { blocksOf, type Filled, optionsOfCall } from './replyBlocks.ts';

/** By media type, the URLs that a provider fetches itself. */
export type SupportedUrls = Record<string, readonly RegExp[]>;

export interface Receiver {
  provider: string;
  supportedUrls: SupportedUrls;
}

type UserPart = Extract<LanguageModelV3Message, { role: 'user' }>['content'][number];
type AssistantPart = Extract<LanguageModelV3Message, { role: 'assistant' }>['content'][number];
type ResultPart = Extract<LanguageModelV3Message, { role: 'tool' }>['content'][number];

function fetches(supported: SupportedUrls, mediaType: string, url: string): boolean {
  const type = mediaType.toLowerCase();
  return Object.entries(supported).some(([pattern, urls]) => {
    const covered = ['*', '*/*', type, `${type.split('/')[0]}/*`].includes(pattern.toLowerCase());
    return covered && urls.some((urlPattern) => urlPattern.test(url.toLowerCase()));
  });
}

function userPart(part: StoredPart, { supportedUrls }: Receiver): UserPart {
  if (part.type === 'text') return { type: 'text', text: part.text };
  const { mediaType, data } = part;
  const inline = /^data:[^,]{0,256};base64,/i.exec(data.slice(0, 300))?.[0];
  if (inline) return { type: 'file', mediaType, data: data.slice(inline.length) };
  if (/^https?:/i.test(data)) {
    if (fetches(supportedUrls, mediaType, data)) return { type: 'file', mediaType, data: new URL(data) };
    return { type: 'text', text: `[image ${mediaType} at ${data}: not sent, this provider takes no such URL]` };
  }
  // Base64 has no colon, so this is an unresolved reference.
  if (data.slice(0, 256).includes(':')) return { type: 'text', text: `[image ${mediaType}: not available]` };
  return { type: 'file', mediaType, data };
}

function assistantPart(block: Filled, provider: string): AssistantPart {
  if (block.type === 'executed') return block.part as unknown as AssistantPart;
  if (block.type !== 'call') {
    const { type, text, options } = block;
    return options ? { type, text, providerOptions: options } : { type, text };
  }
  const { call } = block;
  const options = optionsOfCall(provider, call);
  return {
    ...{ type: 'tool-call', toolCallId: call.callId, toolName: wireName(call.name), input: wireArguments(call) },
    ...(options && { providerOptions: options }),
  };
}

type Result = Extract<Message, { role: 'tool' }>;

function resultPart({ callId, content, isError }: Result, name: string): ResultPart {
  const images = content.filter((part) => part.type === 'image').length;
  const texts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  if (images > 0) texts.push(`[${images} image(s) of this result follow in the next user message]`);
  const output = { type: isError ? ('error-text' as const) : ('text' as const), value: texts.join('\n') };
  return { type: 'tool-result', toolCallId: callId, toolName: wireName(name), output };
}

/** Returns the images of a result as parts of a user message. */
function imagesOf({ callId, content }: Result, receiver: Receiver): UserPart[] {
  const images = content.filter((part) => part.type === 'image').map((part) => userPart(part, receiver));
  return images.length === 0
    ? []
    : [{ type: 'text', text: `Image(s) of the result of tool call ${callId}:` }, ...images];
}

function promptOf({ system, messages }: ModelRequest, receiver: Receiver): LanguageModelV3Prompt {
  const prompt: LanguageModelV3Prompt = system === '' ? [] : [{ role: 'system', content: system }];
  const names = new Map<string, string>();
  let results: ResultPart[] = [];
  let images: UserPart[] = [];
  const endRound = (): void => {
    if (results.length > 0) prompt.push({ role: 'tool', content: results });
    if (images.length > 0) prompt.push({ role: 'user', content: images });
    results = [];
    images = [];
  };
  for (const message of messages) {
    if (message.role === 'tool') {
      results.push(resultPart(message, names.get(message.callId) ?? ''));
      images.push(...imagesOf(message, receiver));
      continue;
    }
    endRound();
    if (message.role === 'user') {
      prompt.push({ role: 'user', content: message.content.map((part) => userPart(part, receiver)) });
      continue;
    }
    for (const { callId, name } of message.toolCalls) names.set(callId, name);
    const blocks = blocksOf(receiver.provider, message);
    prompt.push({ role: 'assistant', content: blocks.map((block) => assistantPart(block, receiver.provider)) });
  }
  endRound();
  return prompt;
}

export interface Sent {
  temperature?: number;
  maxOutputTokens?: number;
  providerOptions?: NonNullable<LanguageModelV3CallOptions['providerOptions']>;
}

export function callOptions(request: ModelRequest, receiver: Receiver, sent: Sent): LanguageModelV3CallOptions {
  const temperature = request.temperature ?? sent.temperature;
  const maxOutputTokens = request.maxOutputTokens ?? sent.maxOutputTokens;
  const tools = request.tools.map(({ name, description, parameters }) => {
    // The specification declares JSON Schema as a closed type.
    return { type: 'function' as const, name, description, inputSchema: parameters as object };
  });
  return {
    prompt: promptOf(request, receiver),
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(tools.length > 0 && { tools }),
    ...(sent.providerOptions && { providerOptions: sent.providerOptions }),
  };
}
