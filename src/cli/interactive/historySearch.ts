/**
 * The search through earlier lines with Ctrl-R. Invariant: a pure function of search and key. The line before the search
 * is kept until another line is taken.
 */
import { type EditedLine, type Key, lineWith } from './lineEditor.ts';
import { charactersOf } from './textRows.ts';

export interface HistorySearch {
  readonly query: string;
  /** Later matches that were passed over. */
  readonly passed: number;
  readonly draft: EditedLine;
}

export const startedSearch = (draft: EditedLine): HistorySearch => ({ query: '', passed: 0, draft });

/** Different lines that contain the query, the latest first. */
const matchesOf = (query: string, history: readonly string[]): string[] =>
  query === ''
    ? []
    : [...new Set([...history].reverse())].filter((line) => line.toLowerCase().includes(query.toLowerCase()));

/** The found line, else the line before the search. */
export function foundLine({ query, passed, draft }: HistorySearch, history: readonly string[]): EditedLine {
  const found = matchesOf(query, history)[passed];
  return found === undefined ? draft : lineWith(found);
}

/** Returns the search after a key, or undefined for a key that ends it. */
export function searchedBy(search: HistorySearch, key: Key, history: readonly string[]): HistorySearch | undefined {
  const { query, passed } = search;
  if (key.ctrl && key.name === 'r') {
    const isLast = passed + 1 >= matchesOf(query, history).length;
    return isLast ? search : { ...search, passed: passed + 1 };
  }
  if (key.name === 'backspace') return { ...search, query: charactersOf(query).slice(0, -1).join(''), passed: 0 };
  const isText = !key.ctrl && !key.meta && key.sequence !== '' && !/^\p{Cc}/u.test(key.sequence);
  return isText ? { ...search, query: query + key.sequence, passed: 0 } : undefined;
}

/** True for a key that gives the line before the search back. */
export const abandonsSearch = ({ name, ctrl }: Key): boolean =>
  name === 'escape' || (ctrl && (name === 'g' || name === 'c'));
