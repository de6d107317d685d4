/**
 * Parts of content as AG-UI and AI SDK pages write and keep them. Rule: an image or a file that came from a page goes back to
 * it with its type, its name and its bytes. A blob reference stays one until its bytes are read.
 */
import type { StoredPart } from '../../../machines/vocabulary.ts';
import type { ContentPart } from '../../content/content.ts';
import { labelledText, sourceOf } from '../../content/filePart.ts';
import { isEncoded, toBase64 } from '../../content/imageFormat.ts';
import { mediaTypeOf } from '../../content/mediaTypes.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import { type Fields, malformed } from '../clientActs.ts';
import { bytesOf } from '../followed/eitherConversation.ts';

/** A part of a message of an AI SDK page. Its fields depend on its type. */
export interface UiPart {
  /** The type of the part. */
  type: string;
  [field: string]: unknown;
}

/** A part of a message of an AG-UI page. */
export interface AgUiPart {
  type: string;
  source?: { type: string; value: string; mimeType: string };
  [field: string]: unknown;
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === 'string';

function attachment(mediaType: string, data: string, name: unknown): ContentPart {
  if (mediaTypeOf(mediaType)?.startsWith('image/')) return { type: 'image', mediaType, data };
  return { type: 'file', mediaType, data, ...(isText(name) && name !== '' && { name }) };
}

/** The media type of a part whose source names none. */
const USUAL: Fields = { image: 'image/png', audio: 'audio/mpeg', video: 'video/mp4', document: 'application/pdf' };

/** Reads a part of a user's message of AG-UI. Parts of type `binary` are those of its earlier versions. */
export function readAgUiPart(part: Fields): ContentPart {
  const { type, text, source, metadata } = part;
  if (type === 'text' && isText(text)) return { type: 'text', text };
  if (type === 'binary' && isText(part.mimeType)) {
    const data = isText(part.data) && part.data !== '' ? part.data : part.url;
    if (isText(data)) return attachment(part.mimeType, data, part.filename);
  }
  if (isText(type) && isText(USUAL[type]) && isFields(source) && source.type !== 'file' && isText(source.value)) {
    const mediaType = isText(source.mimeType) ? source.mimeType : USUAL[type];
    return attachment(mediaType, source.value, isFields(metadata) ? metadata.filename : undefined);
  }
  throw malformed('content of texts, images and files, each with its bytes or its URL');
}

/** Reads a part of a user's message of the AI SDK. Ignores parts of other types: a page may keep data and sources in it. */
export function readUiPart({ type, text, url, mediaType, filename }: Fields): ContentPart[] {
  if (type === 'text') {
    if (isText(text)) return [{ type: 'text', text }];
    throw malformed('a text part with its text');
  }
  if (type !== 'file') return [];
  if (isText(url) && isText(mediaType)) return [attachment(mediaType, url, filename)];
  throw malformed('a file part with its url and mediaType');
}

export function uiPartOf(part: StoredPart): UiPart {
  if (part.type === 'text') return { type: 'text', text: part.text };
  const { mediaType, data } = part;
  const filename = part.type === 'file' ? part.name : undefined;
  const url = isEncoded(data) ? `data:${mediaType};base64,${data}` : data;
  return { type: 'file', mediaType, url, ...(filename !== undefined && { filename }) };
}

function agUiPartOf(part: StoredPart): AgUiPart {
  if (part.type === 'text') return { type: 'text', text: part.text };
  const { mediaType: mimeType, data } = part;
  const [kind = ''] = mimeType.split('/');
  const type = Object.hasOwn(USUAL, kind) ? kind : 'document';
  const source = sourceOf(part);
  const base64 = source && 'base64' in source ? source.base64 : undefined;
  const name = part.type === 'file' ? part.name : undefined;
  return {
    type,
    source: base64 === undefined ? { type: 'url', value: data, mimeType } : { type: 'data', value: base64, mimeType },
    ...(name !== undefined && { metadata: { filename: name } }),
  };
}

/** The content of a user's message of AG-UI: a text where it is only text. */
export const agUiContentOf = (content: readonly StoredPart[]): string | AgUiPart[] =>
  content.every(({ type }) => type === 'text') ? labelledText(content) : content.map(agUiPartOf);

async function base64Of(conversation: Conversation, reference: string): Promise<string | undefined> {
  const bytes = await bytesOf(conversation, reference).catch(() => undefined);
  return bytes && toBase64(bytes);
}

/** Puts the bytes of blobs into the parts. A part whose bytes the store no longer has keeps its reference. */
export async function inlineUiParts(parts: readonly UiPart[], conversation: Conversation): Promise<void> {
  for (const part of parts) {
    if (part.type !== 'file' || typeof part.url !== 'string' || !part.url.startsWith('blob:')) continue;
    const base64 = await base64Of(conversation, part.url);
    if (base64 !== undefined) part.url = `data:${part.mediaType};base64,${base64}`;
  }
}

/** The same for AG-UI. A page cannot show a reference, so a part without bytes becomes a text that names it. */
export async function inlineAgUiParts(content: readonly AgUiPart[], conversation: Conversation): Promise<AgUiPart[]> {
  const parts: AgUiPart[] = [];
  for (const part of content) {
    const { source } = part;
    if (!source?.value.startsWith('blob:')) {
      parts.push(part);
      continue;
    }
    const value = await base64Of(conversation, source.value);
    parts.push(
      value === undefined
        ? { type: 'text', text: `[${source.mimeType}]` }
        : { ...part, source: { ...source, type: 'data', value } },
    );
  }
  return parts;
}
