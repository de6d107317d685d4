/** The file tools leave no temporary file after a refused write, and no thread after a search. */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { placeOf } from '../../../src/tools/coding/workspace.ts';
import { currentContent, putFile } from '../../../src/tools/coding/writeFile.ts';
import { type Bench, call, makeBench } from './codingBench.ts';
import { steadyThreads, threads } from './liveProcesses.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await makeBench();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await bench.remove();
});

describe('a write that is refused at its end', () => {
  const at = (name: string): string => join(bench.root, name);
  const MEANWHILE: readonly (readonly [string, boolean, () => Promise<unknown>])[] = [
    ['the file was changed', true, () => bench.write('sub/a.txt', 'changed meanwhile')],
    ['the file was deleted', true, () => rm(at('sub/a.txt'))],
    ['the file was made', false, () => bench.write('sub/a.txt', 'made meanwhile')],
    ['a directory of that name was made', false, () => mkdir(at('sub/a.txt'))],
  ];

  it.each(MEANWHILE)('since %s, it leaves only what was there', async (_, isThere, meanwhile) => {
    await mkdir(at('sub'), { recursive: true });
    if (isThere) await bench.write('sub/a.txt', 'one');
    const place = await placeOf(bench.root, 'sub/a.txt');
    if (place.kind === 'refused') throw new Error(place.message);
    const current = await currentContent(place);
    await meanwhile();
    const before = await readdir(at('sub'));
    const refused = await putFile(place, Buffer.from('two'), current.kind === 'content' ? current : undefined);
    expect(refused).toMatchObject({ kind: 'refused', code: 'stale_read' });
    expect(await readdir(at('sub'))).toEqual(before);
  });
});

describe.runIf(process.platform === 'linux')('a search in the engine of the library', () => {
  const CALLS = [
    ['Grep', { pattern: 'needle' }, 'that finds lines'],
    ['Grep', { pattern: 'nothing' }, 'that finds none'],
    ['Grep', { pattern: 'needle', include: '*.txt' }, 'of some files'],
    ['Grep', { pattern: '(' }, 'by an invalid expression'],
    ['Glob', { pattern: '**/*.txt' }, 'that finds files'],
    ['Glob', { pattern: '{a' }, 'by an odd pattern'],
  ] as const;

  it.each(CALLS)('%s of %j, %s, leaves no thread, however often', async (tool, args) => {
    vi.stubEnv('PATH', '/nowhere');
    await bench.write('a.txt', 'a needle\n');
    // The pool of the file system has its threads after the first calls.
    for (const _ of [1, 2]) await call(bench.root, tool, args);
    const before = await steadyThreads();
    for (const _ of [1, 2, 3]) await call(bench.root, tool, args);
    // The kernel lists a thread a moment after its end.
    await expect.poll(threads, { timeout: 5_000 }).toBeLessThanOrEqual(before);
  });
});
