/**
 * Images in a browser (docs/internals/contracts.md, REQ-BED-013): an accepted image is sent byte for byte; a larger one
 * is scaled on a canvas, upright.
 */
import { strict as assert } from 'node:assert';
import sharp from 'sharp';
import { bundled, written } from './chromium.mjs';

const area = (width, height, background) => sharp({ create: { width, height, channels: 3, background } });

/** The stored image is blue above red. Its orientation puts blue on the right. */
async function turned() {
  const red = await area(2400, 300, '#f00').png().toBuffer();
  const picture = area(2400, 600, '#00f').composite([{ input: red, top: 300, left: 0 }]);
  return picture.withMetadata({ orientation: 6 }).jpeg().toBuffer();
}

/** Three frames of 2,100 pixels, the first one red. */
async function animated() {
  const [width, height] = [2100, 10];
  const frames = await Promise.all(
    ['#f00', '#00f', '#00f'].map((colour) => area(width, height, colour).raw().toBuffer()),
  );
  const raw = { width, height: height * frames.length, channels: 3, pageHeight: height };
  return sharp(Buffer.concat(frames), { raw }).gif().toBuffer();
}

/** A header that claims 60,000 by 60,000 pixels. */
function bomb() {
  const bytes = Buffer.alloc(33);
  Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').copy(bytes);
  bytes.writeUInt32BE(60_000, 16);
  bytes.writeUInt32BE(60_000, 20);
  return bytes;
}

export async function imagesOnACanvas() {
  const made = { turned: await turned(), animated: await animated(), bomb: bomb() };
  const input = Object.fromEntries(Object.entries(made).map(([name, bytes]) => [name, bytes.toString('base64')]));
  const found = JSON.parse(await written(await bundled('comparePictures.mjs'), { input }));
  assert.deepEqual(found, {
    termination: 'NaturalEnd',
    references: true,
    shown: [
      'image/png 2000x1000 red blue',
      'image/jpeg 800x2000 red blue',
      'image/jpeg 500x2000 red blue',
      'image/png 2000x10 red red',
      '[An image (image/png) belongs here. It is not shown: 60000 × 60000 pixels are too many.]',
      'image/png 40x20 red blue',
    ],
    untouched: true,
    diagnostics: ['image_not_shown'],
  });
  console.log(`images: ${found.shown.length - 2} scaled on a canvas, 1 refused, 1 byte for byte, as expected`);
}
