/**
 * Prepares the images and files of a conversation for one model. Invariant: each is read, checked and scaled once, and cached
 * while there is room. One that cannot be shown becomes a text and a diagnostic. It never ends the run.
 */
import type { Attachment, Json, LogEntry, Message, StoredPart } from '../../machines/vocabulary.ts';
import { thrownText } from '../errors.ts';
import type { LogHandle } from '../stores/logStore.ts';
import { attachmentLabel, type FilePart, fileAsText } from './filePart.ts';
import { fitted } from './fitImage.ts';
import {
  type AttachmentModel,
  fromBase64,
  type ImageLimits,
  imageLimitsOf,
  isEncoded,
  isEncodedImage,
  toBase64,
} from './imageFormat.ts';
import { accepts, isAcceptable, isTextType } from './mediaTypes.ts';
import { type ScaleImage, scaleByPlatform } from './scaleImage.ts';

type Image = Extract<StoredPart, { type: 'image' }>;
interface AttachmentPreparerOptions {
  limits: Required<ImageLimits>;
  /** The media types that the model accepts; undefined for all. */
  accepts?: readonly string[] | undefined;
  /** Replaces the scaler of the platform. */
  scale: ScaleImage | undefined;
  getBlob: ((reference: string) => Promise<Uint8Array>) | undefined;
  diagnose(code: string, detail: Json): void;
  /** Characters of the cached images and files. Default: 64 Mi. */
  cachedMost?: number;
}

const CACHED_MOST = 64 * 1_048_576;

/** Has one preparer for each model of a conversation. */
export class AttachmentPreparers {
  readonly #handle: Pick<LogHandle, 'getBlob'>;
  readonly #scale: ScaleImage | undefined;
  readonly #preparers = new Map<object, AttachmentPreparer>();

  constructor(handle: Pick<LogHandle, 'getBlob'>, scale: ScaleImage | undefined) {
    this.#handle = handle;
    this.#scale = scale;
  }

  prepare(
    model: AttachmentModel,
    messages: readonly Message[],
    signal: AbortSignal,
    diagnose: AttachmentPreparerOptions['diagnose'],
  ): Promise<Message[]> {
    let preparer = this.#preparers.get(model);
    if (!preparer) {
      const getBlob = this.#handle.getBlob?.bind(this.#handle);
      preparer = new AttachmentPreparer({
        limits: imageLimitsOf(model),
        accepts: model.accepts,
        scale: this.#scale,
        getBlob,
        diagnose,
      });
      this.#preparers.set(model, preparer);
    }
    return preparer.prepare(messages, signal);
  }

  /**
   * The first later fallback model that accepts the last cycle's messages and is not the model of the request (`own`). Absent
   * if the next model is this one.
   */
  skipping(
    models: readonly AttachmentModel[],
    index: number,
    entries: readonly LogEntry[],
    own?: string,
  ): { nextModel?: number } {
    const parts = attachmentsIn(entries);
    const next = models.findIndex(
      ({ id, accepts }, at) => at > index && id !== own && parts.every((part) => isAcceptable(part, accepts)),
    );
    if (next === index + 1) return {};
    return { nextModel: next < 0 ? models.length : next };
  }
}

/** The images and files of the last cycle's messages. */
function attachmentsIn(entries: readonly LogEntry[]): Attachment[] {
  const attachments: Attachment[] = [];
  for (let at = entries.length - 1; at >= 0; at -= 1) {
    const entry = entries[at];
    if (entry?.type !== 'user-message') continue;
    for (const part of entry.content) if (part.type !== 'text') attachments.push(part);
    if (entry.kind !== 'steer') break;
  }
  return attachments;
}

export class AttachmentPreparer {
  readonly #options: AttachmentPreparerOptions;
  /** The prepared part of each image and file, by its data in the log. The least recently used comes first. */
  readonly #cache = new Map<string, StoredPart>();
  #weight = 0;
  readonly #reported = new Set<string>();

  constructor(options: AttachmentPreparerOptions) {
    this.#options = options;
  }

  /** Prepares one part after the other, so that few are in memory. Stops after an abort. */
  async prepare(messages: readonly Message[], signal: AbortSignal): Promise<Message[]> {
    const shown: Message[] = [];
    for (const message of messages) {
      if (message.content.every(({ type }) => type === 'text')) {
        shown.push(message);
        continue;
      }
      const content: StoredPart[] = [];
      for (const part of message.content) {
        signal.throwIfAborted();
        content.push(part.type === 'text' ? part : await this.#preparePart(part));
      }
      shown.push({ ...message, content });
    }
    return shown;
  }

  async #preparePart(part: Attachment): Promise<StoredPart> {
    const { limits, accepts: patterns } = this.#options;
    const { type, mediaType } = part;
    const isText = type === 'file' && isTextType(mediaType);
    const isAccepted = accepts(patterns, mediaType);
    if (type === 'image' && limits.mediaTypes.length === 0) return replacementText(part, 'this model takes no images');
    if (!isAccepted && !isText) return replacementText(part, `this model takes no ${mediaType}`);
    // The server fetches it, so its size is unknown here.
    if (/^https?:/i.test(part.data))
      return isAccepted ? part : replacementText(part, `this model reads no text from a URL. It is at ${part.data}`);
    const key = keyOf(part);
    const cached = this.#cache.get(key);
    if (cached) {
      this.#cache.delete(key);
      this.#cache.set(key, cached);
      return cached;
    }
    let bytes: Uint8Array;
    try {
      bytes = await this.#bytesOf(part);
    } catch (error) {
      this.#report('missing', part, thrownText(error));
      return replacementText(part, 'its bytes are missing');
    }
    const prepared = type === 'image' ? await this.#fit(part, bytes) : this.#file(part, bytes, isAccepted);
    return this.#addToCache(key, prepared);
  }

  /** The file itself, or its text for a model that accepts no file of its type. */
  #file(part: FilePart, bytes: Uint8Array, isAccepted: boolean): StoredPart {
    const data = isEncoded(part.data) ? part.data : toBase64(bytes);
    if (isAccepted) return { ...part, data };
    const text = fileAsText(part, data);
    if (text) return text;
    this.#report('not_shown', part, 'its bytes are no UTF-8');
    return replacementText(part, 'its bytes are not a text in UTF-8');
  }

  async #fit(part: Image, bytes: Uint8Array): Promise<StoredPart> {
    const { limits, scale = scaleByPlatform } = this.#options;
    try {
      const result = await fitted(bytes, limits, scale);
      if (result.kind === 'fits') {
        const { mediaType } = result;
        const data = result.bytes === bytes && isEncodedImage(part.data) ? part.data : toBase64(result.bytes);
        return { type: 'image', mediaType, data };
      }
      this.#report('not_shown', part, result.why);
      return replacementText(part, result.why);
    } catch (error) {
      this.#report('not_shown', part, thrownText(error));
      return replacementText(part, 'it is larger than this model takes, or of another type, and could not be scaled');
    }
  }

  async #bytesOf({ type, data }: Attachment): Promise<Uint8Array> {
    const isInline = type === 'image' ? isEncodedImage(data) : isEncoded(data);
    const encoded = /^data:[^,]{0,256};base64,/i.exec(data)?.[0].length ?? (isInline ? 0 : undefined);
    const bytes = encoded === undefined ? await this.#options.getBlob?.(data) : fromBase64(data.slice(encoded));
    if (bytes instanceof Uint8Array) return bytes;
    throw new Error(`it is no ${type}, and this store has no blobs`);
  }

  #addToCache(key: string, part: StoredPart): StoredPart {
    const { cachedMost = CACHED_MOST } = this.#options;
    this.#cache.set(key, part);
    this.#weight += weightOf(part);
    for (const [oldest, kept] of this.#cache) {
      if (this.#weight <= cachedMost || oldest === key) break;
      this.#cache.delete(oldest);
      this.#weight -= weightOf(kept);
    }
    return part;
  }

  /** Reports each image and file once, because its fault repeats in every request. */
  #report(fault: 'missing' | 'not_shown', part: Attachment, message: string): void {
    const { type, mediaType } = part;
    if (this.#reported.has(part.data)) return;
    this.#reported.add(part.data);
    this.#options.diagnose(`${type}_${fault}`, { mediaType, [type]: part.data.slice(0, 100), message });
  }
}

const replacementText = (part: Attachment, why: string): StoredPart => {
  const what = part.type === 'image' ? 'An image' : 'A file';
  return { type: 'text', text: `[${what} (${attachmentLabel(part)}) belongs here. It is not shown: ${why}.]` };
};

/** Two files with the same bytes may have different names. */
const keyOf = (part: Attachment): string =>
  part.type === 'image' ? part.data : `${part.mediaType} ${part.name ?? ''}\n${part.data}`;

const weightOf = (part: StoredPart): number => (part.type === 'text' ? part.text : part.data).length;
