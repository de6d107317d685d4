/**
 * Content as callers pass it, and as a log stores it. Invariant: content is validated on input, so no message is
 * accepted that no model can receive. The store has the bytes before the entry that refers to them. Text alone never
 * waits.
 */

import type { Attachment, LogEntry, Message, StoredPart, ToolValue } from '../../machines/internal.ts';
import { ConfigurationError, MediaTypeError, RunchartError, thrownText } from '../errors.ts';
import { onDemand } from '../onDemand.ts';
import type { LogHandle } from '../stores/logStore.ts';
import { display } from '../validation.ts';
import { type AttachmentModel, fromBase64, IMAGE_TYPES, imageType, toBase64 } from './imageFormat.ts';
import { isAcceptable, isTextType, mediaTypeOf } from './mediaTypes.ts';
import type { ScaleImage } from './scaleImage.ts';
import type { Diagnose, NewAttachment } from './storedAttachments.ts';

/** A part of a message that you send: a text, an image or a file. */
export type ContentPart =
  | { type: 'text'; text: string }
  /** `data`: bytes, their base64 form, a data:, http: or https: URL, or a reference from an entry of this log. */
  | { type: 'image'; mediaType: string; data: Uint8Array | string | URL }
  /** A PDF, a text, a sound and the like; `data` as for an image. `name`: the file's name for people. */
  | { type: 'file'; mediaType: string; name?: string; data: Uint8Array | string | URL };
/** The content of a message: a text, or a list of parts. */
export type Content = string | ContentPart[];
/** An object with content for a model. */
type WithContent<M extends Message> = M extends Message ? Omit<M, 'content'> & { content: Content } : never;
/** A message as a caller passes it: its images and files may be bytes. */
export type EarlierMessage = WithContent<Message>;
/** A validated part. */
export type ReadPart = StoredPart | NewAttachment;

/** Bytes of one image before it is scaled. */
const IMAGE_BYTES_MOST = 32 * 1_048_576;
const URL_MOST = 8_192;
const NAME_MOST = 255;
/** This excludes a browser's `blob:https://…`, which nobody else can open. */
const REFERENCE = /^blob:[\w-]{1,128}(:\w{1,64}\/[\w.+-]{1,64})?$/;

/**
 * Validates a message's content. Throws ConfigurationError for anything but text, supported images, and files of at most
 * `fileBytes`.
 */
export function readContent(content: Content, fileBytes: number = Number.POSITIVE_INFINITY): ReadPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content))
    throw new ConfigurationError(`content must be a string or a list of parts, got ${typeof content}`);
  // `map` would skip the holes of a list.
  return Array.from(content, (part) => readPart(part, fileBytes));
}

/**
 * Validates the content of a new message. Throws ConfigurationError if it has neither text nor an image nor a file, because
 * it would ask the model nothing.
 */
export function readMessage(content: Content, fileBytes?: number): ReadPart[] {
  const parts = readContent(content, fileBytes);
  if (parts.every((part) => part.type === 'text' && part.text === ''))
    throw new ConfigurationError('a message needs some text or an image or a file; this content is empty');
  return parts;
}

function readPart(part: ContentPart, fileBytes: number): ReadPart {
  if (part?.type === 'text' && typeof part.text === 'string') return { type: 'text', text: part.text };
  if (part?.type === 'image' || part?.type === 'file') return readAttachment(part, fileBytes);
  throw new ConfigurationError(
    "a content part must be { type: 'text', text } or { type: 'image' | 'file', mediaType, data }",
  );
}

/** Returns the content with bytes in base64, synchronously. */
export const storedContent = (content: Content): StoredPart[] => readContent(content).map(encodedPart);

export function encodedPart(part: ReadPart): StoredPart {
  if (!('bytes' in part)) return part;
  const { bytes, ...others } = part;
  return { ...others, data: toBase64(bytes) };
}

type Kind = Attachment['type'];
function refuse(kind: Kind, expected: string, got: string): never {
  throw new ConfigurationError(`${kind === 'image' ? 'an image' : 'a file'}'s ${expected}, got ${got}`);
}

/** A file that is an image becomes an image part, because models receive images by parts of their own. */
function readAttachment(attachment: Exclude<ContentPart, { type: 'text' }>, fileBytes: number): ReadPart {
  const { name, data: source } = attachment as { name?: unknown; data: unknown };
  const mediaType = mediaTypeOf(attachment.mediaType) ?? '';
  const isImage = attachment.type === 'image' || mediaType.startsWith('image/');
  const type = isImage ? 'image' : 'file';
  if (isImage ? !IMAGE_TYPES.includes(mediaType) : mediaType === '') {
    const types = isImage ? `of ${IMAGE_TYPES.join(', ')}` : 'such as application/pdf';
    refuse(type, `mediaType must be one ${types}`, display(attachment.mediaType));
  }
  if (name !== undefined && (typeof name !== 'string' || name.length > NAME_MOST))
    refuse(type, `name must be a text of at most ${NAME_MOST} characters`, display(name));
  const data = readData(type, source, isImage ? IMAGE_BYTES_MOST : fileBytes);
  const part = isImage
    ? { type: 'image' as const, mediaType }
    : { type: 'file' as const, mediaType, ...(name && { name }) };
  if (typeof data === 'string') return { ...part, data };
  const found = isImage ? imageType(data) : likeType(mediaType, data);
  if (found === undefined)
    refuse(
      type,
      `bytes must be ${isImage ? 'PNG, JPEG, GIF or WebP' : `those of ${mediaType}${isTextType(mediaType) ? ' in UTF-8' : ''}`}`,
      `${data.length} others`,
    );
  // The bytes determine the type of an image: a wrong media type is corrected.
  return { ...part, mediaType: found, bytes: new Uint8Array(data) };
}

/** The media type of a file, or undefined if no model could read the bytes as such: a PDF without its mark, a text that is not UTF-8. */
function likeType(mediaType: string, bytes: Uint8Array): string | undefined {
  try {
    if (isTextType(mediaType)) new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
  const isPdf = mediaType !== 'application/pdf' || /%PDF-/.test(String.fromCharCode(...bytes.subarray(0, 1_024)));
  return isPdf && bytes.length > 0 ? mediaType : undefined;
}

/** The bytes, which may be the caller's own, or the text of a URL or a reference. */
function readData(kind: Kind, source: unknown, bytesMost: number): Uint8Array | string {
  const mostBytes = (size: number): void => {
    if (size > bytesMost) refuse(kind, `bytes may be ${bytesMost}`, 'more');
  };
  if (source instanceof Uint8Array) {
    mostBytes(source.length);
    return source;
  }
  const data = source instanceof URL ? source.href : source;
  if (typeof data !== 'string') refuse(kind, 'data must be a Uint8Array, a string or a URL', typeof data);
  const scheme = /^([a-z][a-z\d+.-]*):/i.exec(data.slice(0, 64))?.[1]?.toLowerCase();
  const isWeb = scheme === 'http' || scheme === 'https';
  if (isWeb && data.length <= URL_MOST && URL.canParse(data)) return data;
  if (REFERENCE.test(data)) return data;
  const head = scheme === 'data' ? /^data:[^,]{0,256};base64,/i.exec(data.slice(0, 300))?.[0] : '';
  if (head !== undefined && (head || !scheme)) {
    // White space in base64 is allowed, but nothing far above the limit is decoded.
    mostBytes((data.length - head.length - 128) * 0.75);
    const bytes = fromBase64(data.slice(head.length));
    mostBytes(bytes?.length ?? 0);
    if (bytes) return bytes;
  }
  const forms = 'data must be bytes, base64, a base64 data: URL, an http: or https: URL, or a reference of this log';
  return refuse(kind, `${forms} (of a file, read the bytes)`, scheme ? `a ${scheme}: URL` : 'another text');
}

/**
 * Throws MediaTypeError if a part of a message has a media type that the model does not accept. A file of a text is always
 * accepted, because it can be sent as text.
 */
export function mustAccept(parts: readonly ReadPart[], { id, accepts }: AttachmentModel): void {
  for (const part of parts)
    if (part.type !== 'text' && !isAcceptable(part, accepts))
      throw new MediaTypeError(
        `the model ${id} accepts ${['text', ...(accepts ?? [])].join(', ')}, got ${part.mediaType}: send its text, or choose a model that accepts it`,
      );
}

/** Returns the text of the content, without images and files. */
export function textOf(content: readonly StoredPart[]): string {
  let text = '';
  for (const part of content) if (part.type === 'text') text += part.text;
  return text;
}

const loadPreparer = onDemand(() => import('./attachmentPreparer.ts'));
const loadStoring = onDemand(() => import('./storedAttachments.ts'));

export class Attachments {
  /** Bytes of one file at most. */
  readonly fileBytes: number | undefined;
  readonly #handle: LogHandle;
  readonly #scale: ScaleImage | undefined;
  #preparers: import('./attachmentPreparer.ts').AttachmentPreparers | undefined;
  /** The last messages that had neither an image nor a file. */
  #text: readonly Message[] = [];

  constructor(handle: LogHandle, fileBytes?: number, scale?: ScaleImage) {
    this.fileBytes = fileBytes;
    this.#handle = handle;
    this.#scale = scale;
  }

  /** Validates the content of a new message. Throws ConfigurationError. */
  read(content: Content): ReadPart[] {
    return readMessage(content, this.fileBytes);
  }

  /**
   * Returns the parts of a new message as a log stores them, synchronously if no store is needed. Rejects with NotStored if the
   * store rejects.
   */
  keepMessage(parts: readonly ReadPart[]): StoredPart[] | Promise<StoredPart[]> {
    const kept = this.keep(parts);
    if (Array.isArray(kept)) return kept;
    return kept.catch((cause) => {
      throw new NotStored(parts.some(({ type }) => type === 'image') ? 'image' : 'file', cause);
    });
  }

  /** Returns the parts as a log stores them. Rejects with the error of the store. */
  keep(parts: readonly ReadPart[]): StoredPart[] | Promise<StoredPart[]> {
    const { putBlob } = this.#handle;
    const needsStore = (part: ReadPart): boolean => ('bytes' in part ? putBlob !== undefined : isReference(part));
    return parts.some(needsStore) ? this.#storeParts(parts) : parts.map(encodedPart);
  }

  /**
   * Does the same for results of tools and plugins. If the store refuses an image or a file, a diagnostic reports it and
   * the rest is kept.
   */
  keepResult(parts: StoredPart[], diagnose: Diagnose): StoredPart[] | Promise<StoredPart[]> {
    if (!this.#handle.putBlob || !hasAttachment(parts)) return parts;
    return loadStoring().then(({ storeWherePossible }) =>
      storeWherePossible((part) => this.#put(part), parts, diagnose),
    );
  }

  /** The bytes of a reference of this log. */
  async bytesOf(reference: string): Promise<Uint8Array | undefined> {
    return this.#handle.getBlob?.(reference);
  }

  /** Returns the messages for a model: the same list if none has an image or a file. */
  shownTo(
    model: AttachmentModel,
    messages: readonly Message[],
    signal: AbortSignal,
    diagnose: Diagnose,
  ): readonly Message[] | Promise<Message[]> {
    // Messages never change, so those of text alone are not searched again.
    if (!messages.every((message, index) => message === this.#text[index] || !hasAttachment(message.content)))
      return this.#prepare(model, messages, signal, diagnose);
    this.#text = messages;
    return messages;
  }

  /** The next fallback model that accepts the images and files of the request, and is not the model of the request (`own`). */
  skipping(models: readonly AttachmentModel[], index: number, entries: readonly LogEntry[], own: string) {
    // Without a preparer, no request had an image or a file.
    const isOwn = models[index + 1]?.id === own;
    return this.#preparers?.skipping(models, index, entries, own) ?? { nextModel: index + (isOwn ? 2 : 1) };
  }

  /** Decoding and scaling are loaded with the first image or file. */
  async #prepare(model: AttachmentModel, messages: readonly Message[], signal: AbortSignal, diagnose: Diagnose) {
    const { AttachmentPreparers } = await loadPreparer();
    this.#preparers ??= new AttachmentPreparers(this.#handle, this.#scale);
    return this.#preparers.prepare(model, messages, signal, diagnose);
  }

  async #storeParts(parts: readonly ReadPart[]): Promise<StoredPart[]> {
    const kept: StoredPart[] = [];
    for (const part of parts) {
      if ('bytes' in part) kept.push(await this.#put(part));
      else {
        if (isReference(part) && (await this.bytesOf(part.data)) === undefined)
          throw new RunchartError('store', `no ${part.type} ${part.data} beside this log: give its bytes`);
        kept.push(part);
      }
    }
    return kept;
  }

  async #put({ bytes, ...part }: NewAttachment): Promise<StoredPart> {
    const data = await this.#handle.putBlob?.(bytes, part.mediaType);
    if (typeof data !== 'string' || data === '' || data.length > 1_024)
      throw new RunchartError('store', 'putBlob must answer with a reference, a text of at most 1024 characters');
    return { ...part, data };
  }
}

/** An image or a file of a message could not be stored: the message was not accepted. */
export class NotStored extends RunchartError {
  readonly part: Attachment['type'];

  constructor(part: Attachment['type'], cause: unknown) {
    super('store', `${part === 'image' ? 'an image' : 'a file'} could not be stored (${thrownText(cause)})`, { cause });
    this.part = part;
  }
}

/** Returns true if a tool's result has an image or a file. */
export const holdsAttachment = (value: ToolValue): value is Exclude<ToolValue, { kind: 'pending' }> =>
  value.kind !== 'pending' && hasAttachment(value.content);
const hasAttachment = (content: readonly ReadPart[]): boolean => content.some(({ type }) => type !== 'text');
const isReference = (part: StoredPart): part is Attachment => part.type !== 'text' && part.data.startsWith('blob:');
