/**
 * How a file name is shown. Rule: a name is untrusted text; one that holds control or direction characters is shown
 * as a quoted JSON string, so that it can neither add a line to a listing nor drive a terminal.
 */
const ESCAPED = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Surrogate}]/u;
const ESCAPED_ALL = new RegExp(ESCAPED.source, 'gu');

const escapeOf = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** The name itself, or its quoted and escaped form where it holds characters that must not be printed. */
export function shownName(name: string): string {
  return ESCAPED.test(name) ? JSON.stringify(name).replace(ESCAPED_ALL, escapeOf) : name;
}
