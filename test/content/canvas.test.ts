/** Tests scaling on a canvas with a recorded one. `test/browser/` uses the canvas of a browser. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { scaleByCanvas, scaleByPlatform } from '../../src/content/scaleImage.ts';
import { dot } from '../support/samplePictures.ts';

/** Returns a canvas that records its operations. */
function canvas(picture: { width: number; height: number }, withPen = true) {
  const done: string[] = [];
  const pen = {
    fillStyle: '',
    imageSmoothingQuality: 'low',
    fillRect: (...at: number[]) => void done.push(`fill ${pen.fillStyle} ${at}`),
    drawImage: (_: unknown, ...at: number[]) => void done.push(`draw ${pen.imageSmoothingQuality} ${at}`),
  };
  vi.stubGlobal('createImageBitmap', async ({ type, size }: Blob, options: object) => {
    done.push(`read ${type} ${size} ${JSON.stringify(options)}`);
    return { ...picture, close: () => void done.push('close') };
  });
  vi.stubGlobal(
    'OffscreenCanvas',
    class {
      constructor(width: number, height: number) {
        done.push(`canvas ${width} × ${height}`);
      }
      getContext = () => (withPen ? pen : null);
      convertToBlob = async (options: object) => {
        done.push(`write ${JSON.stringify(options)}`);
        return new Blob([new Uint8Array([1, 2])]);
      };
    },
  );
  return done;
}
afterEach(() => vi.unstubAllGlobals());

describe('on a canvas', () => {
  it.each([
    [4_000, 3_000, 2_000, '2000 × 1500'],
    [3_000, 4_000, 2_000, '1500 × 2000'],
    [30_000, 1, 2_000, '2000 × 1'],
    [1, 30_000, 2_000, '1 × 2000'],
    [9, 5, 20, '9 × 5'],
    [9, 5, 9, '9 × 5'],
    [1_001, 667, 1_000, '1000 × 666'],
  ])('%i × %i pixels within %i become %s', async (width, height, side, size) => {
    const done = canvas({ width, height });
    await scaleByCanvas(dot, { side, mediaType: 'image/png' }, 'image/gif');
    expect(done[1]).toBe(`canvas ${size}`);
    expect(done[2]).toBe(`draw high 0,0,${size.replace(' × ', ',')}`);
  });

  it.each(['image/png', 'image/jpeg', 'image/webp'])(
    'an image becomes %s, upright; only JPEG is put on white',
    async (mediaType) => {
      const done = canvas({ width: 8, height: 4 });
      expect(await scaleByPlatform(dot, { side: 4, mediaType }, 'image/gif')).toEqual(new Uint8Array([1, 2]));
      expect(done).toEqual([
        `read image/gif ${dot.length} {"imageOrientation":"from-image"}`,
        'canvas 4 × 2',
        ...(mediaType === 'image/jpeg' ? ['fill #fff 0,0,4,2'] : []),
        'draw high 0,0,4,2',
        `write {"type":"${mediaType}","quality":0.85}`,
        'close',
      ]);
    },
  );

  it('the decoded image is closed even if nothing can be drawn', async () => {
    const done = canvas({ width: 8, height: 4 }, false);
    await expect(scaleByCanvas(dot, { side: 4, mediaType: 'image/png' }, 'image/gif')).rejects.toThrow('no canvas');
    expect(done.at(-1)).toBe('close');
  });

  it.each(['createImageBitmap', 'OffscreenCanvas'])('without %s sharp is used', async (missing) => {
    const done = canvas({ width: 8, height: 4 });
    vi.stubGlobal(missing, undefined);
    expect(await scaleByPlatform(dot, { side: 1, mediaType: 'image/png' }, 'image/png')).not.toHaveLength(2);
    expect(done).toEqual([]);
  });
});
