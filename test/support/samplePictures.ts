/**
 * Images for tests. Invariant: an encoder outside the library makes every image that is decoded. All others are
 * hand-written headers.
 */
import sharp from 'sharp';
import type { LogHandle, LogStore } from '../../src/index.ts';

/** One red pixel. */
export const dot = new Uint8Array(
  Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC', 'base64'),
);

type Format = 'png' | 'jpeg' | 'webp' | 'gif';

/** An area of one colour, so that even a large image has few bytes. */
export async function plain(width: number, height: number, format: Format = 'png'): Promise<Uint8Array> {
  const area = sharp({ create: { width, height, channels: 3, background: { r: 200, g: 30, b: 40 } } });
  return new Uint8Array(await area.toFormat(format).toBuffer());
}

/** Noise, the same each time, which no encoder makes small. */
export async function noise(width: number, height: number, format: Format = 'png'): Promise<Uint8Array> {
  const pixels = new Uint8Array(width * height * 3);
  let state = 1;
  for (let at = 0; at < pixels.length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    pixels[at] = state >>> 24;
  }
  const picture = sharp(pixels, { raw: { width, height, channels: 3 } });
  return new Uint8Array(await picture.toFormat(format).toBuffer());
}

/** A JPEG whose stored upper half is red and lower half is blue. EXIF orientation 6 requires a turn to the right. */
export async function turned(width: number, height: number): Promise<Uint8Array> {
  const half = Buffer.from(await plain(width, Math.floor(height / 2)));
  const area = sharp({ create: { width, height, channels: 3, background: { r: 0, g: 0, b: 255 } } });
  const picture = area.composite([{ input: half, top: 0, left: 0 }]);
  return new Uint8Array(await picture.withMetadata({ orientation: 6 }).jpeg().toBuffer());
}

/** Three frames: red, green, blue. */
export async function animated(width: number, height: number, format: 'gif' | 'webp'): Promise<Uint8Array> {
  const colours = [
    [255, 0, 0],
    [0, 255, 0],
    [0, 0, 255],
  ];
  const pixels = new Uint8Array(width * height * 3 * colours.length);
  colours.forEach((colour, frame) => {
    for (let at = 0; at < width * height; at++) pixels.set(colour, (frame * width * height + at) * 3);
  });
  const raw = { width, height: height * colours.length, channels: 3 as const, pageHeight: height };
  return new Uint8Array(
    await sharp(pixels, { raw, animated: true } as never)
      .toFormat(format)
      .toBuffer(),
  );
}

/** The header of a PNG that claims this size, without image data. */
export function pngHeader(width: number, height: number): Uint8Array {
  const bytes = new Uint8Array(33);
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]);
  const view = new DataView(bytes.buffer);
  view.setUint32(16, width);
  view.setUint32(20, height);
  bytes.set([8, 2, 0, 0, 0], 24);
  return bytes;
}

export const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

/** The image as an independent decoder reads it. */
export async function seen(bytes: Uint8Array | string): Promise<{ format: string; width: number; height: number }> {
  const { format, width, height } = await sharp(
    typeof bytes === 'string' ? Buffer.from(bytes, 'base64') : bytes,
  ).metadata();
  return { format, width, height };
}

/** Returns the store with the blob methods that `blobs` returns. Without these methods, bytes go into the entries. */
export function withBlobs(
  store: LogStore,
  blobs: (handle: LogHandle) => Pick<LogHandle, 'putBlob' | 'getBlob'>,
): LogStore {
  const open = async (id: string): Promise<LogHandle> => {
    const handle = await store.open(id);
    return {
      read: (from) => handle.read(from),
      append: (entries, seq) => handle.append(entries, seq),
      close: () => handle.close(),
      ...blobs(handle),
    };
  };
  return { ...store, open };
}
