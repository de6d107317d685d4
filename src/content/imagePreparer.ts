/**
 * Prepares the images of a conversation for one model. Invariant: each is read, checked and scaled once, and cached
 * while there is room. An image that cannot be shown becomes a text and a diagnostic. It never ends the run.
 */
import type { Json, Message, StoredPart } from '../../machines/vocabulary.ts';
import { thrownText } from '../errors.ts';
import type { LogHandle } from '../stores/logStore.ts';
import { fitted } from './fitImage.ts';
import { fromBase64, type ImageLimits, imageLimitsOf, isEncodedImage, toBase64 } from './imageFormat.ts';
import { type ScaleImage, scaleByPlatform } from './scaleImage.ts';

type Image = Extract<StoredPart, { type: 'image' }>;
interface ImagePreparerOptions {
  limits: Required<ImageLimits>;
  /** Replaces the scaler of the platform. */
  scale: ScaleImage | undefined;
  getBlob: ((reference: string) => Promise<Uint8Array>) | undefined;
  diagnose(code: string, detail: Json): void;
  /** Characters of the cached images. Default: 64 Mi. */
  cachedMost?: number;
}

const CACHED_MOST = 64 * 1_048_576;

/** Has one preparer for each model of a conversation. */
export class ImagePreparers {
  readonly #handle: Pick<LogHandle, 'getBlob'>;
  readonly #scale: ScaleImage | undefined;
  readonly #preparers = new Map<object, ImagePreparer>();

  constructor(handle: Pick<LogHandle, 'getBlob'>, scale: ScaleImage | undefined) {
    this.#handle = handle;
    this.#scale = scale;
  }

  prepare(
    model: { id: string; imageLimits?: ImageLimits },
    messages: readonly Message[],
    signal: AbortSignal,
    diagnose: ImagePreparerOptions['diagnose'],
  ): Promise<Message[]> {
    let preparer = this.#preparers.get(model);
    if (!preparer) {
      const getBlob = this.#handle.getBlob?.bind(this.#handle);
      preparer = new ImagePreparer({ limits: imageLimitsOf(model), scale: this.#scale, getBlob, diagnose });
      this.#preparers.set(model, preparer);
    }
    return preparer.prepare(messages, signal);
  }
}

export class ImagePreparer {
  readonly #options: ImagePreparerOptions;
  /** The prepared part of each image, by its data in the log. The least recently used comes first. */
  readonly #cache = new Map<string, StoredPart>();
  #weight = 0;
  readonly #reportedImages = new Set<string>();

  constructor(options: ImagePreparerOptions) {
    this.#options = options;
  }

  /** Prepares one image after the other, so that few are in memory. Stops after an abort. */
  async prepare(messages: readonly Message[], signal: AbortSignal): Promise<Message[]> {
    const shown: Message[] = [];
    for (const message of messages) {
      if (!message.content.some(({ type }) => type === 'image')) {
        shown.push(message);
        continue;
      }
      const content: StoredPart[] = [];
      for (const part of message.content) {
        signal.throwIfAborted();
        content.push(part.type === 'image' ? await this.#prepareImage(part) : part);
      }
      shown.push({ ...message, content });
    }
    return shown;
  }

  async #prepareImage(part: Image): Promise<StoredPart> {
    const { limits } = this.#options;
    if (limits.mediaTypes.length === 0) return replacementText(part, 'this model takes no images');
    // The server fetches the image, so its size is unknown here.
    if (/^https?:/i.test(part.data)) return part;
    const cached = this.#cache.get(part.data);
    if (cached) {
      this.#cache.delete(part.data);
      this.#cache.set(part.data, cached);
      return cached;
    }
    let bytes: Uint8Array;
    try {
      bytes = await this.#bytesOf(part.data);
    } catch (error) {
      this.#report('image_missing', part, thrownText(error));
      return replacementText(part, 'its bytes are missing');
    }
    return this.#addToCache(part.data, await this.#fit(part, bytes));
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
      this.#report('image_not_shown', part, result.why);
      return replacementText(part, result.why);
    } catch (error) {
      this.#report('image_not_shown', part, thrownText(error));
      return replacementText(part, 'it is larger than this model takes, or of another type, and could not be scaled');
    }
  }

  async #bytesOf(data: string): Promise<Uint8Array> {
    const encoded = /^data:[^,]{0,256};base64,/i.exec(data)?.[0].length ?? (isEncodedImage(data) ? 0 : undefined);
    const bytes = encoded === undefined ? await this.#options.getBlob?.(data) : fromBase64(data.slice(encoded));
    if (bytes instanceof Uint8Array) return bytes;
    throw new Error('it is no image, and this store has no blobs');
  }

  #addToCache(data: string, part: StoredPart): StoredPart {
    const { cachedMost = CACHED_MOST } = this.#options;
    this.#cache.set(data, part);
    this.#weight += weightOf(part);
    for (const [oldest, kept] of this.#cache) {
      if (this.#weight <= cachedMost || oldest === data) break;
      this.#cache.delete(oldest);
      this.#weight -= weightOf(kept);
    }
    return part;
  }

  /** Reports each image once, because its fault repeats in every request. */
  #report(code: 'image_missing' | 'image_not_shown', { mediaType, data }: Image, message: string): void {
    const image = data.slice(0, 100);
    if (this.#reportedImages.has(image)) return;
    this.#reportedImages.add(image);
    this.#options.diagnose(code, { mediaType, image, message });
  }
}

const replacementText = ({ mediaType }: Image, why: string): StoredPart => ({
  type: 'text',
  text: `[An image (${mediaType}) belongs here. It is not shown: ${why}.]`,
});

const weightOf = (part: StoredPart): number => (part.type === 'image' ? part.data.length : part.text.length);
