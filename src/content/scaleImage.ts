/**
 * The port that scales images, and two scalers: a browser's canvas, and sharp if it is installed. Invariant: a scaler
 * decides nothing. It decodes, rotates upright, scales and encodes; its result is checked. sharp is loaded with the
 * first image, never by a bundler, and only decodes within limits.
 */
import { PIXELS_MOST } from './imageFormat.ts';

/** An image after it was scaled. */
export interface Scaled {
  /** Pixels on the longer side, at most those of the image. */
  side: number;
  /** One of image/png, image/jpeg and image/webp. */
  mediaType: string;
}

/**
 * Resolves to the image in that type and size: its first frame, upright according to its EXIF orientation. Rejects if
 * that fails. `from` is the media type of the bytes.
 */
export type ScaleImage = (bytes: Uint8Array, wanted: Scaled, from: string) => Promise<Uint8Array>;

/** Uses a canvas if the platform has one without a page, as browsers and workers do. Otherwise it uses sharp. */
export const scaleByPlatform: ScaleImage = (bytes, wanted, from) =>
  (typeof OffscreenCanvas === 'function' && typeof createImageBitmap === 'function' ? scaleByCanvas : scaleBySharp)(
    bytes,
    wanted,
    from,
  );

const SHARP_QUALITY = 85;
const SECONDS_MOST = 30;

interface Drawing {
  autoOrient(): Drawing;
  resize(options: { width: number; height: number; fit: 'inside'; withoutEnlargement: true }): Drawing;
  flatten(options: { background: string }): Drawing;
  timeout(options: { seconds: number }): Drawing;
  png(): Drawing;
  jpeg(options: { quality: number }): Drawing;
  webp(options: { quality: number }): Drawing;
  toBuffer(): Promise<Uint8Array>;
}
type Sharp = (bytes: Uint8Array, options: { limitInputPixels: number; failOn: 'error' }) => Drawing;

/** A variable prevents bundlers from resolving the optional package. */
const PEERS = ['sharp'];
let sharp: Promise<Sharp> | undefined;

async function loadSharp(): Promise<Sharp> {
  const [peer = ''] = PEERS;
  try {
    const loaded = (await import(/* @vite-ignore */ /* webpackIgnore: true */ peer)) as { default: Sharp };
    return loaded.default;
  } catch (cause) {
    throw new Error('the optional package sharp cannot be loaded: npm install sharp', { cause });
  }
}

export const scaleBySharp: ScaleImage = async (bytes, { side, mediaType }) => {
  sharp ??= loadSharp();
  const draw = await sharp;
  const drawing = draw(bytes, { limitInputPixels: PIXELS_MOST, failOn: 'error' })
    .timeout({ seconds: SECONDS_MOST })
    .autoOrient()
    .resize({ width: side, height: side, fit: 'inside', withoutEnlargement: true });
  const encoded = await encodedAs(mediaType, drawing).toBuffer();
  return new Uint8Array(encoded);
};

function encodedAs(mediaType: string, drawing: Drawing): Drawing {
  if (mediaType === 'image/png') return drawing.png();
  if (mediaType === 'image/webp') return drawing.webp({ quality: SHARP_QUALITY });
  // Transparent areas would become black.
  return drawing.flatten({ background: '#fff' }).jpeg({ quality: SHARP_QUALITY });
}

const CANVAS_QUALITY = 0.85;

export const scaleByCanvas: ScaleImage = async (bytes, { side, mediaType }, from) => {
  const blob = new Blob([bytes as Uint8Array<ArrayBuffer>], { type: from });
  const picture = await createImageBitmap(blob, { imageOrientation: 'from-image' });
  try {
    const factor = Math.min(1, side / Math.max(picture.width, picture.height));
    const width = Math.max(1, Math.round(picture.width * factor));
    const height = Math.max(1, Math.round(picture.height * factor));
    const canvas = new OffscreenCanvas(width, height);
    const pen = canvas.getContext('2d');
    if (!pen) throw new Error('the browser gives no canvas to draw on');
    if (mediaType === 'image/jpeg') {
      // Transparent areas would become black.
      pen.fillStyle = '#fff';
      pen.fillRect(0, 0, width, height);
    }
    pen.imageSmoothingQuality = 'high';
    pen.drawImage(picture, 0, 0, width, height);
    const encoded = await canvas.convertToBlob({ type: mediaType, quality: CANVAS_QUALITY });
    return new Uint8Array(await encoded.arrayBuffer());
  } finally {
    picture.close();
  }
};
