/** The open files of the file tools. Invariant: no call leaves a file or a directory open, whether it succeeds or is refused. */
import { execFileSync } from 'node:child_process';
import { readdir, readlink } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { answerOf, definitionOf, type ToolContext } from '../../../src/tools/tool.ts';
import { type Bench, makeBench } from './codingBench.ts';
import { hasProc } from './liveProcesses.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await makeBench();
});
afterEach(() => bench.remove());

/** The files and directories of the bench that this process holds open. */
async function open(): Promise<string[]> {
  const names = await readdir('/proc/self/fd');
  const targets = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
  return targets.filter((target) => target.startsWith(bench.root));
}

const PNG = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, ...new Array(40).fill(7)]);
const BIG = 10 * 1_048_576 + 1;
const NOTEBOOK = JSON.stringify({ nbformat: 4, cells: [{ cell_type: 'code', source: 'a', outputs: [] }] });

/** Calls of one conversation in their order, with the code of each result. */
const CALLS: readonly (readonly [name: string, args: object, code?: string])[] = [
  ['Read', { file_path: 'a.txt' }],
  ['Read', { file_path: 'a.txt', offset: 2, limit: 1 }],
  ['Read', { file_path: 'a.txt', offset: 99 }, 'invalid_arguments'],
  ['Read', { file_path: 'empty' }],
  ['Read', { file_path: 'a.png' }],
  ['Read', { file_path: 'big.png' }, 'too_large'],
  ['Read', { file_path: 'a.pdf' }],
  ['Read', { file_path: 'a.ipynb' }],
  ['Read', { file_path: 'nul' }, 'binary'],
  ['Read', { file_path: 'pipe' }, 'not_a_file'],
  ['Read', { file_path: 'sub' }, 'not_a_file'],
  ['Ls', {}],
  ['Ls', { path: 'a.txt' }, 'not_a_directory'],
  ['Glob', { pattern: '**' }],
  ['Glob', { pattern: '{' }, 'invalid_arguments'],
  ['Grep', { pattern: 'one' }],
  ['Grep', { pattern: 'one', path: 'a.txt' }],
  ['Grep', { pattern: '(', path: 'a.txt' }, 'invalid_arguments'],
  ['Grep', { pattern: 'one', path: 'nul' }, 'binary'],
  ['Grep', { pattern: 'line' }],
  ['Write', { file_path: 'new/below/file', content: 'x' }],
  ['Write', { file_path: 'a.txt', content: 'one\n2\n' }],
  ['Write', { file_path: 'sub/b.txt', content: 'x' }, 'not_read'],
  ['Write', { file_path: 'a.txt/below', content: 'x' }, 'not_a_directory'],
  ['Write', { file_path: 'big', content: 'x' }, 'too_large'],
  ['Edit', { file_path: 'a.txt', old_string: 'one', new_string: '1' }],
  ['Edit', { file_path: 'a.txt', old_string: 'one', new_string: '1' }, 'no_match'],
  ['Edit', { file_path: 'nul', old_string: 'one', new_string: '1' }, 'binary'],
  ['Edit', { file_path: 'gone', old_string: 'one', new_string: '1' }, 'not_found'],
];

describe.runIf(hasProc)('the files of a working directory', () => {
  it('are closed after each call', async () => {
    for (const [name, content] of Object.entries({
      ...{ 'a.txt': 'one\ntwo\n', empty: '', 'a.png': PNG, 'a.pdf': '%PDF-1.4', 'a.ipynb': NOTEBOOK },
      ...{ nul: 'a\0', 'sub/b.txt': 'line\n'.repeat(2_000), '.gitignore': 'x\n', big: new Uint8Array(BIG) },
      'big.png': Buffer.concat([PNG, Buffer.alloc(BIG)]),
    }))
      await bench.write(name, content);
    execFileSync('mkfifo', [`${bench.root}/pipe`]);
    const tools = codingTools({ sandbox: 'off' });
    const { signal } = new AbortController();
    const context = { conversationId: 'c', cwd: bench.root, signal } as unknown as ToolContext;
    for (const [name, args, code] of CALLS) {
      const definition = definitionOf(tools.find((tool) => tool.name === name) ?? { name, description: '' });
      const answer = answerOf(await definition?.execute(args, context));
      const got = answer?.status === 'error' ? answer.code : undefined;
      expect([name, args, got, await open()]).toEqual([name, args, code, []]);
    }
  });
});
