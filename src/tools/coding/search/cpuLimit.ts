/**
 * A time limit by the CPU time of the work, so that a loaded machine does not shorten it. Rule: work that uses no CPU
 * time, or whose CPU time cannot be read, ends after a multiple of the limit.
 */
import { readFileSync } from 'node:fs';

const LOOK_MS = 50;
/** The longest wait, as a multiple of the limit. */
const PATIENCE = 20;
/** `/proc` counts in hundredths of a second. */
const TICK_MS = 10;

/**
 * Calls `late` once when the work has used `limitMs` of CPU time since now. `usedMs`: all that it has used so far;
 * undefined if that is not known. Returns a function that ends the watch.
 */
export function afterCpuTime(limitMs: number, usedMs: () => number | undefined, late: () => void): () => void {
  const since = performance.now();
  const before = usedMs() ?? 0;
  const timer = setInterval(
    () => {
      const used = (usedMs() ?? 0) - before;
      if (used < limitMs && performance.now() - since < limitMs * PATIENCE) return;
      clearInterval(timer);
      late();
    },
    Math.min(LOOK_MS, limitMs),
  );
  return () => clearInterval(timer);
}

/** The CPU time of a process or a thread, from its `stat` below `/proc`; undefined if that cannot be read. */
export function cpuTimeOf(directory: string): number | undefined {
  try {
    const text = readFileSync(`${directory}/stat`, 'latin1');
    const [user, system] = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
      .map(Number);
    return user === undefined || system === undefined ? undefined : (user + system) * TICK_MS;
  } catch {
    return undefined;
  }
}
