/**
 * Which processes live, by /proc alone. Rule: nothing here is told by the code under test; a process that ended and was
 * not taken note of does not live.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';

/** /proc tells what the tests of process trees ask. */
export const hasProc = process.platform === 'linux';

/** The ids that live among those whose pid, group or session is one of these. */
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

/** The number a command wrote into a file, once it has. */
export async function numberIn(file: string): Promise<number> {
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => '');
    if (text.endsWith('\n')) return Number(text);
    await wait(5);
  }
}

/** Resolves once at least so many of them live: who has written its number may have yet to start its children. */
export async function alive(count: number, ...ids: readonly number[]): Promise<void> {
  while (living(...ids).length < count) await wait(5);
}

/** Far less than any of them would live by itself; how soon they go is measured by `npm run bench:cancel`. */
const LONGEST_MS = 30_000;

/** Resolves once none of them lives. */
export async function gone(...ids: readonly number[]): Promise<void> {
  const since = performance.now();
  for (let left = living(...ids); left.length > 0; left = living(...ids)) {
    if (performance.now() - since > LONGEST_MS) throw new Error(`there still live ${left.join(', ')}`);
    await wait(5);
  }
}
