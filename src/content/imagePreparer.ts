/**
 * The images of a conversation as one model is shown them. Rule: each is read, checked and scaled once and kept while
 * there is room; one that cannot be shown is a text that says so, and a diagnostic, and never the end of a run.
 */
import type { Json, Message, StoredPart } from '../../machines/vocabulary.ts';
import { thrownText } from '../errors.ts';
import type { LogHandle } from '../stores/store.ts';
import { fitted } from './fit.ts';
import { fromBase64, type ImageLimits, imageLimitsOf, isEncodedImage, toBase64 } from './imageFormat.ts';
import { type ScaleImage, scaleByPlatform } from './scale.ts';

type Image = Extract<StoredPart, { type: 'image' }>;
interface ImagePreparerOptions {
  limits: Required<ImageLimits>;
  /** In place of the platform's own. */
  scale: ScaleImage | undefined;
  getBlob: ((reference: string) => Promise<Uint8Array>) | undefined;
  diagnose(code: string, detail: Json): void;
}

/** Characters of the images that are kept at hand. */
const KEPT_MOST = 64 * 1_048_576;

/** One for each model that a conversation asks. */
export class ImagePreparers {
  readonly #handle: Pick<LogHandle, 'getBlob'>;
  readonly #scale: ScaleImage | undefined;
  readonly #preparers = new Map<object, ImagePreparer>();

  constructor(handle: Pick<LogHandle, 'getBlob'>, scale: ScaleImage | undefined) {
    this.#handle = handle;
    this.#scale = scale;
  }

  shown(
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
    return preparer.shown(messages, signal);
  }
}

export class ImagePreparer {
  readonly #options: ImagePreparerOptions;
  /** What each image became, by its data in the log; the least lately shown first. */
  readonly #kept = new Map<string, StoredPart>();
  #weight = 0;
  readonly #said = new Set<string>();

  constructor(options: ImagePreparerOptions) {
    this.#options = options;
  }

  /** One after the other, so that few are in memory at once; ends early where nobody waits any more. */
  async shown(messages: readonly Message[], signal: AbortSignal): Promise<Message[]> {
    const shown: Message[] = [];
    for (const message of messages) {
      if (!message.content.some(({ type }) => type === 'image')) {
        shown.push(message);
        continue;
      }
      const content: StoredPart[] = [];
      for (const part of message.content) {
        signal.throwIfAborted();
        content.push(part.type === 'image' ? await this.#show(part) : part);
      }
      shown.push({ ...message, content });
    }
    return shown;
  }

  async #show(part: Image): Promise<StoredPart> {
    const { limits } = this.#options;
    if (limits.mediaTypes.length === 0) return told(part, 'this model takes no images');
    // The server fetches it: how large it is, only the server sees.
    if (/^https?:/i.test(part.data)) return part;
    const known = this.#kept.get(part.data);
    if (known) {
      this.#kept.delete(part.data);
      this.#kept.set(part.data, known);
      return known;
    }
    let bytes: Uint8Array;
    try {
      bytes = await this.#bytesOf(part.data);
    } catch (error) {
      this.#say('image_missing', part, thrownText(error));
      return told(part, 'its bytes are missing');
    }
    return this.#keep(part.data, await this.#fit(part, bytes));
  }

  async #fit(part: Image, bytes: Uint8Array): Promise<StoredPart> {
    const { limits, scale = scaleByPlatform } = this.#options;
    try {
      const found = await fitted(bytes, limits, scale);
      if (found.kind === 'fits') {
        const { mediaType } = found;
        const data = found.bytes === bytes && isEncodedImage(part.data) ? part.data : toBase64(found.bytes);
        return { type: 'image', mediaType, data };
      }
      this.#say('image_not_shown', part, found.why);
      return told(part, found.why);
    } catch (error) {
      this.#say('image_not_shown', part, thrownText(error));
      return told(part, 'it is larger than this model takes, or of another type, and could not be scaled');
    }
  }

  async #bytesOf(data: string): Promise<Uint8Array> {
    const encoded = /^data:[^,]{0,256};base64,/i.exec(data)?.[0].length ?? (isEncodedImage(data) ? 0 : undefined);
    const bytes = encoded === undefined ? await this.#options.getBlob?.(data) : fromBase64(data.slice(encoded));
    if (bytes instanceof Uint8Array) return bytes;
    throw new Error('it is no image, and this store has no blobs');
  }

  #keep(data: string, part: StoredPart): StoredPart {
    this.#kept.set(data, part);
    this.#weight += weightOf(part);
    for (const [oldest, kept] of this.#kept) {
      if (this.#weight <= KEPT_MOST || oldest === data) break;
      this.#kept.delete(oldest);
      this.#weight -= weightOf(kept);
    }
    return part;
  }

  /** Once an image: what is wrong with it is wrong in every request. */
  #say(code: 'image_missing' | 'image_not_shown', { mediaType, data }: Image, message: string): void {
    const image = data.slice(0, 100);
    if (this.#said.has(image)) return;
    this.#said.add(image);
    this.#options.diagnose(code, { mediaType, image, message });
  }
}

const told = ({ mediaType }: Image, why: string): StoredPart => ({
  type: 'text',
  text: `[An image (${mediaType}) belongs here. It is not shown: ${why}.]`,
});

const weightOf = (part: StoredPart): number => (part.type === 'image' ? part.data.length : part.text.length);
