/**
 * Content as callers give it, and its stored form. Rule: what enters a log or a view holds strings only.
 */
import type { StoredPart } from '../machines/vocabulary.ts';
import { ConfigurationError } from './errors.ts';

export type ContentPart =
  | { type: 'text'; text: string }
  | { type: 'image'; mediaType: string; data: Uint8Array | string | URL };
export type Content = string | ContentPart[];

/** Base64 without Node's Buffer, so that it runs in browsers too. */
export function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (let i = 0; i < bytes.length; i += 0x8000) binary += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(binary);
}

/** The stored form of a message's content; refuses what is neither text nor image. */
export function storedContent(content: Content): StoredPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content))
    throw new ConfigurationError(`content must be a string or a list of parts, got ${typeof content}`);
  return content.map(storedPart);
}

function storedPart(part: ContentPart): StoredPart {
  if (part?.type === 'text' && typeof part.text === 'string') return { type: 'text', text: part.text };
  if (part?.type === 'image' && typeof part.mediaType === 'string') {
    const { data } = part;
    if (typeof data === 'string') return { type: 'image', mediaType: part.mediaType, data };
    if (data instanceof URL) return { type: 'image', mediaType: part.mediaType, data: data.href };
    if (data instanceof Uint8Array) return { type: 'image', mediaType: part.mediaType, data: toBase64(data) };
  }
  throw new ConfigurationError("a content part must be { type: 'text', text } or { type: 'image', mediaType, data }");
}

/** The text of some content, images left out. */
export function textOf(content: readonly StoredPart[]): string {
  let text = '';
  for (const part of content) if (part.type === 'text') text += part.text;
  return text;
}
