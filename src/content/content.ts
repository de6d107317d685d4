/**
 * Content as callers pass it, and as a log stores it. Invariant: content is validated on input, so no message is
 * accepted that no model can receive. The store has the bytes before the entry that refers to them. Text alone never
 * waits.
 */

import type { Json, Message, StoredPart, ToolValue } from '../../machines/internal.ts';
import { ConfigurationError, RunchartError, thrownText } from '../errors.ts';
import { onDemand } from '../onDemand.ts';
import type { LogHandle } from '../stores/logStore.ts';
import { fromBase64, IMAGE_TYPES, type ImageLimits, imageType, isEncodedImage, toBase64 } from './imageFormat.ts';
import type { ScaleImage } from './scaleImage.ts';

export type ContentPart =
  | { type: 'text'; text: string }
  /** `data`: bytes, their base64 form, a data:, http: or https: URL, or a reference from an entry of this log. */
  | { type: 'image'; mediaType: string; data: Uint8Array | string | URL };
export type Content = string | ContentPart[];
type WithContent<M extends Message> = M extends Message ? Omit<M, 'content'> & { content: Content } : never;
/** A message as a caller passes it: its images may be bytes. */
export type EarlierMessage = WithContent<Message>;
/** A validated part. Its bytes are a copy of the caller's. */
export type ReadPart = StoredPart | { type: 'image'; mediaType: string; bytes: Uint8Array };

/** Bytes of one image before it is scaled. */
const IMAGE_BYTES_MOST = 32 * 1_048_576;
const BASE64_MOST = Math.ceil(IMAGE_BYTES_MOST / 3) * 4 + 128;
const URL_MOST = 8_192;
/** This excludes a browser's `blob:https://…`, which nobody else can open. */
const REFERENCE = /^blob:[\w-]{1,128}(:\w{1,64}\/[\w.+-]{1,64})?$/;

/** Validates a message's content. Throws ConfigurationError for anything but text and supported images. */
export function readContent(content: Content): ReadPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content))
    throw new ConfigurationError(`content must be a string or a list of parts, got ${typeof content}`);
  const parts: ReadPart[] = [];
  // `map` would skip the holes of a list.
  for (const part of content) parts.push(readPart(part));
  return parts;
}

/**
 * Validates the content of a new message. Throws ConfigurationError if it has neither text nor an image, because it
 * would ask the model nothing.
 */
export function readMessage(content: Content): ReadPart[] {
  const parts = readContent(content);
  if (parts.every((part) => part.type === 'text' && part.text === ''))
    throw new ConfigurationError('a message needs some text or an image; this content is empty');
  return parts;
}

function readPart(part: ContentPart): ReadPart {
  if (part?.type === 'text' && typeof part.text === 'string') return { type: 'text', text: part.text };
  if (part?.type === 'image') return readImage(part.mediaType, part.data);
  throw new ConfigurationError("a content part must be { type: 'text', text } or { type: 'image', mediaType, data }");
}

/** Returns the content with bytes in base64, synchronously. */
export const storedContent = (content: Content): StoredPart[] => readContent(content).map(encodedPart);

export const encodedPart = (part: ReadPart): StoredPart =>
  'bytes' in part ? { type: 'image', mediaType: part.mediaType, data: toBase64(part.bytes) } : part;

function refuse(expected: string, got: string): never {
  throw new ConfigurationError(`an image's ${expected}, got ${got}`);
}

function readImage(mediaType: unknown, source: unknown): ReadPart {
  if (typeof mediaType !== 'string' || !IMAGE_TYPES.includes(mediaType))
    refuse(`mediaType must be one of ${IMAGE_TYPES.join(', ')}`, String(JSON.stringify(mediaType)).slice(0, 80));
  if (source instanceof Uint8Array) return imageOf(source);
  const data = source instanceof URL ? source.href : source;
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

/** The bytes determine the type: a wrong media type is corrected, and bytes of an unknown type are refused. */
function imageOf(bytes: Uint8Array): ReadPart {
  if (bytes.length > IMAGE_BYTES_MOST) tooLarge();
  const mediaType = imageType(bytes) ?? refuse('bytes must be PNG, JPEG, GIF or WebP', `${bytes.length} others`);
  return { type: 'image', mediaType, bytes: new Uint8Array(bytes) };
}

/** Returns the text of the content, without images. */
export function textOf(content: readonly StoredPart[]): string {
  let text = '';
  for (const part of content) if (part.type === 'text') text += part.text;
  return text;
}

const loadPreparer = onDemand(() => import('./imagePreparer.ts'));

/** The part of a model that concerns images. */
type ImageModel = { id: string; imageLimits?: ImageLimits };
type Diagnose = (code: string, detail: Json) => void;

export class Images {
  readonly #handle: LogHandle;
  readonly #scale: ScaleImage | undefined;
  #preparers: import('./imagePreparer.ts').ImagePreparers | undefined;
  /** The last messages that had no image. */
  #text: readonly Message[] = [];

  constructor(handle: LogHandle, scale?: ScaleImage) {
    this.#handle = handle;
    this.#scale = scale;
  }

  /** Returns the parts as a log stores them, synchronously if no store is needed. Rejects if the store rejects. */
  keep(parts: readonly ReadPart[]): StoredPart[] | Promise<StoredPart[]> {
    const { putBlob } = this.#handle;
    const needsStore = (part: ReadPart): boolean => ('bytes' in part ? putBlob !== undefined : isReference(part));
    return parts.some(needsStore) ? this.#storeParts(parts) : parts.map(encodedPart);
  }

  /**
   * Does the same for results of tools and plugins. If the store refuses an image, a diagnostic reports it and the
   * rest is kept.
   */
  keepResult(parts: StoredPart[], diagnose: Diagnose): StoredPart[] | Promise<StoredPart[]> {
    return hasImage(parts) ? this.#keepWherePossible(parts, diagnose) : parts;
  }

  async #keepWherePossible(parts: readonly StoredPart[], diagnose: Diagnose): Promise<StoredPart[]> {
    const kept: StoredPart[] = [];
    for (const part of parts) {
      try {
        const isNew = part.type === 'image' && isEncodedImage(part.data);
        kept.push(...(isNew ? await this.keep(readContent([part])) : [part]));
      } catch (error) {
        diagnose('image_not_stored', { message: thrownText(error) });
        kept.push({ type: 'text', text: '[An image belongs here. It could not be stored.]' });
      }
    }
    return kept;
  }

  /** Returns the messages for a model: the same list if none has an image. */
  shownTo(
    model: ImageModel,
    messages: readonly Message[],
    signal: AbortSignal,
    diagnose: Diagnose,
  ): readonly Message[] | Promise<Message[]> {
    // Messages never change, so those without an image are not searched again.
    if (!messages.every((message, index) => message === this.#text[index] || !hasImage(message.content)))
      return this.#prepareImages(model, messages, signal, diagnose);
    this.#text = messages;
    return messages;
  }

  /** Decoding and scaling are loaded with the first image. */
  async #prepareImages(model: ImageModel, messages: readonly Message[], signal: AbortSignal, diagnose: Diagnose) {
    const { ImagePreparers } = await loadPreparer();
    this.#preparers ??= new ImagePreparers(this.#handle, this.#scale);
    return this.#preparers.prepare(model, messages, signal, diagnose);
  }

  async #storeParts(parts: readonly ReadPart[]): Promise<StoredPart[]> {
    const kept: StoredPart[] = [];
    for (const part of parts) {
      if ('bytes' in part) kept.push(await this.#putBytes(part.mediaType, part.bytes));
      else {
        if (isReference(part)) await this.#checkReference(part.data);
        kept.push(part);
      }
    }
    return kept;
  }

  async #putBytes(mediaType: string, bytes: Uint8Array): Promise<StoredPart> {
    const data = await this.#handle.putBlob?.(bytes, mediaType);
    if (typeof data !== 'string' || data === '' || data.length > 1_024)
      throw new RunchartError('store', 'putBlob must answer with a reference, a text of at most 1024 characters');
    return { type: 'image', mediaType, data };
  }

  async #checkReference(reference: string): Promise<void> {
    if ((await this.#handle.getBlob?.(reference)) === undefined)
      throw new RunchartError('store', `no image ${reference} beside this log: give its bytes`);
  }
}

/** Returns true if a tool's result has an image. */
export const holdsImage = (value: ToolValue): value is Exclude<ToolValue, { kind: 'pending' }> =>
  value.kind !== 'pending' && hasImage(value.content);
const hasImage = (content: readonly ReadPart[]): boolean => content.some(({ type }) => type === 'image');
const isReference = (part: StoredPart): part is Extract<StoredPart, { type: 'image' }> =>
  part.type === 'image' && part.data.startsWith('blob:');
