/**
 * Finds a shorter tape that still violates the same invariant. Invariant: a tape is kept only if its run still violates
 * the invariant. The search ends after a fixed number of runs.
 */
import type { SimulationReport } from './simulate.ts';

const RUNS = 400;

/**
 * Shortens the tape of a failed simulation. `live` runs one simulation on a tape. The shorter tape must violate `invariant`
 * too.
 */
export async function shrink(
  live: (tape: readonly number[]) => Promise<SimulationReport>,
  tape: readonly number[],
  invariant: string,
): Promise<readonly number[]> {
  let best = tape;
  let remainingRuns = RUNS;
  const breaks = async (candidate: readonly number[]): Promise<boolean> => {
    if (remainingRuns <= 0) return false;
    remainingRuns -= 1;
    const { violations } = await live(candidate);
    return violations.some((violation) => violation.invariant === invariant);
  };
  for (let size = Math.ceil(best.length / 2); size >= 1 && remainingRuns > 0; size = Math.floor(size / 2)) {
    for (let at = best.length - size; at >= 0 && remainingRuns > 0; at -= size) {
      for (const candidate of simpler(best, at, size)) {
        if (!(await breaks(candidate))) continue;
        best = candidate;
        break;
      }
    }
  }
  return withoutZeros(best);
}

/** Returns the tape without a section, and with the plainest choices in that section. */
function simpler(tape: readonly number[], at: number, size: number): readonly (readonly number[])[] {
  const before = tape.slice(0, at);
  const after = tape.slice(at + size);
  const stretch = tape.slice(at, at + size);
  const cut = [...before, ...after];
  return stretch.every((number) => number === 0) ? [cut] : [cut, [...before, ...stretch.map(() => 0), ...after]];
}

/** Drops zeros at the end, because an exhausted tape returns zeros. */
function withoutZeros(tape: readonly number[]): readonly number[] {
  let end = tape.length;
  while (end > 0 && tape[end - 1] === 0) end -= 1;
  return tape.slice(0, end);
}
