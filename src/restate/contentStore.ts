/**
 * The contents of one conversation as an engine keeps them: contents larger than 64 KiB are in the blob store, and the engine has their
 * names. Invariant: the log contains the contents themselves, so it is the same with and without a blob store.
 */
import { RunchartError } from '../errors.ts';
import { blobReference, hashIn } from '../stores/blobReference.ts';
import { sha256 } from '../stores/sha256.ts';
import type { BlobStore } from './blobStore.ts';

/** JSON that is longer is kept outside the engine. */
export const INLINE_CHARACTERS = 65_536;
/** A server takes messages of 32 MiB. A character may take three bytes. */
export const LARGEST_CHARACTERS = 10_000_000;

/** The name that replaces contents in the engine. */
interface Stored {
  readonly storedAs: string;
}

export class ContentStore {
  readonly #store: BlobStore | undefined;
  readonly #conversationId: string;
  /** The contents that this attempt used last, because it may need them next. */
  #last: { name: string; text: string } | undefined;
  #puts: Promise<unknown> = Promise.resolve();

  constructor(store: BlobStore | undefined, conversationId: string) {
    this.#store = store;
    this.#conversationId = conversationId;
  }

  /** The value is the name of contents in the blob store. */
  static isName(value: unknown): value is Stored {
    return typeof value === 'object' && value !== null && Object.keys(value).join() === 'storedAs';
  }

  get isKept(): boolean {
    return this.#store !== undefined;
  }

  /** The value is not kept in the engine. */
  isLarge(value: unknown): boolean {
    return this.#store !== undefined && JSON.stringify(value).length > INLINE_CHARACTERS;
  }

  /** The JSON value as the engine keeps it. Rejects with RunchartError `too_large` where there is no blob store for it. */
  async shorten(value: unknown): Promise<unknown> {
    const text = JSON.stringify(value);
    if (text === undefined || text.length <= INLINE_CHARACTERS) return value;
    if (!this.#store) {
      if (text.length <= LARGEST_CHARACTERS) return value;
      throw new RunchartError(
        'too_large',
        `expected contents of at most ${LARGEST_CHARACTERS} characters, got ${text.length}: use the option store`,
      );
    }
    const bytes = new TextEncoder().encode(text);
    const name = sha256(bytes);
    await this.#store.put(this.#conversationId, name, bytes);
    this.#last = { name, text };
    return { storedAs: name } satisfies Stored;
  }

  /** The value that was shortened. */
  async whole<T>(value: unknown): Promise<T> {
    if (!ContentStore.isName(value)) return value as T;
    const name = value.storedAs;
    if (this.#last?.name === name) return JSON.parse(this.#last.text) as T;
    if (!this.#store)
      throw new RunchartError('store', `the contents ${name} are in a blob store: use the option store`);
    return JSON.parse(new TextDecoder().decode(await this.#store.get(this.#conversationId, name))) as T;
  }

  /** Returns the reference of an attachment at once, so that each attempt continues at the same place. `settled` waits for it. */
  put(bytes: Uint8Array, mediaType: string): string {
    const name = sha256(bytes);
    const put = this.#store?.put(this.#conversationId, name, bytes) ?? Promise.resolve();
    this.#puts = Promise.all([this.#puts, put]);
    this.#puts.catch(() => undefined);
    return blobReference(name, mediaType);
  }

  async get(reference: string): Promise<Uint8Array> {
    const name = hashIn(reference);
    await this.#puts;
    if (!this.#store) throw new RunchartError('store', 'the attachment is in a blob store: use the option store');
    return this.#store.get(this.#conversationId, name);
  }

  /** The attachments are stored. */
  async settled(): Promise<void> {
    await this.#puts;
  }
}
