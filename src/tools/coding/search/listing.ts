/**
 * Lists and file names as a tool shows them. Invariant: a list is limited in lines and bytes, and marks where it is
 * cut. A name is untrusted text, so one with control or direction characters is shown as a quoted JSON string.
 */
export const LISTED_MAX = 1_000;
const BYTES_MAX = 200 * 1_024;

/** Joins the lines, or `empty` if there are none, and adds each note in brackets. */
export function listing(
  lines: readonly string[],
  options: { empty: string; narrow: string; notes?: string[] },
): string {
  const shown: string[] = [];
  let bytes = 0;
  for (const line of lines) {
    bytes += Buffer.byteLength(line) + 1;
    if (shown.length === LISTED_MAX || bytes > BYTES_MAX) break;
    shown.push(line);
  }
  const notes = [...(options.notes ?? [])];
  if (shown.length === 0) notes.unshift(options.empty);
  if (shown.length < lines.length)
    notes.push(`cut: the first ${shown.length} are shown and there are more; ${options.narrow}`);
  return [...shown, ...notes.map((note) => `[${note}]`)].join('\n');
}

const ESCAPED = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Surrogate}]/u;
const ESCAPED_ALL = new RegExp(ESCAPED.source, 'gu');

const escapeOf = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** The name, or its quoted and escaped form if it contains characters that must not be printed. */
export function shownName(name: string): string {
  return ESCAPED.test(name) ? JSON.stringify(name).replace(ESCAPED_ALL, escapeOf) : name;
}
