/**
 * References of blobs: `blob:<SHA-256 of the bytes>:<media type>`. Invariant: a reference that a store gives is short, and
 * contains no path.
 */
import { ConfigurationError, RunchartError } from '../errors.ts';
import { sha256 } from './sha256.ts';

const MEDIA_TYPE = /^[\w.+-]{1,64}\/[\w.+-]{1,64}(; ?[\w.+-]{1,64}=[\w.+-]{1,64}){0,4}$/;

/** Throws ConfigurationError for an invalid media type. */
export function checkMediaType(mediaType: string): void {
  if (MEDIA_TYPE.test(mediaType)) return;
  throw new ConfigurationError(`expected a media type such as image/png, got ${JSON.stringify(mediaType)}`);
}

export const blobReference = (hash: string, mediaType: string): string => `blob:${hash}:${mediaType}`;

/** The reference of these bytes. Throws ConfigurationError for an invalid media type. */
export function referenceOf(bytes: Uint8Array, mediaType: string): string {
  checkMediaType(mediaType);
  return blobReference(sha256(bytes), mediaType);
}

/** Returns the hash in a reference. Throws RunchartError `store` for another text. */
export function hashIn(reference: string): string {
  const [, hash, mediaType] = /^blob:([0-9a-f]{64}):(.+)$/.exec(reference) ?? [];
  if (hash !== undefined && mediaType !== undefined && MEDIA_TYPE.test(mediaType)) return hash;
  const got = JSON.stringify(reference)?.slice(0, 200);
  throw new RunchartError('store', `expected a reference blob:<sha256>:<media type>, got ${got}`);
}
