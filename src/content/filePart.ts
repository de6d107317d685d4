/**
 * Files as texts, and where their bytes are. Invariant: the text of a file has a heading with its name, without characters
 * that would not be seen. A part that cannot be sent is named.
 */
import type { Attachment, StoredPart } from '../../machines/vocabulary.ts';
import { fromBase64, isEncoded } from './imageFormat.ts';

export type FilePart = Extract<StoredPart, { type: 'file' }>;

/** The name of a file comes from its sender, so control characters and invisible characters are removed. */
const shownName = (name: string): string => name.slice(0, 255).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '');

/** An image or a file in few words: its name, if it has one, and its media type. */
export function attachmentLabel(part: Attachment): string {
  const { mediaType } = part;
  const name = part.type === 'file' && part.name !== undefined ? shownName(part.name) : '';
  return name === '' ? mediaType : `${name} (${mediaType})`;
}

/** The text of content, with the names of its images and files. */
export const labelledText = (content: readonly StoredPart[], separator = '\n'): string =>
  content.map((part) => (part.type === 'text' ? part.text : `[${attachmentLabel(part)}]`)).join(separator);

/** Returns the text of a file, or undefined for bytes that are not UTF-8. */
export function decodedText(base64: string): string | undefined {
  const bytes = fromBase64(base64);
  try {
    return bytes && new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Converts a text file to a text part. `base64`: its bytes. Returns undefined if they are not UTF-8. */
export function fileAsText(part: FilePart, base64: string): { type: 'text'; text: string } | undefined {
  const text = decodedText(base64);
  return text === undefined
    ? undefined
    : { type: 'text', text: `[file ${attachmentLabel(part)}]\n${text}\n[end of file]` };
}

/** Where the bytes of a part are: at a URL, here in base64, or nowhere that a model could read them. */
export function sourceOf({ data }: Attachment): { url: string } | { base64: string } | undefined {
  const inline = /^data:[^,]{0,256};base64,/i.exec(data.slice(0, 300))?.[0];
  if (inline) return { base64: data.slice(inline.length) };
  if (/^https?:/i.test(data)) return { url: data };
  // Base64 has no colon, so this is an unresolved reference, for which a server would refuse the whole request.
  return isEncoded(data) ? { base64: data } : undefined;
}

/** The text in place of a part that cannot be sent. */
export const leftOut = (part: Attachment, why: string): { type: 'text'; text: string } => ({
  type: 'text',
  text: `[${part.type} ${attachmentLabel(part)}: ${why}]`,
});

/** The name of a file for a server. Servers need a name to determine the type. */
export function fileName(part: FilePart): string {
  const { name, mediaType } = part;
  const shown = name === undefined ? '' : shownName(name).trim();
  return shown || `file.${mediaType.split('/')[1]?.replace(/^.*[.+]/, '') ?? 'bin'}`;
}
