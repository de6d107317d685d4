/**
 * The port that scales images. Rule: what is put in place of it decides nothing; it decodes, turns the image the right
 * way up, draws it smaller and encodes it, and what it answers is checked before it is used.
 */
import { scaleByCanvas } from './canvasScaler.ts';
import { scaleBySharp } from './sharpScaler.ts';

export interface Scaled {
  /** Pixels on the longer side; never more than the image has. */
  side: number;
  /** image/png, image/jpeg or image/webp. */
  mediaType: string;
}

/**
 * Answers the image in that type and size: its first frame, upright as its EXIF orientation says. Rejects where it cannot.
 * `from`: the media type of the bytes.
 */
export type ScaleImage = (bytes: Uint8Array, wanted: Scaled, from: string) => Promise<Uint8Array>;

/** A canvas where the platform has one that needs no page, as browsers and their workers do, else sharp. */
export const scaleByPlatform: ScaleImage = (bytes, wanted, from) =>
  (typeof OffscreenCanvas === 'function' && typeof createImageBitmap === 'function' ? scaleByCanvas : scaleBySharp)(
    bytes,
    wanted,
    from,
  );
