/**
 * Fits one image to one model. Rule: what fits is not touched; what does not is scaled until it does; what cannot be is refused
 * with a reason that a model can be told, and nothing is decoded whose header is unreadable or states too many pixels.
 */
import { type ImageLimits, imageType, PIXELS_MOST } from './imageFormat.ts';
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

export interface Dimensions {
  width: number;
  height: number;
}

/** Of an image of this type; undefined where its header does not say. */
export function dimensionsOf(bytes: Uint8Array, mediaType: string): Dimensions | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const found = READERS[mediaType]?.(view);
    return found && found.width > 0 && found.height > 0 ? found : undefined;
  } catch {
    // Reading behind the end throws a RangeError.
    return undefined;
  }
}

type Reader = (view: DataView) => Dimensions | undefined;
const READERS: { readonly [mediaType: string]: Reader } = {
  'image/png': (view) =>
    fourAt(view, 12) === 'IHDR' ? { width: view.getUint32(16), height: view.getUint32(20) } : undefined,
  'image/gif': (view) => ({ width: view.getUint16(6, true), height: view.getUint16(8, true) }),
  'image/jpeg': ofJpeg,
  'image/webp': ofWebp,
};

function fourAt(view: DataView, offset: number): string {
  return String.fromCharCode(...[0, 1, 2, 3].map((at) => view.getUint8(offset + at)));
}

/** Walks the segments to the frame header. */
function ofJpeg(view: DataView): Dimensions | undefined {
  let at = 2;
  for (;;) {
    if (view.getUint8(at) !== 0xff) return undefined;
    const marker = view.getUint8(at + 1);
    // Fill bytes, and markers that stand alone.
    if (marker === 0xff) at += 1;
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) at += 2;
    else if (isFrame(marker)) return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    // The pixels begin, or the image ends, and no frame was told.
    else if (marker === 0xda || marker === 0xd9) return undefined;
    else at += 2 + Math.max(2, view.getUint16(at + 2));
  }
}

/** Any of the frame headers; the three others of that range are tables. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;

function ofWebp(view: DataView): Dimensions | undefined {
  switch (fourAt(view, 12)) {
    case 'VP8X':
      return { width: 1 + uint24(view, 24), height: 1 + uint24(view, 27) };
    case 'VP8L': {
      const bits = view.getUint32(21, true);
      return view.getUint8(20) === 0x2f
        ? { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) }
        : undefined;
    }
    case 'VP8 ':
      return uint24(view, 23) === 0x2a019d
        ? { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff }
        : undefined;
    default:
      return undefined;
  }
}

const uint24 = (view: DataView, at: number): number => view.getUint16(at, true) + (view.getUint8(at + 2) << 16);
