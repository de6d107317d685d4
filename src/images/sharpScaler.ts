/**
 * Scales by sharp, an optional peer. Rule: it is loaded when the first image needs it and by no bundler; where it is
 * not installed, the error says so; what it may decode and how long it may take is bounded.
 */
import { PIXELS_MOST } from './limits.ts';
import type { ScaleImage } from './scale.ts';

const QUALITY = 85;
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

/** A variable, so that what is optional is not looked for when an app is bundled. */
const PEERS = ['sharp'];
let sharp: Promise<Sharp> | undefined;

async function load(): Promise<Sharp> {
  const [peer = ''] = PEERS;
  try {
    const loaded = (await import(/* @vite-ignore */ /* webpackIgnore: true */ peer)) as { default: Sharp };
    return loaded.default;
  } catch (cause) {
    throw new Error('the optional package sharp cannot be loaded: npm install sharp', { cause });
  }
}

export const scaleBySharp: ScaleImage = async (bytes, { side, mediaType }) => {
  sharp ??= load();
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
  if (mediaType === 'image/webp') return drawing.webp({ quality: QUALITY });
  // What is transparent would be black.
  return drawing.flatten({ background: '#fff' }).jpeg({ quality: QUALITY });
}
