/**
 * Fits one image to one model. Invariant: an image that fits is unchanged, others are scaled until they fit. An image
 * that cannot fit is refused with a reason for the model. Nothing is decoded if the header is unreadable or states
 * too many pixels. `image-size` is not used: it reads beyond the given bytes, and a broken JPEG of 32 MiB blocks it
 * for seconds.
 */
import { type ImageLimits, imageType, PIXELS_MOST } from './imageFormat.ts';
import type { ScaleImage } from './scaleImage.ts';

export type Fitted = { kind: 'fits'; mediaType: string; bytes: Uint8Array } | { kind: 'refused'; why: string };

/** Shares of the longer side that are tried if the image has too many bytes. */
const SHARES = [1, 0.75, 0.5, 0.35, 0.2, 0.1];

const refused = (why: string): Fitted => ({ kind: 'refused', why });
const encodedLength = ({ length }: Uint8Array): number => Math.ceil(length / 3) * 4;
const longer = ({ width, height }: Dimensions): number => Math.max(width, height);

/** Rejects if `scale` rejects. */
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
    for (const outputType of outputTypes(mediaType, mediaTypes)) {
      const scaled = await scale(bytes, { side, mediaType: outputType }, mediaType);
      const dimensions = imageType(scaled) === outputType ? dimensionsOf(scaled, outputType) : undefined;
      const isSmall = dimensions && longer(dimensions) <= side && encodedLength(scaled) <= maxBytes;
      if (isSmall) return { kind: 'fits', mediaType: outputType, bytes: scaled };
    }
  }
  return refused(`no smaller form of it has at most ${maxBytes} bytes`);
}

/**
 * Returns the types to try, in order: JPEG stays JPEG if possible. For others PNG comes first, which keeps sharp
 * edges.
 */
function outputTypes(from: string, allowed: readonly string[]): string[] {
  const order = ['image/png', 'image/jpeg', 'image/webp'];
  if (from === 'image/jpeg') order.unshift('image/jpeg');
  return [...new Set(order)].filter((type) => allowed.includes(type));
}

export interface Dimensions {
  width: number;
  height: number;
}

/** Returns the size of an image, or undefined if its header is unreadable. */
export function dimensionsOf(bytes: Uint8Array, mediaType: string): Dimensions | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const size = READERS[mediaType]?.(view);
    return size && size.width > 0 && size.height > 0 ? size : undefined;
  } catch {
    // Reading past the end throws a RangeError.
    return undefined;
  }
}

type Reader = (view: DataView) => Dimensions | undefined;
const READERS: { readonly [mediaType: string]: Reader } = {
  'image/png': (view) =>
    fourAt(view, 12) === 'IHDR' ? { width: view.getUint32(16), height: view.getUint32(20) } : undefined,
  'image/gif': (view) => ({ width: view.getUint16(6, true), height: view.getUint16(8, true) }),
  'image/jpeg': jpegSize,
  'image/webp': webpSize,
};

function fourAt(view: DataView, offset: number): string {
  return String.fromCharCode(...[0, 1, 2, 3].map((at) => view.getUint8(offset + at)));
}

/** Searches the segments for the frame header. */
function jpegSize(view: DataView): Dimensions | undefined {
  let at = 2;
  for (;;) {
    if (view.getUint8(at) !== 0xff) return undefined;
    const marker = view.getUint8(at + 1);
    // Fill bytes, and markers without a length.
    if (marker === 0xff) at += 1;
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) at += 2;
    else if (isFrame(marker)) return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    // The pixels begin, or the image ends, without a frame header.
    else if (marker === 0xda || marker === 0xd9) return undefined;
    else at += 2 + Math.max(2, view.getUint16(at + 2));
  }
}

/** Any frame header. The three exceptions in this range are tables. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;

function webpSize(view: DataView): Dimensions | undefined {
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
