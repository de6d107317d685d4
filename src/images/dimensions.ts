/**
 * Width and height as the header of an image states them. Rule: nothing is decoded, nothing outside the bytes is read,
 * and a header that is cut short or makes no sense has no dimensions.
 */
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
