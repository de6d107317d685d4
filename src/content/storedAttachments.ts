/**
 * Puts the images and files of results into the store of a log. Invariant: a result whose tool has run is never lost: a part that the
 * store refuses becomes a text and a diagnostic.
 */
import type { Attachment, Json, StoredPart } from '../../machines/vocabulary.ts';
import { thrownText } from '../errors.ts';
import { fromBase64, imageType, isEncoded, isEncodedImage } from './imageFormat.ts';

type WithBytes<Part extends Attachment> = Part extends Attachment ? Omit<Part, 'data'> & { bytes: Uint8Array } : never;
/** A validated attachment. Its bytes are a copy of the caller's. */
export type NewAttachment = WithBytes<Attachment>;
export type Diagnose = (code: string, detail: Json) => void;

/** The new bytes of a part of a result. The result was validated. */
function bytesIn(part: StoredPart): NewAttachment | undefined {
  if (part.type === 'text' || !(part.type === 'image' ? isEncodedImage(part.data) : isEncoded(part.data)))
    return undefined;
  const { data, ...others } = part;
  const bytes = fromBase64(data);
  if (!bytes) return undefined;
  return others.type === 'image'
    ? { ...others, mediaType: imageType(bytes) ?? others.mediaType, bytes }
    : { ...others, bytes };
}

/** `put`: stores one attachment. */
export async function storeWherePossible(
  put: (attachment: NewAttachment) => Promise<StoredPart>,
  parts: readonly StoredPart[],
  diagnose: Diagnose,
): Promise<StoredPart[]> {
  const stored: StoredPart[] = [];
  for (const part of parts) {
    try {
      const attachment = bytesIn(part);
      stored.push(attachment ? await put(attachment) : part);
    } catch (error) {
      diagnose(`${part.type}_not_stored`, { message: thrownText(error) });
      const what = part.type === 'image' ? 'An image' : 'A file';
      stored.push({ type: 'text', text: `[${what} belongs here. It could not be stored.]` });
    }
  }
  return stored;
}
