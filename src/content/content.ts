/**
 * Content as callers give it, and its stored form. Rule: it is judged where it comes in, so that no message is accepted
 * which no model can be shown; what enters a log or a view holds strings only.
 */
import type { Message, StoredPart } from '../../machines/vocabulary.ts';
import { ConfigurationError } from '../errors.ts';
import { fromBase64, IMAGE_TYPES, imageType, toBase64 } from './imageFormat.ts';

export type ContentPart =
  | { type: 'text'; text: string }
  /** `data`: bytes, their base64 form, a data:, http: or https: URL, or the reference that an entry of this log holds. */
  | { type: 'image'; mediaType: string; data: Uint8Array | string | URL };
export type Content = string | ContentPart[];
type WithContent<M extends Message> = M extends Message ? Omit<M, 'content'> & { content: Content } : never;
/** A message as a caller gives it: its images may be bytes. */
export type EarlierMessage = WithContent<Message>;
/** A part that was judged; bytes are a copy of the caller's. */
export type ReadPart = StoredPart | { type: 'image'; mediaType: string; bytes: Uint8Array };

/** Bytes of one image, before it is scaled. */
const IMAGE_BYTES_MOST = 32 * 1_048_576;
const BASE64_MOST = Math.ceil(IMAGE_BYTES_MOST / 3) * 4 + 128;
const URL_MOST = 8_192;
/** Not a browser's `blob:https://…`, which nobody else can open. */
const REFERENCE = /^blob:[\w-]{1,128}(:\w{1,64}\/[\w.+-]{1,64})?$/;

/** Reads a message's content. Throws ConfigurationError for what is neither text nor an image that can be sent. */
export function readContent(content: Content): ReadPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content))
    throw new ConfigurationError(`content must be a string or a list of parts, got ${typeof content}`);
  const parts: ReadPart[] = [];
  // Not `map`, which passes over the holes of a list.
  for (const part of content) parts.push(readPart(part));
  return parts;
}

function readPart(part: ContentPart): ReadPart {
  if (part?.type === 'text' && typeof part.text === 'string') return { type: 'text', text: part.text };
  if (part?.type === 'image') return readImage(part.mediaType, part.data);
  throw new ConfigurationError("a content part must be { type: 'text', text } or { type: 'image', mediaType, data }");
}

/** The same with bytes in base64, at once. */
export const storedContent = (content: Content): StoredPart[] => readContent(content).map(encodedPart);

export const encodedPart = (part: ReadPart): StoredPart =>
  'bytes' in part ? { type: 'image', mediaType: part.mediaType, data: toBase64(part.bytes) } : part;

function refuse(expected: string, got: string): never {
  throw new ConfigurationError(`an image's ${expected}, got ${got}`);
}

function readImage(mediaType: unknown, given: unknown): ReadPart {
  if (typeof mediaType !== 'string' || !IMAGE_TYPES.includes(mediaType))
    refuse(`mediaType must be one of ${IMAGE_TYPES.join(', ')}`, String(JSON.stringify(mediaType)).slice(0, 80));
  if (given instanceof Uint8Array) return imageOf(given);
  const data = given instanceof URL ? given.href : given;
  if (typeof data !== 'string') refuse('data must be a Uint8Array, a string or a URL', typeof data);
  const scheme = /^([a-z][a-z\d+.-]*):/i.exec(data.slice(0, 64))?.[1]?.toLowerCase();
  const isWeb = scheme === 'http' || scheme === 'https';
  if (isWeb && data.length <= URL_MOST && URL.canParse(data)) return { type: 'image', mediaType, data };
  if (REFERENCE.test(data)) return { type: 'image', mediaType, data };
  const head = scheme === 'data' ? /^data:[^,]{0,256};base64,/i.exec(data.slice(0, 300))?.[0] : '';
  if (head !== undefined && (head || !scheme)) {
    if (data.length > BASE64_MOST) tooLarge();
    const bytes = fromBase64(data.slice(head.length));
    if (bytes) return imageOf(bytes);
  }
  const forms = 'data must be bytes, base64, a base64 data: URL, an http: or https: URL, or a reference of this log';
  return refuse(`${forms} (of a file, read the bytes)`, scheme ? `a ${scheme}: URL` : 'another text');
}

const tooLarge = (): never => refuse(`bytes may be ${IMAGE_BYTES_MOST}`, 'more');

/** The bytes say what they are: a wrong media type is put right, what is no image of a known type is refused. */
function imageOf(bytes: Uint8Array): ReadPart {
  if (bytes.length > IMAGE_BYTES_MOST) tooLarge();
  const mediaType = imageType(bytes) ?? refuse('bytes must be PNG, JPEG, GIF or WebP', `${bytes.length} others`);
  return { type: 'image', mediaType, bytes: new Uint8Array(bytes) };
}

/** The text of some content, images left out. */
export function textOf(content: readonly StoredPart[]): string {
  let text = '';
  for (const part of content) if (part.type === 'text') text += part.text;
  return text;
}
