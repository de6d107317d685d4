/** Width and height are read from headers alone. */
import fc from 'fast-check';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { dimensionsOf } from '../../src/content/fit.ts';
import { IMAGE_TYPES, imageType } from '../../src/content/imageFormat.ts';
import { animated, dot, noise, plain, pngHeader, turned } from '../support/pictures.ts';

const read = (bytes: Uint8Array) => dimensionsOf(bytes, imageType(bytes) ?? '');

describe('the header of an image says its type and size', () => {
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

  it('in progressive JPEG, behind fill bytes, and behind 200 KB of metadata', async () => {
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

  it('is that of the stored pixels; an EXIF orientation does not change it', async () => {
    expect(read(await turned(400, 200))).toEqual({ width: 400, height: 200 });
  });

  it('and nothing is decoded: a header alone is enough', () => {
    expect(read(pngHeader(60_000, 60_000))).toEqual({ width: 60_000, height: 60_000 });
  });

  it('also where the bytes lie in the middle of others', async () => {
    const bytes = await plain(12, 34, 'gif');
    const around = new Uint8Array(bytes.length + 20);
    around.set(bytes, 7);
    expect(read(around.subarray(7, 7 + bytes.length))).toEqual({ width: 12, height: 34 });
  });
});

describe('a header that cannot be read has no size', () => {
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

  it('a JPEG whose segments have no length does not hold the reader up', () => {
    const endless = new Uint8Array(3_000_000);
    endless.set([0xff, 0xd8]);
    for (let at = 2; at + 4 <= endless.length; at += 4) endless.set([0xff, 0xe1, 0, 0], at);
    expect(dimensionsOf(endless, 'image/jpeg')).toBeUndefined();
  });

  it('any bytes at all give a size of whole positive numbers or none', () => {
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
