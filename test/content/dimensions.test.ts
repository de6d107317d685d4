/** Tests that width and height come from headers alone. */
import fc from 'fast-check';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { dimensionsOf } from '../../src/content/fitImage.ts';
import { IMAGE_TYPES, imageType } from '../../src/content/imageFormat.ts';
import { animated, dot, noise, plain, pngHeader, turned } from '../support/samplePictures.ts';

const read = (bytes: Uint8Array) => dimensionsOf(bytes, imageType(bytes) ?? '');

describe('the header of an image contains its type and size', () => {
  it.each(['png', 'jpeg', 'gif', 'webp'] as const)('%s', async (format) => {
    for (const [width, height] of [
      [1, 1],
      [257, 3],
      [3, 4_099],
    ] as const) {
      const bytes = await plain(width, height, format);
      expect(imageType(bytes)).toBe(`image/${format}`);
      expect(read(bytes)).toEqual({ width, height });
    }
  });

  it('in all three forms of WebP', async () => {
    const lossy = await noise(33, 57, 'webp');
    const lossless = new Uint8Array(
      await sharp(await plain(300, 17))
        .webp({ lossless: true })
        .toBuffer(),
    );
    const extended = await animated(30, 20, 'webp');
    const form = (bytes: Uint8Array): string => Buffer.from(bytes.subarray(12, 16)).toString();
    expect([lossy, lossless, extended].map(form)).toEqual(['VP8 ', 'VP8L', 'VP8X']);
    expect([lossy, lossless, extended].map(read)).toEqual([
      { width: 33, height: 57 },
      { width: 300, height: 17 },
      { width: 30, height: 20 },
    ]);
  });

  it('in progressive JPEG, after fill bytes, and after 200 KB of metadata', async () => {
    const progressive = new Uint8Array(
      await sharp(await plain(40, 50))
        .jpeg({ progressive: true })
        .toBuffer(),
    );
    expect(read(progressive)).toEqual({ width: 40, height: 50 });
    const segment = Buffer.concat([Buffer.from([0xff, 0xe1, 0xff, 0xff]), Buffer.alloc(65_533)]);
    const behind = Buffer.concat([
      progressive.subarray(0, 2),
      segment,
      segment,
      segment,
      Buffer.from([0xff, 0xff, 0xff]),
      progressive.subarray(2),
    ]);
    expect(read(new Uint8Array(behind))).toEqual({ width: 40, height: 50 });
  });

  it('is the size of the stored pixels; an EXIF orientation does not change it', async () => {
    expect(read(await turned(400, 200))).toEqual({ width: 400, height: 200 });
  });

  it('and nothing is decoded: a header alone is enough', () => {
    expect(read(pngHeader(60_000, 60_000))).toEqual({ width: 60_000, height: 60_000 });
  });

  it('in the middle of other bytes too', async () => {
    const bytes = await plain(12, 34, 'gif');
    const around = new Uint8Array(bytes.length + 20);
    around.set(bytes, 7);
    expect(read(around.subarray(7, 7 + bytes.length))).toEqual({ width: 12, height: 34 });
  });
});

const ascii = (text: string): number[] => [...Buffer.from(text)];
const uint = (value: number, bytes: number): number[] =>
  Array.from({ length: bytes }, (_, at) => (value >>> (8 * at)) & 0xff);
const webp = (kind: string, ...rest: number[]): Uint8Array =>
  new Uint8Array([...ascii('RIFF'), 0, 0, 0, 0, ...ascii(`WEBP${kind}`), 0, 0, 0, 0, ...rest]);
const extended = (width: number, height: number) =>
  webp('VP8X', 0, 0, 0, 0, ...uint(width - 1, 3), ...uint(height - 1, 3));
const lossless = (width: number, height: number, above = 0) =>
  webp('VP8L', 0x2f, ...uint(((width - 1) | ((height - 1) << 14) | (above << 28)) >>> 0, 4));
const lossy = (width: number, height: number) =>
  webp('VP8 ', 0, 0, 0, 0x9d, 0x01, 0x2a, ...uint(width, 2), ...uint(height, 2));
const gif = (width: number, height: number) =>
  new Uint8Array([...ascii('GIF89a'), ...uint(width, 2), ...uint(height, 2)]);
/** Segments, then a frame header of 3 × 5. */
const jpeg = (frame: number, ...before: number[]) =>
  new Uint8Array([0xff, 0xd8, ...before, 0xff, frame, 0, 17, 8, 0, 5, 0, 3, 3]);
const segment = (marker: number) => [0xff, marker, 0, 6, 9, 9, 9, 9];
const all = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);
const TABLES = [0xc4, 0xc8, 0xcc];
const FRAMES = all(0xc0, 0xcf).filter((marker) => !TABLES.includes(marker));

describe('a size of several bytes is read from all of them', () => {
  it.each([
    ['PNG', pngHeader, [1, 255, 65_537, 4_294_967_295]],
    ['GIF', gif, [1, 256, 65_535]],
    ['extended WebP', extended, [1, 256, 65_536, 65_537, 16_777_216]],
    ['lossless WebP', lossless, [1, 257, 4_096, 16_384]],
    ['lossy WebP', lossy, [1, 257, 16_383]],
  ] as const)('%s', (_, make, sizes) => {
    for (const width of sizes) for (const height of sizes) expect(read(make(width, height))).toEqual({ width, height });
  });

  it('without the bits beside it: the scale of lossy, alpha and version of lossless WebP', () => {
    expect(read(lossy(0x4000 | 7, 0xc000 | 9))).toEqual({ width: 7, height: 9 });
    expect(read(lossless(7, 9, 0xf))).toEqual({ width: 7, height: 9 });
  });

  it('JPEG: every frame header, and none of the tables and other segments before it', () => {
    for (const frame of FRAMES) expect(read(jpeg(frame))).toEqual({ width: 3, height: 5 });
    for (const marker of [...TABLES, ...all(0xdb, 0xfe)])
      expect(read(jpeg(0xc0, ...segment(marker)))).toEqual({ width: 3, height: 5 });
    for (const marker of [0x01, ...all(0xd0, 0xd7)])
      expect(read(jpeg(0xc2, 0xff, marker))).toEqual({ width: 3, height: 5 });
    for (const marker of [0xd9, 0xda]) expect(read(jpeg(0xc0, ...segment(marker)))).toBeUndefined();
  });
});

describe('an unreadable header has no size', () => {
  it.each(['png', 'jpeg', 'gif', 'webp'] as const)('cut anywhere: %s', async (format) => {
    const whole = await plain(20, 10, format);
    for (let length = 0; length < Math.min(whole.length, 700); length++) {
      const found = dimensionsOf(whole.subarray(0, length), `image/${format}`);
      expect([undefined, '20 × 10']).toContain(found && `${found.width} × ${found.height}`);
    }
    expect(dimensionsOf(whole.subarray(0, 8), `image/${format}`)).toBeUndefined();
  });

  it('zero wide, zero high, or of an unknown type', () => {
    expect(read(pngHeader(0, 5))).toBeUndefined();
    expect(read(pngHeader(5, 0))).toBeUndefined();
    expect(dimensionsOf(dot, 'image/tiff')).toBeUndefined();
    expect(dimensionsOf(dot, '__proto__')).toBeUndefined();
  });

  it('a JPEG whose segments have no length ends the search', () => {
    const endless = new Uint8Array(3_000_000);
    endless.set([0xff, 0xd8]);
    for (let at = 2; at + 4 <= endless.length; at += 4) endless.set([0xff, 0xe1, 0, 0], at);
    expect(dimensionsOf(endless, 'image/jpeg')).toBeUndefined();
  });

  it('any bytes give a size of whole positive numbers, or none', () => {
    const heads = [[0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], [0xff, 0xd8, 0xff], [...Buffer.from('GIF89a')]];
    fc.assert(
      fc.property(
        fc.constantFrom(...heads, [...Buffer.from('RIFF....WEBP')]),
        fc.uint8Array({ maxLength: 80 }),
        fc.constantFrom(...IMAGE_TYPES),
        (head, rest, mediaType) => {
          const found = dimensionsOf(new Uint8Array([...head, ...rest]), mediaType);
          expect(!found || (Number.isInteger(found.width) && found.width > 0 && found.height > 0)).toBe(true);
        },
      ),
      { numRuns: 3_000 },
    );
  });
});
