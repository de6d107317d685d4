/**
 * Bytes of a program as text to read. Rule: nothing in it drives a terminal: sequences for colours and cursors are
 * taken out, each other control character and each byte that is no UTF-8 becomes U+FFFD; a carriage return ends a line.
 */
import { stripVTControlCharacters } from 'node:util';

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is sought
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

export function plainText(bytes: Uint8Array): string {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  return stripVTControlCharacters(text).replace(/\r\n?/g, '\n').replace(CONTROLS, '\uFFFD');
}
