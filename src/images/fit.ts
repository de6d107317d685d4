/**
 * One image as one model takes it. Rule: what fits is not touched; what does not is scaled until it does; what cannot be
 * is refused with a reason that a model can be told, and nothing is decoded whose header is unreadable or too large.
 */
import { type Dimensions, dimensionsOf } from './dimensions.ts';
import { imageType } from './imageData.ts';
import { type ImageLimits, PIXELS_MOST } from './limits.ts';
import type { ScaleImage } from './scale.ts';

export type Fitted = { kind: 'fits'; mediaType: string; bytes: Uint8Array } | { kind: 'refused'; why: string };

/** Of the longer side: how much is kept where the whole takes too many bytes. */
const SHARES = [1, 0.75, 0.5, 0.35, 0.2, 0.1];

const refused = (why: string): Fitted => ({ kind: 'refused', why });
const encodedLength = ({ length }: Uint8Array): number => Math.ceil(length / 3) * 4;
const longer = ({ width, height }: Dimensions): number => Math.max(width, height);

/** Rejects where `scale` does. */
export async function fitted(bytes: Uint8Array, limits: Required<ImageLimits>, scale: ScaleImage): Promise<Fitted> {
  const { maxPixels, maxBytes, mediaTypes } = limits;
  const mediaType = imageType(bytes);
  const size = mediaType && dimensionsOf(bytes, mediaType);
  if (!mediaType || !size) return refused('its header cannot be read');
  if (longer(size) <= maxPixels && encodedLength(bytes) <= maxBytes && mediaTypes.includes(mediaType))
    return { kind: 'fits', mediaType, bytes };
  if (size.width * size.height > PIXELS_MOST) return refused(`${size.width} × ${size.height} pixels are too many`);
  const most = Math.min(longer(size), maxPixels);
  for (const share of SHARES) {
    const side = Math.max(1, Math.floor(most * share));
    for (const wanted of outputTypes(mediaType, mediaTypes)) {
      const scaled = await scale(bytes, { side, mediaType: wanted }, mediaType);
      const dimensions = imageType(scaled) === wanted ? dimensionsOf(scaled, wanted) : undefined;
      const small = dimensions && longer(dimensions) <= side && encodedLength(scaled) <= maxBytes;
      if (small) return { kind: 'fits', mediaType: wanted, bytes: scaled };
    }
  }
  return refused(`no smaller form of it has at most ${maxBytes} bytes`);
}

/** The types to try, in order: a photograph stays one, of a drawing the sharp edges are tried first. */
function outputTypes(from: string, allowed: readonly string[]): string[] {
  const order = ['image/png', 'image/jpeg', 'image/webp'];
  if (from === 'image/jpeg') order.unshift('image/jpeg');
  return [...new Set(order)].filter((type) => allowed.includes(type));
}
