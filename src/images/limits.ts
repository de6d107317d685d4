/**
 * What a model takes of images. Rule: the defaults hold key by key where a model names no limit of its own; an
 * impossible limit is refused at start.
 */
import { ConfigurationError } from '../errors.ts';
import { IMAGE_TYPES } from './imageData.ts';

export interface ImageLimits {
  /** Pixels on the longer side. */
  maxPixels?: number;
  /** Bytes of one image, base64 encoded as it is sent. */
  maxBytes?: number;
  /** Of image/png, image/jpeg, image/gif and image/webp; an empty list: the model takes no images. */
  mediaTypes?: readonly string[];
}

/** No image with more pixels is decoded. */
export const PIXELS_MOST = 100_000_000;

/** A model's limits over the defaults: 2,000 pixels, 4.5 MiB, all four types. Throws ConfigurationError. */
export function imageLimitsOf({ id, imageLimits }: { id: string; imageLimits?: ImageLimits }): Required<ImageLimits> {
  const limits = { maxPixels: 2_000, maxBytes: 4_718_592, mediaTypes: IMAGE_TYPES, ...imageLimits };
  const { maxPixels, maxBytes, mediaTypes } = limits;
  if (
    maxPixels >= 1 &&
    maxBytes >= 1 &&
    Array.isArray(mediaTypes) &&
    mediaTypes.every((type) => IMAGE_TYPES.includes(type))
  )
    return limits;
  throw new ConfigurationError(
    `imageLimits of ${id}: maxPixels and maxBytes must be positive, mediaTypes of ${IMAGE_TYPES.join(', ')}`,
  );
}
