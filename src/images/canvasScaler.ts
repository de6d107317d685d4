/** Scales by a browser's own decoder and canvas. Rule: the picture in memory is let go of, whatever happens. */
import type { ScaleImage } from './scale.ts';

const QUALITY = 0.85;

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
      // What is transparent would be black.
      pen.fillStyle = '#fff';
      pen.fillRect(0, 0, width, height);
    }
    pen.imageSmoothingQuality = 'high';
    pen.drawImage(picture, 0, 0, width, height);
    const encoded = await canvas.convertToBlob({ type: mediaType, quality: QUALITY });
    return new Uint8Array(await encoded.arrayBuffer());
  } finally {
    picture.close();
  }
};
