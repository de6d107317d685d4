/**
 * Another program that changes a file beside the tools, at each moment and in each way. Invariant: a change that the
 * model has not seen is never overwritten.
 */
import { readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { placeOf } from '../../../src/tools/coding/workspace.ts';
import { currentContent, putFile } from '../../../src/tools/coding/writeFile.ts';
import { answerOf, definitionOf } from '../../../src/tools/tool.ts';
import { type Bench, makeBench } from './codingBench.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await makeBench();
});
afterEach(() => bench.remove());
const path = (name = 'f'): string => join(bench.root, name);

/** Writes a text of the same length, and sets the time of the change. */
async function rewritten(text: string, laterMs: number): Promise<void> {
  const { mtimeMs } = await stat(path());
  await writeFile(path(), text);
  await utimes(path(), new Date(), new Date(mtimeMs + laterMs));
}
const CHANGES: readonly (readonly [string, () => Promise<unknown>])[] = [
  ...[2, 20, 500, 5_000, -2, -5_000].map(
    (ms) => [`the same size, ${ms} ms later`, () => rewritten('two', ms)] as const,
  ),
  ['another size at the same time', () => rewritten('three', 0)],
  [
    'another file in its place',
    async () => {
      const { mtimeMs } = await stat(path());
      await writeFile(path('g'), 'two');
      await utimes(path('g'), new Date(mtimeMs), new Date(mtimeMs));
      await rename(path('g'), path());
    },
  ],
  ['no file any more', () => rm(path())],
];

it.each(CHANGES)('between reading and writing: %s', async (_, change) => {
  await bench.write('f', 'one');
  // Times that a file system keeps whole, so that a change of a few milliseconds is exact.
  await utimes(path(), 1_700_000_000, 1_700_000_000);
  const place = await placeOf(bench.root, 'f');
  if (place.kind === 'refused') throw new Error(place.message);
  const current = await currentContent(place);
  if (current.kind !== 'content') throw new Error(current.kind);
  await change();
  const theirs = await readFile(path(), 'utf8').catch(() => undefined);
  expect(await putFile(place, Buffer.from('mine'), current)).toMatchObject({ code: 'stale_read' });
  expect(await readFile(path(), 'utf8').catch(() => undefined)).toBe(theirs);
});

it('a file that appears before a new one is written stays', async () => {
  const place = await placeOf(bench.root, 'f');
  if (place.kind === 'refused') throw new Error(place.message);
  await bench.write('f', 'theirs');
  expect(await putFile(place, Buffer.from('mine'))).toMatchObject({ code: 'stale_read' });
  expect(await readFile(path(), 'utf8')).toBe('theirs');
});

const LINE = `${'x'.repeat(99)}\n`;
/** More than one chunk of reading. */
const LINES = 2_000;

it.each([1, 2, 3])(
  'while it is read: a change before look %i of Read is refused until the file is read again',
  async (look) => {
    const tools = codingTools();
    let looks = 0;
    await bench.write('f', LINE.repeat(LINES));
    /** Read looks at the signal before each chunk. */
    const signal = {
      aborted: false,
      throwIfAborted() {
        looks += 1;
        if (looks === look) void bench.write('f', `changed${LINE.slice(7)}${LINE.repeat(LINES - 1)}`);
      },
    };
    const call = async (name: string, args: object): Promise<string | undefined> => {
      const definition = definitionOf(tools.find((each) => each.name === name) as never);
      const ids = { callId: 'c1', conversationId: 'c', runId: 'r', idempotencyKey: 'k', origin: { messageId: 'm' } };
      const ports = { progress: () => undefined, now: () => 0, sleep: () => Promise.resolve() };
      const context = { ...ids, ...ports, cwd: bench.root, signal, state: {} };
      const answer = answerOf(await definition?.execute(args as never, context as never));
      return answer?.status === 'error' ? answer.code : answer?.status;
    };
    expect(await call('Read', { file_path: 'f' })).toBe('success');
    expect(looks).toBeGreaterThanOrEqual(look);
    const content = 'mine';
    expect(await call('Write', { file_path: 'f', content })).toBe('stale_read');
    expect(await call('Read', { file_path: 'f' })).toBe('success');
    expect(await call('Write', { file_path: 'f', content })).toBe('success');
  },
);
