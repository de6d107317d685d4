/**
 * The text of a file with its line ends and byte order mark, and the diff between two texts. Rule: a file that is not
 * UTF-8 is refused, because it could not be written back. The model's text uses LF, and a file keeps its own line ends.
 */
import * as z from 'zod';
import { beginning } from '../../printable.ts';
import { shownName } from './search/listing.ts';
import type { TextPlace } from './search/textPlaces.ts';
import { type Refusal, refused } from './workspace.ts';

export interface FileText {
  /** Without the byte order mark, with unchanged line ends. */
  text: string;
  hasMark: boolean;
  /** All lines end with CR LF. */
  isCrlf: boolean;
}

const MARK = '\uFEFF';

/** A text in a tool's arguments. A file cannot hold half of a character, and a search for one would find part of another. */
export const textArgument = z
  .string()
  .refine((text) => !/\p{Surrogate}/u.test(text), 'must not hold half of a character (a lone surrogate)');

export function readText(bytes: Uint8Array, name: string): ({ kind: 'text' } & FileText) | Refusal {
  if (bytes.includes(0)) return refused('binary', `${shownName(name)} is no text (it holds NUL bytes)`);
  try {
    const whole = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    const hasMark = whole.startsWith(MARK);
    const text = hasMark ? whole.slice(1) : whole;
    return { kind: 'text', text, hasMark, isCrlf: text.includes('\r\n') && !/(^|[^\r])\n/.test(text) };
  } catch {
    return refused('binary', `${shownName(name)} is no UTF-8 text`);
  }
}

export const bytesOfText = (text: string, { hasMark }: Pick<FileText, 'hasMark'>): Buffer =>
  Buffer.from(hasMark ? MARK + text : text, 'utf8');

/** Converts the line ends of a new text to those of the old file. */
export const withLineEnds = (text: string, { isCrlf }: Pick<FileText, 'isCrlf'>): string =>
  isCrlf ? text.replace(/\r?\n/g, '\r\n') : text;

const PIECES = 4_096;

/**
 * Replaces each place. The new text takes the line ends of the place, or those of the file if the place has none.
 * Undefined if the result would have more than `most` characters; then no such text is made.
 */
export function replacedIn(
  { text, isCrlf }: FileText,
  places: Iterable<TextPlace>,
  replacement: string,
  most = Number.POSITIVE_INFINITY,
): string | undefined {
  const plain = replacement.replace(/\r\n/g, '\n');
  const withCrlf = plain.replaceAll('\n', '\r\n');
  // A text that grows by millions of small parts needs many times its size.
  const joined: string[] = [];
  let pieces: string[] = [];
  let length = text.length;
  let from = 0;
  for (const place of places) {
    const old = text.slice(place.at, place.at + place.length);
    const added = isCrlf || /\r\n/.test(old) ? withCrlf : plain;
    length += added.length - place.length;
    // The text so far is already too long.
    if (length - (text.length - place.at - place.length) > most) return undefined;
    pieces.push(text.slice(from, place.at), added);
    from = place.at + place.length;
    if (pieces.length >= PIECES) {
      joined.push(pieces.join(''));
      pieces = [];
    }
  }
  return length > most ? undefined : [...joined, ...pieces, text.slice(from)].join('');
}

export const lineOf = (text: string, at: number): number => text.slice(0, at).split('\n').length;

const DIFF_CHARACTERS = 20_000;
const EDITS_MAX = 2_000;

/** A unified diff without its first lines; undefined if the texts differ too much. The diff library is loaded on first use. */
export async function patchOf(name: string, before: string, after: string): Promise<string | undefined> {
  const { createTwoFilesPatch } = await import('diff');
  const plain = (text: string): string => text.replace(/\r\n/g, '\n');
  const shown = shownName(name);
  const patch = createTwoFilesPatch(shown, shown, plain(before), plain(after), undefined, undefined, {
    context: 3,
    maxEditLength: EDITS_MAX,
  });
  return patch?.replace(/^(Index: .*\n)?=+\n/, '').replace(/\n$/, '');
}

/** The same for a model, cut if it is long. */
export async function diffOf(name: string, before: string, after: string): Promise<string> {
  const body = await patchOf(name, before, after);
  if (body === undefined) return '[the change is too large to be shown]';
  if (body.length <= DIFF_CHARACTERS) return body;
  return `${beginning(body, DIFF_CHARACTERS)}\n[the rest of the change is not shown]`;
}
