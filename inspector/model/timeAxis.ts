/**
 * The positions of the entries on the time line. Invariant: a step is always visible, and a long wait takes at most a
 * fifth of the width. Otherwise positions follow log time.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';

const LEAST = 7;
const MOST_PER_MS = 0.62;

export interface Axis {
  /** The distance from the left in pixels, by index from `from`. */
  readonly x: readonly number[];
  readonly from: number;
  readonly to: number;
  /** The pixels after the last entry for the time since then. */
  readonly now: number;
  readonly gaps: readonly { readonly x: number; readonly ms: number; readonly isClipped: boolean }[];
  /** Not all entries fit, so this is a window around the cursor. */
  readonly isWindow: boolean;
}

const LONG_WORDS = 46;
/** Room for the cross of unreadable lines. */
const CROSS = 22;

/**
 * `tail` is the time in milliseconds since the last entry, while something is in progress. `broken` contains the
 * indexes of the entries after unreadable lines of the file.
 */
export function axisOf(
  entries: readonly LogEntry[],
  width: number,
  head: number,
  tail: number,
  broken: ReadonlySet<number> = new Set(),
): Axis {
  const fits = Math.max(2, Math.floor(width / LEAST) - 12);
  const isWindow = entries.length > fits;
  const from = isWindow ? Math.max(0, Math.min(head - Math.floor(fits / 2), entries.length - fits)) : 0;
  const to = Math.min(entries.length, from + fits) - 1;
  const gaps: number[] = [];
  for (let index = from + 1; index <= to; index++) {
    gaps.push(Math.max(0, (entries[index]?.at ?? 0) - (entries[index - 1]?.at ?? 0)));
  }
  const isLast = to === entries.length - 1;
  if (isLast && tail > 0) gaps.push(tail);
  const gapMax = width / 5;
  const pixelsOfGap = (gap: number, index: number, perMs: number): number =>
    Math.max(broken.has(from + 1 + index) ? CROSS : LEAST, Math.min(gapMax, gap * perMs));
  const total = (perMs: number): number => gaps.reduce((sum, gap, index) => sum + pixelsOfGap(gap, index, perMs), 0);
  let perMs = MOST_PER_MS;
  for (let tries = 0; tries < 24 && total(perMs) > width - 24; tries++) perMs *= 0.8;
  const x: number[] = [0];
  const words: Axis['gaps'][number][] = [];
  let now = 0;
  for (const [index, gap] of gaps.entries()) {
    const pixels = pixelsOfGap(gap, index, perMs);
    const left = x[index] ?? 0;
    if (isLast && tail > 0 && index === gaps.length - 1) now = pixels;
    else {
      x.push(left + pixels);
      const isClipped = pixels >= gapMax - 0.5 && gap * perMs > gapMax;
      if (pixels >= LONG_WORDS) words.push({ x: left + pixels / 2, ms: gap, isClipped });
    }
  }
  return { x, from, to, now, gaps: words, isWindow };
}

/** Returns the place of a time among the entries: a fraction between two, and at most one more after the last. */
export function placeOf(entries: readonly LogEntry[], time: number, now: number): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle]?.at ?? 0) <= time) low = middle + 1;
    else high = middle;
  }
  const before = low - 1;
  const at = entries[before]?.at;
  if (at === undefined) return 0;
  const span = (entries[low]?.at ?? now) - at;
  return span > 0 ? before + Math.min(1, (time - at) / span) : before;
}

/** Returns pixels from the left of the axis, or undefined before its window. */
export function pixelsOf({ x, from, now }: Axis, place: number): number | undefined {
  const at = place - from;
  if (at < 0) return undefined;
  const end = (x.at(-1) ?? 0) + now;
  const left = x[Math.floor(at)] ?? end;
  const right = x[Math.floor(at) + 1] ?? end;
  return left + (right - left) * (at - Math.floor(at));
}
