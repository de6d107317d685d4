/**
 * The typed line: a text, a cursor, and the earlier lines. Invariant: a pure function of line and key. The cursor is
 * never inside a character, and looking at earlier lines keeps the draft.
 */
import { characterAround, charactersOf } from './textRows.ts';

export interface EditedLine {
  readonly text: string;
  /** In UTF-16 units. */
  readonly cursor: number;
  /** Index of the shown earlier line, counted from the latest. 0 is the draft. */
  readonly back: number;
  readonly draft: string;
}

/** A key as `readline.emitKeypressEvents` reports it. */
export interface Key {
  readonly name?: string | undefined;
  readonly ctrl: boolean;
  readonly meta: boolean;
  readonly shift: boolean;
  readonly sequence: string;
}

export const lineWith = (text: string): EditedLine => ({ text, cursor: text.length, back: 0, draft: '' });
export const emptyLine = lineWith('');

/** Returns the line after a key, or undefined for a key that does not edit. */
export function editedBy(line: EditedLine, key: Key, history: readonly string[]): EditedLine | undefined {
  const motion = motionOf(key);
  if (motion) return { ...line, cursor: motion(line) };
  const removal = removalOf(key);
  if (removal) return replaced(line, ...ordered(line.cursor, removal(line)), '');
  if (key.name === 'up' || (key.ctrl && key.name === 'p')) return up(line, history);
  if (key.name === 'down' || (key.ctrl && key.name === 'n')) return down(line, history);
  // Enter is \r. Ctrl-J, and Shift-Enter of some terminals, is
  // .
  if (key.name === 'enter') return inserted(line, '\n');
  const isText = !key.ctrl && !key.meta && key.sequence !== '' && !/^\p{Cc}/u.test(key.sequence);
  return isText ? inserted(line, key.sequence) : undefined;
}

/** Inserts text that arrives at once, such as pasted text. */
export const inserted = (line: EditedLine, text: string): EditedLine =>
  replaced(line, line.cursor, line.cursor, text.replaceAll(/\r\n?/g, '\n'));

function replaced(line: EditedLine, from: number, to: number, text: string): EditedLine {
  return { ...line, text: line.text.slice(0, from) + text + line.text.slice(to), cursor: from + text.length };
}

const ordered = (one: number, other: number): [number, number] => [Math.min(one, other), Math.max(one, other)];
type Place = (line: EditedLine) => number;

const before: Place = ({ text, cursor }) => (cursor === 0 ? 0 : characterAround(text, cursor - 1).from);
const after: Place = ({ text, cursor }) => characterAround(text, cursor).to;
const wordBefore: Place = ({ text, cursor }) => {
  let at = text.slice(0, cursor).trimEnd().length;
  while (at > 0 && /\S/u.test(text[at - 1] ?? '')) at -= 1;
  return at;
};
const wordAfter: Place = ({ text, cursor }) => cursor + (/^\s*\S*/u.exec(text.slice(cursor))?.[0].length ?? 0);
/** `lastIndexOf` takes a negative index for 0. */
const lineStart: Place = ({ text, cursor }) => (cursor === 0 ? 0 : text.lastIndexOf('\n', cursor - 1) + 1);
const lineEnd: Place = ({ text, cursor }) => {
  const end = text.indexOf('\n', cursor);
  return end === -1 ? text.length : end;
};

const MOTIONS: { readonly [key: string]: Place } = {
  left: before,
  'ctrl b': before,
  right: after,
  'ctrl f': after,
  home: lineStart,
  'ctrl a': lineStart,
  end: lineEnd,
  'ctrl e': lineEnd,
  'ctrl left': wordBefore,
  'meta left': wordBefore,
  'meta b': wordBefore,
  'ctrl right': wordAfter,
  'meta right': wordAfter,
  'meta f': wordAfter,
};
const REMOVALS: { readonly [key: string]: Place } = {
  backspace: before,
  'ctrl h': before,
  delete: after,
  'ctrl d': after,
  'ctrl w': wordBefore,
  'meta backspace': wordBefore,
  'meta d': wordAfter,
  'ctrl u': lineStart,
  'ctrl k': lineEnd,
};

/** Keys whose removed text can be put back. */
const KILLS = new Set(['ctrl w', 'meta backspace', 'meta d', 'ctrl u', 'ctrl k']);

/** Returns the text that a key removes to be put back. */
export function killedBy(line: EditedLine, key: Key): string | undefined {
  const removal = KILLS.has(nameOf(key)) ? removalOf(key) : undefined;
  return removal && line.text.slice(...ordered(line.cursor, removal(line)));
}

const nameOf = ({ name = '', ctrl, meta }: Key): string => `${ctrl ? 'ctrl ' : ''}${meta ? 'meta ' : ''}${name}`;
const motionOf = (key: Key): Place | undefined =>
  Object.hasOwn(MOTIONS, nameOf(key)) ? MOTIONS[nameOf(key)] : undefined;
const removalOf = (key: Key): Place | undefined =>
  Object.hasOwn(REMOVALS, nameOf(key)) ? REMOVALS[nameOf(key)] : undefined;

/** Moves the cursor to the same column of the line that begins at `start`. */
function below(line: EditedLine, start: number): EditedLine {
  const { text, cursor } = line;
  const column = charactersOf(text.slice(lineStart(line), cursor)).length;
  const end = lineEnd({ ...line, cursor: start });
  const passed = charactersOf(text.slice(start, end)).slice(0, column).join('');
  return { ...line, cursor: start + passed.length };
}

/** Moves up in a text of several lines, else to an earlier line of the history. */
function up(line: EditedLine, history: readonly string[]): EditedLine {
  const start = lineStart(line);
  if (start > 0) return below(line, lineStart({ ...line, cursor: start - 1 }));
  const earlier = history.at(-1 - line.back);
  if (earlier === undefined) return line;
  const draft = line.back === 0 ? line.text : line.draft;
  return { text: earlier, cursor: earlier.length, back: line.back + 1, draft };
}

function down(line: EditedLine, history: readonly string[]): EditedLine {
  const end = lineEnd(line);
  if (end < line.text.length) return below(line, end + 1);
  if (line.back === 0) return line;
  const later = line.back === 1 ? line.draft : (history.at(1 - line.back) ?? '');
  return { ...line, text: later, cursor: later.length, back: line.back - 1 };
}
