/**
 * Searches files line by line. Rule: every file is opened through the workspace boundary, lines go to the matcher in
 * batches, and the search ends with the first hit beyond the limit.
 */

import { linesOf, openText } from '../textFile.ts';
import type { Place, Refusal } from '../workspace.ts';
import type { Matcher } from './matcher.ts';
import type { Pattern } from './pattern.ts';

export const SEARCHED_CHARACTERS_MAX = 64 * 1_024;
const BATCH_CHARACTERS = 512 * 1_024;
const EXCERPT_CHARACTERS_MAX = 300;
/** The most characters of a long line that are shown before the match. */
const LEAD_CHARACTERS = 100;
/** Half of a surrogate pair at the edge of a cut. */
const HALF_CHARACTERS = /^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g;

export interface Found {
  name: string;
  number: number;
  /** The line, or the part of a long line around its first match. */
  excerpt: string;
}

export interface SearchResult {
  found: Found[];
  /** A line was longer than the part that is searched. */
  cutLines: boolean;
  /** The reason for an early end of the search: the pattern could not finish. */
  stopped?: Refusal;
}

interface Batch {
  lines: { name: string; number: number; text: string }[];
  characters: number;
}

/** Skips binary files and files that cannot be opened. Throws the signal's reason on abort. */
export async function search(
  files: readonly Place[],
  pattern: Pattern,
  options: { matcher: Matcher; foundMax: number; signal: AbortSignal },
): Promise<SearchResult> {
  const { matcher, foundMax, signal } = options;
  const result: SearchResult = { found: [], cutLines: false };
  let batch: Batch = { lines: [], characters: 0 };

  /** Returns true if the search continues. */
  const flush = async (): Promise<boolean> => {
    const { lines } = batch;
    batch = { lines: [], characters: 0 };
    const texts = lines.map(({ text }) => text);
    const matched = await matcher.match(pattern, texts, foundMax - result.found.length);
    if (matched.kind === 'refused') {
      result.stopped = matched;
      return false;
    }
    for (const [index, at] of matched.hits) {
      const line = lines[index];
      if (line !== undefined)
        result.found.push({ name: line.name, number: line.number, excerpt: around(line.text, at) });
    }
    return result.found.length < foundMax;
  };

  for (const place of files) {
    for await (const lines of textLines(place, signal)) {
      for (const { number, text, cut } of lines) {
        batch.lines.push({ name: place.name, number, text });
        batch.characters += text.length + 1;
        result.cutLines ||= cut;
      }
      if (batch.characters >= BATCH_CHARACTERS && !(await flush())) return result;
    }
  }
  if (batch.lines.length > 0) await flush();
  return result;
}

async function* textLines(place: Place, signal: AbortSignal): ReturnType<typeof linesOf> {
  signal.throwIfAborted();
  const opened = await openText(place);
  if (opened.kind === 'refused') return;
  try {
    yield* linesOf(opened.file, SEARCHED_CHARACTERS_MAX, signal);
  } finally {
    await opened.file.close();
  }
}

function around(text: string, at: number): string {
  if (text.length <= EXCERPT_CHARACTERS_MAX) return text;
  const from = Math.min(Math.max(0, at - LEAD_CHARACTERS), text.length - EXCERPT_CHARACTERS_MAX);
  const to = from + EXCERPT_CHARACTERS_MAX;
  const part = text.slice(from, to).replace(HALF_CHARACTERS, '');
  return `${from > 0 ? '…' : ''}${part}${to < text.length ? '…' : ''}`;
}
