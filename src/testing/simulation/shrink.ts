/**
 * A shorter tape that still breaks the same invariant. Rule: only tapes that were run and still break it are kept; the
 * search ends after a fixed number of runs.
 */
import type { SimulationReport } from './simulate.ts';

const RUNS = 400;

/** `live` runs one simulation on a tape; `invariant` is the one that the shorter tape must break too. */
export async function shrink(
  live: (tape: readonly number[]) => Promise<SimulationReport>,
  tape: readonly number[],
  invariant: string,
): Promise<readonly number[]> {
  let best = tape;
  let left = RUNS;
  const breaks = async (candidate: readonly number[]): Promise<boolean> => {
    if (left <= 0) return false;
    left -= 1;
    const { violations } = await live(candidate);
    return violations.some((violation) => violation.invariant === invariant);
  };
  for (let size = Math.ceil(best.length / 2); size >= 1 && left > 0; size = Math.floor(size / 2)) {
    for (let at = best.length - size; at >= 0 && left > 0; at -= size) {
      for (const candidate of simpler(best, at, size)) {
        if (!(await breaks(candidate))) continue;
        best = candidate;
        break;
      }
    }
  }
  return withoutZeros(best);
}

/** The tape without a stretch of it, and with the stretch set to the plainest choices. */
function simpler(tape: readonly number[], at: number, size: number): readonly (readonly number[])[] {
  const before = tape.slice(0, at);
  const after = tape.slice(at + size);
  const stretch = tape.slice(at, at + size);
  const cut = [...before, ...after];
  return stretch.every((number) => number === 0) ? [cut] : [cut, [...before, ...stretch.map(() => 0), ...after]];
}

/** Zeros at the end are left out: a tape that is used up gives zeros. */
function withoutZeros(tape: readonly number[]): readonly number[] {
  let end = tape.length;
  while (end > 0 && tape[end - 1] === 0) end -= 1;
  return tape.slice(0, end);
}
