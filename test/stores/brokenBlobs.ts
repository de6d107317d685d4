/** Blobs of broken stores. Invariant: without a fault they keep the contract. */
import { createHash } from 'node:crypto';
import { RunchartError } from '../../src/errors.ts';

export const BLOB_FAULTS = [
  'puts blobs and never gets them',
  'names every blob alike',
  'names equal blobs apart',
  'names a blob by its type',
  'names blobs by their bytes',
  'names blobs by a number',
  'knows one media type of equal bytes',
  'finds a blob for any reference',
  'keeps the bytes of its caller',
  'hands out the bytes it keeps',
  'keeps the whole buffer of a view',
  'keeps bytes when it gets round to it',
  'keeps a mebibyte of a blob',
  'keeps no empty blob',
] as const;
export type BlobFault = (typeof BLOB_FAULTS)[number];

export class Blobs {
  readonly #kept = new Map<string, Uint8Array>();
  readonly #is: (fault: BlobFault) => boolean;

  constructor(is: (fault: BlobFault) => boolean) {
    this.#is = is;
  }

  async put(bytes: Uint8Array, mediaType: string): Promise<string> {
    const late = this.#is('keeps bytes when it gets round to it');
    const copied = late ? bytes : this.#copied(bytes);
    await new Promise((resolve) => setImmediate(resolve));
    const kept = late ? this.#copied(bytes) : copied;
    const reference = this.#named(kept, mediaType);
    if (kept.length > 0 || !this.#is('keeps no empty blob')) this.#kept.set(reference, kept);
    return reference;
  }

  async get(reference: string): Promise<Uint8Array> {
    const found = this.#kept.get(reference) ?? (this.#is('finds a blob for any reference') ? new Uint8Array(1) : null);
    if (found === null) throw new RunchartError('store', `no blob ${reference.slice(0, 50)}`);
    return this.#is('hands out the bytes it keeps') ? found : new Uint8Array(found);
  }

  #copied(bytes: Uint8Array): Uint8Array {
    if (this.#is('keeps the bytes of its caller')) return bytes;
    if (this.#is('keeps the whole buffer of a view') && !Buffer.isBuffer(bytes)) return new Uint8Array(bytes.buffer);
    return new Uint8Array(this.#is('keeps a mebibyte of a blob') ? bytes.subarray(0, 1024 * 1024) : bytes);
  }

  #named(bytes: Uint8Array, mediaType: string): string {
    if (this.#is('names every blob alike')) return 'blob:0';
    if (this.#is('names a blob by its type')) return `blob:${mediaType}:${bytes.length}`;
    if (this.#is('names blobs by their bytes')) return `data:${mediaType};base64,${Buffer.from(bytes).toString('hex')}`;
    const ending = `:${mediaType}`;
    for (const [reference, kept] of this.#is('knows one media type of equal bytes') ? this.#kept : []) {
      if (Buffer.from(kept).equals(bytes)) this.#kept.delete(reference);
    }
    for (const [reference, kept] of this.#kept) {
      if (this.#is('names equal blobs apart')) break;
      if (reference.endsWith(ending) && Buffer.from(kept).equals(bytes)) return reference;
    }
    if (this.#is('names blobs by a number') || this.#is('names equal blobs apart'))
      return `blob:${this.#kept.size}${ending}`;
    return `blob:${createHash('sha256').update(bytes).digest('hex')}${ending}`;
  }
}
