/**
 * Makes foreign text safe to show to a person, in a terminal or a page. Rule: characters that control the display or are invisible are
 * shown as escapes, and nothing is dropped.
 */

/** Controls, line and paragraph separators, lone surrogates, direction marks, interlinear annotations. */
const DRIVING = '[\\p{Cc}\\p{Zl}\\p{Zp}\\p{Cs}\\p{Bidi_Control}\\ufff9-\\ufffb]';
/** Characters without a visible mark: zero-width spaces, fillers, tags. */
const UNSEEN = '\\p{Default_Ignorable_Code_Point}';
/** Joiners and variation selectors, without which emoji and some scripts fall apart in running text. */
const JOINING = '[\\u200c\\u200d\\u034f\\u180b-\\u180d\\u180f\\ufe00-\\ufe0f]';

const IN_TEXT = new RegExp(`(?![\\n\\t])${DRIVING}|(?!${JOINING})${UNSEEN}`, 'gu');
const IN_LINE = new RegExp(`${DRIVING}|${UNSEEN}`, 'gu');
const NAMED: { readonly [character: string]: string } = { '\n': '\\n', '\t': '\\t', '\r': '\\r' };

function escapeOf(character: string): string {
  const named = NAMED[character];
  if (named !== undefined) return named;
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  if (code > 0xffff) return `\\u{${digits}}`;
  return code > 0xff ? `\\u${digits.padStart(4, '0')}` : `\\x${digits.padStart(2, '0')}`;
}

/** Running text: line breaks and tabs stay, CRLF is a line break. */
export function printable(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(IN_TEXT, escapeOf);
}

/** Returns one line, such as a name, a path or arguments. Line breaks, tabs and joiners are escaped too. */
export function printableLine(text: string): string {
  return text.replace(IN_LINE, escapeOf);
}

/** A text in pieces of any size. The printed result is the same as for the complete text. */
export class PrintableStream {
  /** Half of a character or of a line break. */
  #held = '';

  push(piece: string): string {
    const text = this.#held + piece;
    const whole = /[\r\ud800-\udbff]$/.test(text) ? text.length - 1 : text.length;
    this.#held = text.slice(whole);
    return printable(text.slice(0, whole));
  }

  /** Returns the text that was held back. */
  end(): string {
    const rest = printable(this.#held);
    this.#held = '';
    return rest;
  }
}

/** Each unit of a character as an escape of JSON and JavaScript. */
const unitEscapes = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('');

/** A value as one line of JSON that is safe in a terminal and parses to the same value. */
export const jsonLine = (value: unknown): string => JSON.stringify(value).replace(IN_LINE, unitEscapes);

/** Source text, or JSON on several lines, in a form that is safe to show; its strings keep their values. */
export const sourceText = (source: string): string => source.replace(IN_TEXT, unitEscapes);

/** Returns the first `most` UTF-16 units at most, never with half a character at the end. */
export const beginning = (text: string, most: number): string =>
  text.length <= most ? text : text.slice(0, most).replace(/[\ud800-\udbff]$/, '');

/** Returns at most `most` UTF-16 units and never half a character. An ellipsis marks the cut. */
export const shortened = (text: string, most: number): string =>
  text.length <= most ? text : `${beginning(text, most - 1)}…`;
