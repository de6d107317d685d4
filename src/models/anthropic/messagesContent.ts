/**
 * Turns messages into those of the Messages API. Invariant: users and assistant alternate, a user begins, no text is blank,
 * and all results of a reply come in the message after it. Blocks that only the provider reads go back unchanged, in their places.
 */
import type { Message, StoredPart } from '../../../machines/vocabulary.ts';
import { decodedText, type FilePart, fileName, leftOut, sourceOf } from '../../content/filePart.ts';
import { isEncoded } from '../../content/imageFormat.ts';
import { isTextType, mediaTypeOf } from '../../content/mediaTypes.ts';
import { blocksOf, type Filled } from '../wire/replyBlocks.ts';
import { ERROR_MARK, wireArguments, wireName } from '../wire/toolCalls.ts';

interface Block {
  readonly [field: string]: unknown;
}
interface WireMessage {
  readonly role: 'user' | 'assistant';
  readonly content: readonly Block[];
}

/** The mark of a block up to which the provider caches the request. */
export const CACHED = { cache_control: { type: 'ephemeral' } } as const;
/** The API allows four marks. Two of them are those of the system text and the tools. */
const CACHED_MESSAGES = 2;

/** Replaces a message of the user without visible text, and comes before a first reply. */
const EMPTY_MESSAGE = { type: 'text', text: '[empty message]' };

/** Returns the messages for the API. `provider`: whose own blocks are sent back. */
export function wireMessages(messages: readonly Message[], provider: string): readonly WireMessage[] {
  const merged: { role: WireMessage['role']; content: Block[] }[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const blocks = blocksFor(message, provider);
    const last = merged.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else if (role === 'user') merged.push({ role, content: blocks.length > 0 ? blocks : [EMPTY_MESSAGE] });
    else if (blocks.length > 0) {
      if (!last) merged.push({ role: 'user', content: [EMPTY_MESSAGE] });
      merged.push({ role, content: blocks });
    }
  }
  return merged;
}

/** Marks the last block of the last messages of the user. */
export function cachedMessages(messages: readonly WireMessage[]): readonly WireMessage[] {
  const users = messages.filter(({ role }) => role === 'user').slice(-CACHED_MESSAGES);
  return messages.map((message) => {
    if (!users.includes(message)) return message;
    const { role, content } = message;
    return { role, content: [...content.slice(0, -1), { ...content.at(-1), ...CACHED }] };
  });
}

function blocksFor(message: Message, provider: string): Block[] {
  if (message.role === 'user') return message.content.flatMap(partBlocks);
  if (message.role === 'assistant') return blocksOf(provider, message).flatMap(replyBlocks);
  const { callId, content, isError } = message;
  const parts = content.flatMap(partBlocks);
  const result = { type: 'tool_result', tool_use_id: wireId(callId) };
  if (!isError) return [{ ...result, ...(parts.length > 0 && { content: parts }) }];
  // The API refuses an error without a text, and one with anything else. Then the mark shows that it is an error.
  if (parts.length === 0) return [{ ...result, content: textBlocks(ERROR_MARK), is_error: true }];
  if (parts.every(({ type }) => type === 'text')) return [{ ...result, content: parts, is_error: true }];
  return [{ ...result, content: [...textBlocks(ERROR_MARK), ...parts] }];
}

/** The API refuses an id of another provider that has other characters. */
const wireId = (callId: string): string => callId.replace(/[^\w-]/g, '_') || 'unnamed';

const textBlocks = (text: string, fields: object = {}): Block[] =>
  text.trim() === '' ? [] : [{ ...fields, type: 'text', text }];

function partBlocks(part: StoredPart): Block[] {
  if (part.type === 'text') return textBlocks(part.text);
  if (part.type === 'file') return [documentBlock(part)];
  const { data, mediaType } = part;
  const inline = /^data:([^,;]{0,256})[^,]{0,256};base64,/i.exec(data.slice(0, 600));
  if (inline) return [imageBlock(inline[1] || mediaType, data.slice(inline[0].length))];
  if (/^https?:/i.test(data)) return [{ type: 'image', source: { type: 'url', url: data } }];
  // This is an unresolved reference, for which a server would refuse the whole request.
  if (!isEncoded(data)) return [leftOut(part, 'not available')];
  return [imageBlock(mediaType, data)];
}

const PDF = 'application/pdf';

/** The API has documents for PDFs and texts. */
function documentBlock(part: FilePart): Block {
  const source = sourceOf(part);
  if (!source) return leftOut(part, 'not available');
  const title = part.name === undefined ? '' : fileName(part);
  const fields = { type: 'document', ...(title !== '' && { title }) };
  const isPdf = mediaTypeOf(part.mediaType) === PDF;
  if ('url' in source) {
    if (isPdf) return { ...fields, source: { type: 'url', url: source.url } };
    return leftOut(part, `at ${source.url}: not sent, this API takes only URLs of images and PDFs`);
  }
  const { base64 } = source;
  if (isPdf) return { ...fields, source: { type: 'base64', media_type: PDF, data: base64 } };
  const text = isTextType(part.mediaType) ? decodedText(base64) : undefined;
  // The API refuses a document without visible text.
  if (text?.trim()) return { ...fields, source: { type: 'text', media_type: 'text/plain', data: text } };
  return leftOut(part, text === undefined ? 'not sent, this API has no part for it' : 'it is empty');
}

const imageBlock = (mediaType: string, data: string): Block => ({
  type: 'image',
  source: { type: 'base64', media_type: mediaType, data },
});

function replyBlocks(block: Filled): Block[] {
  switch (block.type) {
    case 'call': {
      const { call } = block;
      const { callId, name } = call;
      return [{ type: 'tool_use', id: wireId(callId), name: wireName(name), input: wireArguments(call) }];
    }
    case 'executed':
      return [block.part as unknown as Block];
    default:
      return textBlocks(block.text, block.options?.anthropic);
  }
}
