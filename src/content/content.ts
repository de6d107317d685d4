/**
 * Content as callers give it, and as a log holds it. Rule: content is judged where it comes in, so that no message is accepted
 * which no model can be shown; bytes are in the store before the entry that names them; without images nothing waits.
 */

import type { Json, Message, StoredPart, ToolValue } from '../../machines/internal.ts';
import { ConfigurationError, RunchartError, thrownText } from '../errors.ts';
import { onDemand } from '../onDemand.ts';
import type { LogHandle } from '../stores/store.ts';
import { fromBase64, IMAGE_TYPES, type ImageLimits, imageType, isEncodedImage, toBase64 } from './imageFormat.ts';
import type { ScaleImage } from './scale.ts';

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

const loadPreparer = onDemand(() => import('./imagePreparer.ts'));

/** A model, as far as its images are concerned. */
type ImageModel = { id: string; imageLimits?: ImageLimits };
type Diagnose = (code: string, detail: Json) => void;

export class Images {
  readonly #handle: LogHandle;
  readonly #scale: ScaleImage | undefined;
  #preparers: import('./imagePreparer.ts').ImagePreparers | undefined;
  /** Messages without an image. */
  #text: readonly Message[] = [];

  constructor(handle: LogHandle, scale?: ScaleImage) {
    this.#handle = handle;
    this.#scale = scale;
  }

  /** The parts as a log may hold them; at once where no store has to be asked. Rejects where the store does. */
  keep(parts: readonly ReadPart[]): StoredPart[] | Promise<StoredPart[]> {
    const { putBlob } = this.#handle;
    const asks = (part: ReadPart): boolean => ('bytes' in part ? putBlob !== undefined : isReference(part));
    return parts.some(asks) ? this.#stored(parts) : parts.map(encodedPart);
  }

  /** The same for what a tool or a plugin made: an image that the store does not take is told, and the rest is kept. */
  keepResult(parts: StoredPart[], diagnose: Diagnose): StoredPart[] | Promise<StoredPart[]> {
    return hasImage(parts) ? this.#keptAsFarAsPossible(parts, diagnose) : parts;
  }

  async #keptAsFarAsPossible(parts: readonly StoredPart[], diagnose: Diagnose): Promise<StoredPart[]> {
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

  /** Messages as the model takes them: the same list where none holds an image. */
  shownTo(
    model: ImageModel,
    messages: readonly Message[],
    signal: AbortSignal,
    diagnose: Diagnose,
  ): readonly Message[] | Promise<Message[]> {
    // Messages are never changed: those that were seen to hold no image are not looked into again.
    if (!messages.every((message, index) => message === this.#text[index] || !hasImage(message.content)))
      return this.#prepared(model, messages, signal, diagnose);
    this.#text = messages;
    return messages;
  }

  /** Decoding and scaling are loaded when the first image is to be shown. */
  async #prepared(model: ImageModel, messages: readonly Message[], signal: AbortSignal, diagnose: Diagnose) {
    const { ImagePreparers } = await loadPreparer();
    this.#preparers ??= new ImagePreparers(this.#handle, this.#scale);
    return this.#preparers.shown(model, messages, signal, diagnose);
  }

  async #stored(parts: readonly ReadPart[]): Promise<StoredPart[]> {
    const kept: StoredPart[] = [];
    for (const part of parts) {
      if ('bytes' in part) kept.push(await this.#put(part.mediaType, part.bytes));
      else {
        if (isReference(part)) await this.#mustHave(part.data);
        kept.push(part);
      }
    }
    return kept;
  }

  async #put(mediaType: string, bytes: Uint8Array): Promise<StoredPart> {
    const data = await this.#handle.putBlob?.(bytes, mediaType);
    if (typeof data !== 'string' || data === '' || data.length > 1_024)
      throw new RunchartError('store', 'putBlob must answer with a reference, a text of at most 1024 characters');
    return { type: 'image', mediaType, data };
  }

  async #mustHave(reference: string): Promise<void> {
    if ((await this.#handle.getBlob?.(reference)) === undefined)
      throw new RunchartError('store', `no image ${reference} beside this log: give its bytes`);
  }
}

/** Of a tool's answer. */
export const holdsImage = (value: ToolValue): value is Exclude<ToolValue, { kind: 'pending' }> =>
  value.kind !== 'pending' && hasImage(value.content);
const hasImage = (content: readonly ReadPart[]): boolean => content.some(({ type }) => type === 'image');
const isReference = (part: StoredPart): part is Extract<StoredPart, { type: 'image' }> =>
  part.type === 'image' && part.data.startsWith('blob:');
