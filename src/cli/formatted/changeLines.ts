/**
 * A change of a file as terminal lines: a unified diff with line numbers and marked words, or the first lines of a new
 * file. Invariant: pure. Omitted lines are counted. A text that is no diff gives no lines.
 */
import { diffWordsWithSpace } from 'diff';
import { printableLine } from '../../printable.ts';
import { count } from '../costTally.ts';
import type { TextLine } from '../interactive/textRows.ts';
import type { Span, Style } from '../screen.ts';

/** The beginning of each line, which shows whose text it is. */
export type Mark = Span;

type Kind = 'same' | 'added' | 'removed';

interface ChangedLine {
  readonly kind: Kind;
  readonly number: number;
  readonly text: string;
  /** A remark about this line: it has no line end. */
  readonly remark?: string;
}

/** A part of a diff: the lines of one hunk, or a remark about the rest. */
type Section = readonly ChangedLine[] | string;

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const KINDS: { readonly [sign: string]: Kind } = { ' ': 'same', '+': 'added', '-': 'removed' };
const SIGNS = { same: ' ', added: '+', removed: '-' } as const;
const STYLES: { readonly [kind in Kind]: Style } = { same: 'plain', added: 'green', removed: 'red' };
const WORD_STYLES: { readonly [kind in Kind]: Style } = { same: 'plain', added: 'addedWord', removed: 'removedWord' };

/** Longer lines are not compared word by word. */
const COMPARED_MAX = 1_000;
/** Two lines are different lines, without marked words, if less than this share of the shorter one is in both. */
const COMMON_MIN = 0.5;

/** Reads the hunks of a unified diff. The counts of a hunk decide where it ends, whatever its lines begin with. */
function sectionsOf(diff: string): Section[] {
  const sections: Section[] = [];
  let hunk: ChangedLine[] = [];
  let before = { next: 0, left: 0 };
  let after = { next: 0, left: 0 };
  for (const line of diff.split('\n')) {
    if (before.left + after.left > 0 && KINDS[line[0] ?? ' '] !== undefined) {
      const kind = KINDS[line[0] ?? ' '] ?? 'same';
      hunk.push({ kind, number: kind === 'removed' ? before.next : after.next, text: line.slice(1) });
      if (kind !== 'added') before = { next: before.next + 1, left: before.left - 1 };
      if (kind !== 'removed') after = { next: after.next + 1, left: after.left - 1 };
      continue;
    }
    const last = hunk.at(-1);
    if (last && line.startsWith('\\ ')) {
      hunk[hunk.length - 1] = { ...last, remark: line.slice(2) };
      continue;
    }
    const [found, oldStart, oldCount = '1', newStart, newCount = '1'] = HUNK.exec(line) ?? [];
    if (found !== undefined) {
      hunk = [];
      sections.push(hunk);
      before = { next: Number(oldStart), left: Number(oldCount) };
      after = { next: Number(newStart), left: Number(newCount) };
    } else if (sections.length > 0 && line !== '') sections.push(line);
  }
  return sections;
}

/** The numbers of lines that a diff adds and removes. Undefined if the text is no diff. */
export function changeCounts(diff: string): { added: number; removed: number } | undefined {
  const sections = sectionsOf(diff);
  if (sections.length === 0) return undefined;
  const lines = sections.flatMap((section) => (typeof section === 'string' ? [] : section));
  const countOf = (kind: Kind): number => lines.filter((line) => line.kind === kind).length;
  return { added: countOf('added'), removed: countOf('removed') };
}

/** The lines of a diff. The margin of a continued line leaves room for the numbers. */
export function changeLines(diff: string, mark: Mark): TextLine[] {
  const sections = sectionsOf(diff);
  const numbers = sections.flatMap((section) =>
    typeof section === 'string' ? [] : section.map(({ number }) => number),
  );
  const digits = String(Math.max(0, ...numbers)).length;
  return sections.flatMap((section, index) => {
    const remarkLine = (text: string): TextLine => lineOf(mark, digits, ['dim', printableLine(text)]);
    if (typeof section === 'string') return [remarkLine(section)];
    const gap = index > 0 ? [lineOf(mark, digits, ['dim', '⋯'])] : [];
    const words = markedWords(section);
    return [
      ...gap,
      ...section.flatMap((line) => [
        numberedLine(mark, digits, line, words.get(line)),
        ...(line.remark === undefined ? [] : [remarkLine(line.remark)]),
      ]),
    ];
  });
}

/** The lines of a file that does not exist yet. */
export function newFileLines(content: string, mark: Mark): TextLine[] {
  const lines = content === '' ? [] : content.replace(/\n$/, '').split('\n');
  const digits = String(lines.length).length;
  return lines.map((text, index) => numberedLine(mark, digits, { kind: 'added', number: index + 1, text }, undefined));
}

/** At most `most` lines; `how` describes the place of the others. */
export function foldedLines(lines: readonly TextLine[], most: number, mark: Mark, how: string): readonly TextLine[] {
  // A line that counts one hidden line would need as much room as that line.
  if (lines.length <= most + 1) return lines;
  return [...lines.slice(0, most), lineOf(mark, 0, ['dim', `… ${count(lines.length - most, 'more line')}${how}`])];
}

const lineOf = (mark: Mark, digits: number, ...spans: Span[]): TextLine => ({
  spans: [mark, ...spans],
  margin: mark[1] + ' '.repeat(digits + 3),
});

function numberedLine(
  mark: Mark,
  digits: number,
  { kind, number, text }: ChangedLine,
  words: readonly Span[] | undefined,
): TextLine {
  const shown = words ?? visibleEnd(kind, text.replace(/\r$/, ''));
  const gutter: Span = ['dim', `${String(number).padStart(digits)} `];
  return lineOf(mark, digits, gutter, [STYLES[kind], `${SIGNS[kind]} `], ...shown.map(visible));
}

/** Every character that could hide something is an escape. A tab stays, because code is indented with tabs. */
const visible = ([style, text]: Span): Span => [style, text.split('\t').map(printableLine).join('\t')];

/** Spaces at the end of a changed line are shown as dots, because a terminal does not show them. */
function visibleEnd(kind: Kind, text: string, style: Style = STYLES[kind]): Span[] {
  const end = kind === 'same' ? '' : (/[ \t]+$/.exec(text)?.[0] ?? '');
  const rest: Span = [style, text.slice(0, text.length - end.length)];
  const dots: Span = [WORD_STYLES[kind], '·'.repeat(end.length)];
  return [rest, dots].filter(([, part]) => part !== '');
}

/** Compares removed lines with the added lines after them, one by one. */
function markedWords(lines: readonly ChangedLine[]): Map<ChangedLine, Span[]> {
  const marked = new Map<ChangedLine, Span[]>();
  for (let at = 0; at < lines.length; ) {
    const removed = runFrom(lines, at, 'removed');
    const added = runFrom(lines, at + removed.length, 'added');
    for (const [index, old] of removed.entries()) {
      const current = added[index];
      const words = current && comparedWords(old.text, current.text);
      if (!current || !words) continue;
      marked.set(old, words.removed);
      marked.set(current, words.added);
    }
    at += Math.max(1, removed.length + added.length);
  }
  return marked;
}

function runFrom(lines: readonly ChangedLine[], from: number, kind: Kind): readonly ChangedLine[] {
  let to = from;
  while (lines[to]?.kind === kind) to += 1;
  return lines.slice(from, to);
}

function comparedWords(old: string, current: string): { removed: Span[]; added: Span[] } | undefined {
  if (Math.max(old.length, current.length) > COMPARED_MAX || old.trim() === '' || current.trim() === '')
    return undefined;
  const parts = diffWordsWithSpace(old, current);
  const common = parts.reduce((sum, part) => (part.added || part.removed ? sum : sum + part.value.trim().length), 0);
  if (common < COMMON_MIN * Math.min(old.trim().length, current.trim().length)) return undefined;
  const spansOf = (kind: 'added' | 'removed'): Span[] => {
    const spans = parts
      .filter((part) => !(kind === 'added' ? part.removed : part.added))
      .map(({ added, removed, value }): Span => [added || removed ? WORD_STYLES[kind] : STYLES[kind], value]);
    const [style, end] = spans.pop() ?? [STYLES[kind], ''];
    return [...spans, ...visibleEnd(kind, end.replace(/\r$/, ''), style)];
  };
  return { removed: spansOf('removed'), added: spansOf('added') };
}
