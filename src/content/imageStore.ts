/**
 * The images of one conversation between its log and its models. Rule: bytes are in the store before the entry that
 * names them; without images nothing waits and nothing is loaded.
 */
import type { Json, Message, NewEntry, StoredPart, ToolValue } from '../../machines/internal.ts';
import { RunchartError, thrownText } from '../errors.ts';
import { onDemand } from '../onDemand.ts';
import type { LogHandle } from '../stores/store.ts';
import { encodedPart, type ReadPart, readContent } from './content.ts';
import { type ImageLimits, imageLimitsOf, isEncodedImage } from './imageFormat.ts';
import type { ScaleImage } from './scale.ts';

const loadPreparer = onDemand(() => import('./imagePreparer.ts'));

/** A model, as far as its images are concerned. */
type ImageModel = { id: string; imageLimits?: ImageLimits };
type Diagnose = (code: string, detail: Json) => void;
type Gallery = import('./imagePreparer.ts').Gallery;

export class Images {
  readonly #handle: LogHandle;
  readonly #scale: ScaleImage | undefined;
  readonly #galleries = new Map<ImageModel, Promise<Gallery>>();

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

  /** The entries of an earlier history as the log may hold them. Rejects where the store does. */
  async keepEntries(entries: readonly NewEntry[]): Promise<NewEntry[]> {
    const kept: NewEntry[] = [];
    for (const entry of entries) {
      if (entry.type !== 'history' || !entry.messages.some(({ content }) => hasImage(content))) {
        kept.push(entry);
        continue;
      }
      const messages: Message[] = [];
      for (const message of entry.messages) {
        const { content } = message;
        messages.push(hasImage(content) ? { ...message, content: await this.keep(readContent(content)) } : message);
      }
      kept.push({ ...entry, messages });
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
    if (!messages.some(({ content }) => hasImage(content))) return messages;
    let gallery = this.#galleries.get(model);
    if (!gallery) {
      gallery = this.#hang(model, diagnose);
      this.#galleries.set(model, gallery);
      // What could not be loaded may be there the next time.
      gallery.catch(() => this.#galleries.delete(model));
    }
    return gallery.then((opened) => opened.shown(messages, signal));
  }

  /** Decoding and scaling are loaded when the first image is to be shown. */
  async #hang(model: ImageModel, diagnose: Diagnose): Promise<Gallery> {
    const { Gallery } = await loadPreparer();
    const limits = imageLimitsOf(model);
    const getBlob = this.#handle.getBlob?.bind(this.#handle);
    return new Gallery({ limits, scale: this.#scale, getBlob, diagnose });
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
