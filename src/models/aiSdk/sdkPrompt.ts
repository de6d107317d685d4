/**
 * A model request in the form of the AI SDK. Invariant: pure. Content that the specification lacks becomes text,
 * images and files of a result follow in a user message, and results of one reply form one message.
 */
import type { LanguageModelV3CallOptions, LanguageModelV3Message, LanguageModelV3Prompt } from '@ai-sdk/provider';
import type { Attachment, Message, StoredPart } from '../../../machines/vocabulary.ts';
import { attachmentLabel, fileName, leftOut, sourceOf } from '../../content/filePart.ts';
import { isLiteral, isObject } from '../../validation.ts';
import type { ModelRequest } from '../model.ts';
import { blocksOf, type Filled, optionsOfCall } from '../wire/replyBlocks.ts';
import { ERROR_MARK, wireArguments, wireName } from '../wire/toolCalls.ts';
import { wireParameters } from '../wire/toolSchema.ts';

/** By media type, the URLs that a provider fetches itself. */
export type SupportedUrls = Record<string, readonly RegExp[]>;

export interface Receiver {
  provider: string;
  /** The version of the specification. */
  version: 'v2' | 'v3' | 'v4';
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

/** A file as base64 text or as a URL. Version 4 names which of them it is. */
function filePart(part: Attachment, data: string | URL, { version }: Receiver): UserPart {
  const filename = part.type === 'file' && part.name !== undefined ? fileName(part) : undefined;
  const fields = { type: 'file' as const, mediaType: part.mediaType, ...(filename !== undefined && { filename }) };
  if (version !== 'v4') return { ...fields, data };
  const tagged = typeof data === 'string' ? { type: 'data', data } : { type: 'url', url: data };
  return { ...fields, data: tagged as unknown as string };
}

function userPart(part: StoredPart, receiver: Receiver): UserPart {
  if (part.type === 'text') return { type: 'text', text: part.text };
  const source = sourceOf(part);
  if (!source) return leftOut(part, 'not available');
  if ('base64' in source) return filePart(part, source.base64, receiver);
  const { url } = source;
  if (fetches(receiver.supportedUrls, part.mediaType, url)) return filePart(part, new URL(url), receiver);
  return {
    type: 'text',
    text: `[${part.type} ${attachmentLabel(part)} at ${url}: not sent, this provider takes no such URL]`,
  };
}

const isBlank = (part: { type: string; text?: string }): boolean => part.type === 'text' && part.text?.trim() === '';

/** Anthropic refuses blank texts. */
function userParts(content: readonly StoredPart[], receiver: Receiver): UserPart[] {
  const parts = content.filter((part) => !isBlank(part)).map((part) => userPart(part, receiver));
  return parts.length > 0 ? parts : [{ type: 'text', text: '[empty message]' }];
}

/** A blank text may have an attachment that its provider needs back. */
const isUseful = (block: Filled): boolean => !isBlank(block) || 'options' in block;

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
  const followers = content.filter((part) => part.type !== 'text');
  const texts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const names = followers.every(({ type }) => type === 'image') ? 'image(s)' : 'file(s)';
  if (followers.length > 0) texts.push(`[${followers.length} ${names} of this result follow in the next user message]`);
  const value = texts.join('\n');
  // A provider may refuse an error without a text.
  const output = isError
    ? { type: 'error-text' as const, value: value.trim() === '' ? ERROR_MARK : value }
    : { type: 'text' as const, value };
  return { type: 'tool-result', toolCallId: callId, toolName: wireName(name), output };
}

/** Returns the images and files of a result as parts of a user message. */
function followersOf({ callId, content }: Result, receiver: Receiver): UserPart[] {
  const followers = content.filter((part) => part.type !== 'text');
  const names = followers.every(({ type }) => type === 'image') ? 'Image(s)' : 'File(s)';
  return followers.length === 0
    ? []
    : [
        { type: 'text', text: `${names} of the result of tool call ${callId}:` },
        ...followers.map((part) => userPart(part, receiver)),
      ];
}

function promptOf({ system, messages }: ModelRequest, receiver: Receiver): LanguageModelV3Prompt {
  const prompt: LanguageModelV3Prompt = system === '' ? [] : [{ role: 'system', content: system }];
  const names = new Map<string, string>();
  let results: ResultPart[] = [];
  let followers: UserPart[] = [];
  const endRound = (): void => {
    if (results.length > 0) prompt.push({ role: 'tool', content: results });
    if (followers.length > 0) prompt.push({ role: 'user', content: followers });
    results = [];
    followers = [];
  };
  for (const message of messages) {
    if (message.role === 'tool') {
      results.push(resultPart(message, names.get(message.callId) ?? ''));
      followers.push(...followersOf(message, receiver));
      continue;
    }
    endRound();
    if (message.role === 'user') {
      prompt.push({ role: 'user', content: userParts(message.content, receiver) });
      continue;
    }
    for (const { callId, name } of message.toolCalls) names.set(callId, name);
    const blocks = blocksOf(receiver.provider, message).filter(isUseful);
    const content = blocks.map((block) => assistantPart(block, receiver.provider));
    if (content.length > 0) prompt.push({ role: 'assistant', content });
  }
  endRound();
  return prompt;
}

/** Replaces halves of characters, because some servers refuse a request that contains one. Objects of a class, such as a URL, stay. */
function wholeTexts<T>(value: T): T {
  if (typeof value === 'string') return value.replace(/\p{Surrogate}/gu, '\ufffd') as T;
  if (Array.isArray(value)) return value.map(wholeTexts) as T;
  if (!isObject(value) || !isLiteral(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [wholeTexts(name), wholeTexts(each)])) as T;
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
    return wholeTexts({
      type: 'function' as const,
      name,
      description,
      inputSchema: wireParameters(parameters) as object,
    });
  });
  return {
    prompt: wholeTexts(promptOf(request, receiver)),
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(request.topP !== undefined && { topP: request.topP }),
    ...(tools.length > 0 && { tools }),
    ...(tools.length > 0 && request.toolChoice !== undefined && { toolChoice: sdkChoice(request.toolChoice) }),
    ...(request.output && {
      responseFormat: { type: 'json' as const, schema: request.output.schema as object, name: request.output.name },
    }),
    ...reasoningOptions(request, receiver, sent),
  };
}

const sdkChoice = (
  choice: NonNullable<ModelRequest['toolChoice']>,
): NonNullable<LanguageModelV3CallOptions['toolChoice']> =>
  typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.tool };

/** Version 4 has an option for the effort. Before it, the providers for OpenAI's APIs read it from their own options. */
function reasoningOptions(
  { reasoningEffort }: ModelRequest,
  { provider, version }: Receiver,
  { providerOptions }: Sent,
): Pick<LanguageModelV3CallOptions, 'providerOptions'> {
  if (reasoningEffort === undefined) return providerOptions ? { providerOptions } : {};
  if (version === 'v4') return { ...(providerOptions && { providerOptions }), ...{ reasoning: reasoningEffort } };
  const [own = provider] = provider.split('.');
  return { providerOptions: { ...providerOptions, [own]: { ...providerOptions?.[own], reasoningEffort } } };
}
