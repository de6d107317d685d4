/**
 * Lists living processes and threads from /proc alone. Invariant: no code under test is used. A zombie does not count as living.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'vitest';

/** True if /proc contains the information that the tests of process trees need. */
export const hasProc = process.platform === 'linux';

/** The living processes whose pid, group or session is one of these. */
export function living(...ids: readonly number[]): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'latin1');
      const [state = '', , group, session] = text.slice(text.lastIndexOf(')') + 2).split(' ');
      const is = ids.some((id) => [name, group, session].includes(String(id)));
      return is && !/[ZX]/.test(state) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

/** The number that a command wrote into a file, once it exists. */
export async function numberIn(file: string): Promise<number> {
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => '');
    if (text.endsWith('\n')) return Number(text);
    await wait(5);
  }
}

/** Resolves when at least this many of them live: a command may write its number before it starts its children. */
export async function alive(count: number, ...ids: readonly number[]): Promise<void> {
  while (living(...ids).length < count) await wait(5);
}

/** Far less than the lifetime of any of them; `npm run bench:cancel` measures the delay. */
const LONGEST_MS = 30_000;

/** Resolves when none of them lives. */
export async function gone(...ids: readonly number[]): Promise<void> {
  const since = performance.now();
  for (let left = living(...ids); left.length > 0; left = living(...ids)) {
    if (performance.now() - since > LONGEST_MS) throw new Error(`there still live ${left.join(', ')}`);
    await wait(5);
  }
}

/** The threads of this process (Linux only). */
export const threads = async (): Promise<number> => (await readdir('/proc/self/task')).length;

/** Waits until the number of threads stays the same, and returns it. */
export async function steadyThreads(): Promise<number> {
  let before = await threads();
  await expect
    .poll(async () => {
      const last = before;
      before = await threads();
      return before === last;
    })
    .toBe(true);
  return before;
}
