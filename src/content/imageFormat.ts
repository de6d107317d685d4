/**
 * Image formats: the media type of bytes, their base64 form, and a model's limits. Invariant: the first bytes determine the type, not the
 * declared media type. Base64 needs no Buffer of Node. An impossible limit is refused at the start.
 */
import { ConfigurationError } from '../errors.ts';

export const IMAGE_TYPES: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** The first bytes of each type, in that order. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what PNG begins with.
const BEGINNINGS = [/^\x89PNG\r\n\x1a\n/, /^\xff\xd8\xff/, /^GIF8[79]a/, /^RIFF.{4}WEBP/s];
const BEGINNING = 12;

/** Returns the type of an image, or undefined for an unknown type. */
export function imageType(bytes: Uint8Array): string | undefined {
  const beginning = String.fromCharCode(...bytes.subarray(0, BEGINNING));
  return IMAGE_TYPES[BEGINNINGS.findIndex((beginsWith) => beginsWith.test(beginning))];
}

export function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (let i = 0; i < bytes.length; i += 0x8000) binary += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(binary);
}

/** Returns undefined if the text is not base64. White space is skipped. */
export function fromBase64(text: string): Uint8Array | undefined {
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    return undefined;
  }
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Base64 has no colon, unlike URLs and references. */
export const isEncoded = (data: string): boolean => !data.slice(0, 256).includes(':');

/** Returns true if a text begins like the base64 form of an image. */
export const isEncodedImage = (text: string): boolean => imageType(fromBase64(text.slice(0, 16)) ?? NONE) !== undefined;
const NONE = /* @__PURE__ */ new Uint8Array(0);

/** The limits of a model for images. A larger image is scaled down before it is sent. */
export interface ImageLimits {
  /** Pixels on the longer side. */
  maxPixels?: number;
  /** Bytes of one image in base64, as it is sent. */
  maxBytes?: number;
  /**
   * A subset of image/png, image/jpeg, image/gif and image/webp. An empty list means that the model accepts no
   * images.
   */
  mediaTypes?: readonly string[];
}

/** The part of a model that concerns images and files. */
export interface AttachmentModel {
  readonly id: string;
  readonly accepts?: readonly string[];
  readonly imageLimits?: ImageLimits;
}

/** Images with more pixels are not decoded. */
export const PIXELS_MOST = 100_000_000;

/** Returns a model's limits. Defaults: 2,000 pixels, 4.5 MiB, all four types. Throws ConfigurationError. */
export function imageLimitsOf({ id, imageLimits }: { id: string; imageLimits?: ImageLimits }): Required<ImageLimits> {
  const { maxPixels = 2_000, maxBytes = 4_718_592, mediaTypes = IMAGE_TYPES } = imageLimits ?? {};
  if (
    maxPixels >= 1 &&
    maxBytes >= 1 &&
    Array.isArray(mediaTypes) &&
    mediaTypes.every((type) => IMAGE_TYPES.includes(type))
  )
    return { maxPixels, maxBytes, mediaTypes };
  throw new ConfigurationError(
    `imageLimits of ${id}: maxPixels and maxBytes must be positive, mediaTypes of ${IMAGE_TYPES.join(', ')}`,
  );
}
