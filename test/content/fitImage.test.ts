/** Tests how one image is fitted to one model, with sharp as the scaler. */
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { fitted } from '../../src/content/fitImage.ts';
import { type ImageLimits, imageLimitsOf } from '../../src/content/imageFormat.ts';
import { type Scaled, type ScaleImage, scaleBySharp } from '../../src/content/scaleImage.ts';
import { openai } from '../../src/models/openai/openai.ts';
import { animated, base64, dot, noise, plain, pngHeader, seen, turned } from '../support/samplePictures.ts';

const limits = (imageLimits: ImageLimits = {}) => imageLimitsOf({ id: 'm', imageLimits });
const never: ScaleImage = async () => {
  throw new Error('nothing is to be decoded');
};
async function drawn(bytes: Uint8Array, imageLimits?: ImageLimits) {
  const wanted: Scaled[] = [];
  const found = await fitted(bytes, limits(imageLimits), (source, scaled, from) => {
    wanted.push(scaled);
    return scaleBySharp(source, scaled, from);
  });
  if (found.kind === 'refused') throw new Error(found.why);
  return { ...found, wanted };
}

it.each(['maxPixels', 'maxBytes', 'mediaTypes'] as const)('a limit %s that is undefined is the default one', (name) => {
  const imageLimits = { [name]: undefined } as ImageLimits;
  expect(limits(imageLimits)).toEqual(limits());
  expect(openai('m', { apiKey: 'k', imageLimits }).id).toBe('m');
});

describe('S003-32 an image that fits is unchanged', () => {
  it.each([
    ['one pixel', () => dot],
    ['exactly 2,000 pixels wide', () => plain(2_000, 10)],
    ['exactly 2,000 pixels high', () => plain(10, 2_000, 'jpeg')],
    ['an animation', () => animated(30, 20, 'gif')],
  ])('%s', async (_, make) => {
    const bytes = await make();
    expect(await fitted(bytes, limits(), never)).toMatchObject({ kind: 'fits', bytes });
  });

  it('with exactly the allowed bytes of base64', async () => {
    const bytes = await noise(40, 40);
    const most = base64(bytes).length;
    expect(await fitted(bytes, limits({ maxBytes: most }), never)).toMatchObject({ kind: 'fits', bytes });
    await expect(fitted(bytes, limits({ maxBytes: most - 1 }), never)).rejects.toThrow('nothing is to be decoded');
  });
});

describe('S003-32 a scaler makes smaller and smaller images', () => {
  const asked = async (bytes: Uint8Array, imageLimits: ImageLimits) => {
    const wanted: string[] = [];
    await fitted(bytes, limits(imageLimits), async (_, { side, mediaType }) => {
      wanted.push(`${side} ${mediaType.slice('image/'.length)}`);
      return new Uint8Array(0);
    });
    return wanted.join(', ');
  };
  const gif = new Uint8Array([...Buffer.from('GIF89a'), 0xe8, 0x03, 10, 0]);
  it.each([
    [pngHeader(3_000, 10), ['image/png'], 2_000, '2000 png, 1500 png, 1000 png, 700 png, 400 png, 200 png'],
    [pngHeader(10, 3_000), ['image/webp'], 2_000, '2000 webp, 1500 webp, 1000 webp, 700 webp, 400 webp, 200 webp'],
    [pngHeader(100, 50), ['image/jpeg'], 2_000, '100 jpeg, 75 jpeg, 50 jpeg, 35 jpeg, 20 jpeg, 10 jpeg'],
    [pngHeader(9, 9), ['image/png'], 5, '5 png, 3 png, 2 png, 1 png, 1 png, 1 png'],
    [gif, ['image/gif'], 500, ''],
  ])('%#: of each share of its longer side', async (bytes, mediaTypes, maxPixels, wanted) => {
    expect(await asked(bytes, { mediaTypes, maxPixels, maxBytes: 1 })).toBe(wanted);
  });

  it('first as JPEG for a JPEG, and as PNG for all others', async () => {
    const types = async (bytes: Uint8Array) =>
      (await asked(bytes, { maxBytes: 1 }))
        .split(', ')
        .slice(0, 3)
        .map((each) => each.split(' ')[1]);
    expect(await types(await plain(9, 9, 'jpeg'))).toEqual(['jpeg', 'png', 'webp']);
    for (const bytes of [gif, pngHeader(9, 9), await plain(9, 9, 'webp')])
      expect(await types(bytes)).toEqual(['png', 'jpeg', 'webp']);
  });

  it('and of what it gives the encoded bytes count, as they are sent', async () => {
    const scaled = new Uint8Array([...pngHeader(100, 10), ...new Uint8Array(100)]);
    const most = base64(scaled).length;
    const found = (maxBytes: number) =>
      fitted(pngHeader(3_000, 10), limits({ mediaTypes: ['image/png'], maxBytes }), async () => scaled);
    expect(await found(most)).toMatchObject({ kind: 'fits', bytes: scaled });
    for (const maxBytes of [most - 1, scaled.length]) expect(await found(maxBytes)).toMatchObject({ kind: 'refused' });
  });

  it('and sharp makes none larger', async () => {
    expect(await seen(await scaleBySharp(dot, { side: 9, mediaType: 'image/png' }, 'image/png'))).toMatchObject({
      width: 1,
      height: 1,
    });
  });
});

describe('S003-32 an image that does not fit is scaled until it fits', () => {
  it('the longer side becomes 2,000 pixels, the other keeps its share, the type stays', async () => {
    for (const [format, width, height] of [
      ['png', 4_000, 3_000],
      ['jpeg', 3_000, 4_000],
    ] as const) {
      const { mediaType, bytes, wanted } = await drawn(await plain(width, height, format));
      expect(mediaType).toBe(`image/${format}`);
      expect(await seen(bytes)).toEqual({ format, width: width / 2, height: height / 2 });
      expect(wanted).toEqual([{ side: 2_000, mediaType: `image/${format}` }]);
    }
  });

  it('an image of few pixels and too many bytes becomes a JPEG before it becomes smaller', async () => {
    const { mediaType, bytes } = await drawn(await noise(1_200, 900), { maxBytes: 1_500_000 });
    expect([mediaType, await seen(bytes)]).toEqual(['image/jpeg', { format: 'jpeg', width: 1_200, height: 900 }]);
    expect(base64(bytes).length).toBeLessThanOrEqual(1_500_000);
  });

  it('and smaller, if that is not enough', async () => {
    const { bytes, wanted } = await drawn(await noise(1_200, 900), { maxBytes: 100_000 });
    expect(base64(bytes).length).toBeLessThanOrEqual(100_000);
    expect((await seen(bytes)).width).toBeLessThan(1_200);
    expect(wanted.map(({ side }) => side)).toEqual([...wanted.map(({ side }) => side)].sort((a, b) => b - a));
  });

  it('an image of a type that the model refuses gets another type', async () => {
    for (const format of ['gif', 'webp'] as const) {
      const { mediaType } = await drawn(await plain(30, 30, format), { mediaTypes: ['image/jpeg', 'image/png'] });
      expect(mediaType).toBe('image/png');
    }
    expect((await drawn(dot, { mediaTypes: ['image/webp'] })).mediaType).toBe('image/webp');
  });

  it('a photograph is rotated upright by its orientation', async () => {
    const { bytes } = await drawn(await turned(3_000, 1_000));
    const { data, info } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true });
    expect([info.width, info.height]).toEqual([667, 2_000]);
    const [left, right] = [data.subarray(0, 3), data.subarray((info.width - 1) * 3, info.width * 3)];
    expect([(left[2] ?? 0) > 200, (right[0] ?? 0) > 150]).toEqual([true, true]);
  });

  it('an animation becomes its first frame', async () => {
    for (const format of ['gif', 'webp'] as const) {
      const { mediaType, bytes } = await drawn(await animated(300, 200, format), { maxPixels: 100 });
      expect([mediaType, await seen(bytes)]).toEqual(['image/png', { format: 'png', width: 100, height: 67 }]);
      expect((await sharp(bytes).stats()).dominant).toMatchObject({ r: 248 });
    }
  });

  it('transparent areas become white in a JPEG', async () => {
    const glass = sharp({ create: { width: 30, height: 30, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } } });
    const { bytes } = await drawn(new Uint8Array(await glass.png().toBuffer()), { mediaTypes: ['image/jpeg'] });
    expect([...(await sharp(bytes).raw().toBuffer()).subarray(0, 3)]).toEqual([255, 255, 255]);
  });

  it('an image of 30,000 × 1 pixels keeps at least one pixel of its width', async () => {
    expect(await seen((await drawn(await plain(30_000, 1))).bytes)).toMatchObject({ width: 2_000, height: 1 });
  });
});

describe('an image is refused before anything is decoded', () => {
  const refused = async (bytes: Uint8Array) => {
    const found = await fitted(bytes, limits(), never);
    return found.kind === 'refused' && found.why;
  };

  it('if its header states more than 100 million pixels', async () => {
    expect(await refused(pngHeader(60_000, 60_000))).toBe('60000 × 60000 pixels are too many');
    expect(await refused(pngHeader(4_294_967_295, 1))).toBe('4294967295 × 1 pixels are too many');
  });

  it('if its header is incomplete', async () => {
    expect(await refused(dot.subarray(0, 12))).toBe('its header cannot be read');
    expect(await refused((await plain(9, 9, 'jpeg')).subarray(0, 20))).toBe('its header cannot be read');
  });
});

describe('the result of a scaler is checked', () => {
  const answers = (answer: () => Uint8Array | Promise<Uint8Array>, imageLimits?: ImageLimits) =>
    fitted(pngHeader(3_000, 10), limits(imageLimits), async () => answer());

  it.each([
    ['no image', () => new Uint8Array(9)],
    ['another type than was asked for', () => plain(5, 5, 'gif')],
    ['as large as before', () => pngHeader(3_000, 10)],
  ])('%s', async (_, answer) => {
    expect(await answers(answer)).toMatchObject({ kind: 'refused' });
  });

  it('and it is called a limited number of times', async () => {
    let asked = 0;
    const count = () => {
      asked += 1;
      return new Uint8Array(0);
    };
    expect(await answers(count)).toMatchObject({
      kind: 'refused',
      why: 'no smaller form of it has at most 4718592 bytes',
    });
    expect(asked).toBe(18);
  });

  it('a damaged image is an error of the decoder', async () => {
    const bytes = (await noise(2_500, 10)).slice(0, 5_000);
    await expect(fitted(bytes, limits(), scaleBySharp)).rejects.toThrow();
  });
});

describe('limits of a model', () => {
  it('override the defaults key by key', () => {
    expect(limits({ maxPixels: 1_568 })).toEqual({
      maxPixels: 1_568,
      maxBytes: 4.5 * 1_048_576,
      mediaTypes: ['image/png', 'image/jpeg', 'image/gif', 'image/webp'],
    });
  });

  it.each([
    { maxPixels: 0 },
    { maxPixels: Number.NaN },
    { maxBytes: -1 },
    { maxBytes: 'much' as never },
    { mediaTypes: ['image/tiff'] },
    { mediaTypes: 'image/png' as never },
  ])('%o are refused at start', (imageLimits) => {
    expect(() => openai('m', { apiKey: 'k', imageLimits })).toThrow('imageLimits of m');
  });
});
