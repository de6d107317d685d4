/** The files that `.gitignore` leaves out of Glob and Grep, compared with git itself, and the order and time of searches. */
import { execFileSync, spawn } from 'node:child_process';
import { utimes } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { afterCpuTime, cpuTimeOf } from '../../../src/tools/coding/search/cpuLimit.ts';
import { ignoreBudget, ignoreRules, isLeftOut } from '../../../src/tools/coding/search/ignoreRules.ts';
import { startMatcher } from '../../../src/tools/coding/search/matcher.ts';
import { expression } from '../../../src/tools/coding/search/pattern.ts';
import { cpuTime } from '../../support/cpuTime.ts';
import { type Bench, call, makeBench } from './codingBench.ts';
import { hasProc } from './liveProcesses.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await makeBench();
});
afterEach(() => bench.remove());

const glob = async (pattern: string, path?: string): Promise<string[]> =>
  (await call(bench.root, 'Glob', { pattern, ...(path !== undefined && { path }) })).text.split('\n').sort();
const grep = async (path?: string): Promise<string> =>
  (await call(bench.root, 'Grep', { pattern: 'x', ...(path !== undefined && { path }) })).text;

describe('.gitignore', () => {
  beforeEach(async () => {
    await bench.write('.gitignore', 'dist/\n*.log\n!keep.log\n/top.txt\n');
    await bench.write('src/.gitignore', '*.gen.ts\n!a.log\n');
    for (const name of [
      'dist/a.ts',
      'a.log',
      'keep.log',
      'top.txt',
      'src/top.txt',
      'src/b.gen.ts',
      'src/a.log',
      'c.gen.ts',
    ])
      await bench.write(name, 'x\n');
  });

  it('leaves files and directories out of Glob and Grep, the nearest file first', async () => {
    const kept = ['c.gen.ts', 'keep.log', 'src/a.log', 'src/top.txt'];
    expect(await glob('**')).toEqual(kept);
    expect((await grep()).split('\n').sort()).toEqual(kept.map((name) => `${name}:1: x`));
  });

  it('holds below a path of the search as above it', async () => {
    expect(await glob('**', 'src')).toEqual(['src/a.log', 'src/top.txt']);
  });

  it('leaves nothing out where the path itself is left out, and no file that is named', async () => {
    expect(await glob('**', 'dist')).toEqual(['dist/a.ts']);
    expect(await grep('dist')).toBe('dist/a.ts:1: x');
    expect(await grep('a.log')).toBe('a.log:1: x');
  });

  it('is not followed through a link, and nothing above the working directory counts', async () => {
    await bench.write('other/b.ts', 'x\n');
    await bench.link('other/.gitignore', join(bench.evil, 's'));
    expect(await glob('**', 'other')).toEqual(['other/b.ts']);
    expect(await glob('*.ts', join(bench.root, 'src'))).toEqual(['[no file matches]']);
  });

  it('with a byte order mark has the same rules', async () => {
    await bench.write('src/.gitignore', '\uFEFF*.gen.ts\n');
    expect(await glob('**', 'src')).toEqual(['src/top.txt']);
  });

  it('of a hostile author does not hold up a search', async () => {
    const names = Array.from({ length: 300 }, (_, index) => `${'a'.repeat(240)}${index}`);
    for (const name of names) await bench.write(`deep/${name}`, '');
    await bench.write('deep/.gitignore', `${'*a'.repeat(120)}b\n`.repeat(250));
    expect(await cpuTime(async () => expect((await glob('**', 'deep')).length).toBeGreaterThan(299))).toBeLessThan(
      20_000,
    );
  });
});

describe('the rules of .gitignore', () => {
  const leftOut = (rules: string, path: string): boolean => {
    const parts = path.split('/');
    // If a directory is left out, so are its contents.
    return parts.some(
      (_, index) =>
        isLeftOut(ignoreRules(rules), parts.slice(0, index + 1), index < parts.length - 1, ignoreBudget()) === true,
    );
  };

  it('fit what git leaves out', async () => {
    execFileSync('git', ['init', '-q', bench.root]);
    // Two stars inside of a part are left out: git reads some of them by the letters before them.
    const piece = fc.constantFrom('a', 'b', '*', '?', '[ab]', '[!a]', '\\*', '\\a', ' ', '#', '!');
    const one = fc.array(piece, { minLength: 1, maxLength: 3 }).map((pieces) => pieces.join('').replace(/\*\*+/g, '*'));
    const part = fc.oneof({ weight: 3, arbitrary: one }, { weight: 1, arbitrary: fc.constant('**') });
    const path = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
    const line = fc
      .tuple(fc.constantFrom('', '', '!', '/'), path, fc.constantFrom('', '', '/'))
      .map((texts) => texts.join(''));
    const paths = ['a', 'b', 'ab', 'a/b', 'b/a', 'a/a/b', 'b/ab/a', 'a/b/a/b', '*', 'a b'];
    await fc.assert(
      fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 3 }), async (lines) => {
        const rules = lines.join('\n');
        await bench.write('.gitignore', rules);
        let found = '';
        try {
          const input = paths.map((path) => `${path}\0`).join('');
          found = execFileSync('git', ['-C', bench.root, 'check-ignore', '--no-index', '-z', '--stdin'], {
            input,
            encoding: 'utf8',
          });
        } catch (error) {
          // It ends with 1 where nothing is left out.
          if ((error as { status?: number }).status !== 1) throw error;
        }
        const wanted = found.split('\0').filter(Boolean);
        expect([rules, paths.filter((path) => leftOut(rules, path))]).toEqual([rules, wanted]);
      }),
      { numRuns: 150 },
    );
  });

  it('know sets, classes and escapes', () => {
    for (const [rule, fits, others] of [
      ['[[:digit:]].c', ['1.c'], ['a.c']],
      ['[a-c]x', ['bx'], ['dx', '-x']],
      ['[^a]x', ['bx'], ['ax']],
      ['[', [], ['a']],
      ['\\#a', ['#a'], ['a']],
      ['a\\ ', ['a '], ['a']],
      ['a  ', ['a'], ['a ']],
      ['ü?', ['ü😀'], ['ü']],
    ] as const) {
      for (const path of fits) expect([rule, path, leftOut(rule, path)]).toEqual([rule, path, true]);
      for (const path of others) expect([rule, path, leftOut(rule, path)]).toEqual([rule, path, false]);
    }
  });
});

describe('Glob', () => {
  it('lists the files that changed last first, and files of the same time by name', async () => {
    for (const [name, time] of [
      ['a', 100],
      ['b/c', 300],
      ['d', 200],
      ['b/a', 200],
    ] as const) {
      await bench.write(name, '');
      await utimes(join(bench.root, name), time, time);
    }
    expect((await call(bench.root, 'Glob', { pattern: '**' })).text.split('\n')).toEqual(['b/c', 'b/a', 'd', 'a']);
  });
});

describe.skipIf(!hasProc)('the time of a search', () => {
  it('counts CPU time: a machine that is busy with other work does not end a small one', async () => {
    const busy = cpus().flatMap(() => Array.from({ length: 4 }, () => spawn('bash', ['-c', 'while :; do :; done'])));
    try {
      const matcher = startMatcher(new AbortController().signal, 400);
      // This one runs in a thread, whose start alone takes longer on such a machine.
      expect(await matcher.match(expression('(?s)tw.'), ['one', 'two', 'three'], 5)).toEqual({
        kind: 'hits',
        hits: [[1, 0]],
      });
      await matcher.end();
    } finally {
      for (const child of busy) child.kill('SIGKILL');
    }
  });

  it('ends work that uses more than its limit, and work that waits after a multiple of it', async () => {
    const lateAfter = (limit: number, usedMs: () => number | undefined): Promise<number> => {
      const since = performance.now();
      return new Promise((resolve) => void afterCpuTime(limit, usedMs, () => resolve(performance.now() - since)));
    };
    let used = 5_000;
    const working = (): number => {
      used += 600;
      return used;
    };
    expect(await lateAfter(1_000, working)).toBeLessThan(10_000);
    expect(await lateAfter(20, () => undefined)).toBeGreaterThanOrEqual(399);
    expect(await lateAfter(20, () => 7)).toBeGreaterThanOrEqual(399);
    expect(cpuTimeOf('/proc/self')).toBeGreaterThan(0);
    expect(cpuTimeOf('/proc/none')).toBeUndefined();
  });
});
