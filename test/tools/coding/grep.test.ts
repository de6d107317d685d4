import { chmod, readFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { rgPath } from '@vscode/ripgrep';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { startMatcher } from '../../../src/tools/coding/search/matcher.ts';
import { expression } from '../../../src/tools/coding/search/pattern.ts';
import { search } from '../../../src/tools/coding/search/search.ts';
import { placeOf } from '../../../src/tools/coding/workspace.ts';
import { proves, volume } from '../../support/tier.ts';
import { type Bench, call, makeBench, SECRET } from './codingBench.ts';
import { steadyThreads, threads } from './liveProcesses.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await makeBench();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await bench.remove();
});

type Args = { pattern: string; path?: string; include?: string };
const grep = (args: Args, signal?: AbortSignal) => call(bench.root, 'Grep', args, signal);
const found = async (args: Args) => (await grep(args)).text.split('\n');
const NOTHING = ['[no line matches]'];

/** The folders of the machine's programs. */
const WITH_RIPGREP = `${dirname(rgPath)}${delimiter}${process.env.PATH}`;
const WITHOUT_RIPGREP = '/nowhere';
const ENGINES = [
  { engine: 'ripgrep', path: WITH_RIPGREP },
  { engine: "the library's own engine", path: WITHOUT_RIPGREP },
];

describe.each(ENGINES)('Grep with $engine', ({ path }) => {
  beforeEach(async () => {
    vi.stubEnv('PATH', path);
    await bench.write('main.go', 'package main\n\nfunc main() {\n\tprintln("hello")\n}\n');
    await bench.write('src/a.ts', 'const hello = 1;\r\nconst bye = hello;\r\n');
    await bench.write('src/deep/b.ts', 'hello();\n');
  });

  it('TRC-13 it returns each matching line with its path and number', async () => {
    expect(await found({ pattern: 'hello' })).toEqual([
      'main.go:4: \tprintln("hello")',
      'src/a.ts:1: const hello = 1;',
      'src/a.ts:2: const bye = hello;',
      'src/deep/b.ts:1: hello();',
    ]);
    expect(await found({ pattern: '^func\\s+(\\w+)' })).toEqual(['main.go:3: func main() {']);
    expect(await found({ pattern: ';$', path: 'src/deep' })).toEqual(['src/deep/b.ts:1: hello();']);
    expect(await found({ pattern: '1;$' })).toEqual(['src/a.ts:1: const hello = 1;']);
  });

  it('a leading (?i) ignores case', async () => {
    expect(await found({ pattern: 'HELLO', path: 'src/deep' })).toEqual(NOTHING);
    expect(await found({ pattern: '(?i)HELLO', path: 'src/deep' })).toEqual(['src/deep/b.ts:1: hello();']);
  });

  it('it searches one file if path names it', async () => {
    expect(await found({ pattern: 'hello', path: 'src/deep/b.ts' })).toEqual(['src/deep/b.ts:1: hello();']);
  });

  it('include without a slash matches the name at any depth, and with a slash the path below path', async () => {
    expect(await found({ pattern: 'hello', include: '*.go' })).toEqual(['main.go:4: \tprintln("hello")']);
    expect(await found({ pattern: 'hello\\(', include: '*.{ts,md}' })).toEqual(['src/deep/b.ts:1: hello();']);
    expect(await found({ pattern: 'const h', include: 'src/*.ts' })).toEqual(['src/a.ts:1: const hello = 1;']);
    expect(await found({ pattern: 'hello', include: 'deep/*', path: 'src' })).toEqual(['src/deep/b.ts:1: hello();']);
    expect(await found({ pattern: 'hello', include: '*.rs' })).toEqual(NOTHING);
    expect((await grep({ pattern: 'hello', include: '{a' })).code).toBe('invalid_arguments');
  });

  it('an invalid or unsupported expression is an error result', async () => {
    for (const pattern of ['(', '[z-a]', '(?<=', '*a', 'a**', 'a{1001}', '\\']) {
      expect((await grep({ pattern })).code, pattern).toBe('invalid_arguments');
    }
    expect((await grep({ pattern: '' })).status).toBe('invalid');
    expect((await grep({ pattern: 'x'.repeat(2_001) })).status).toBe('invalid');
  });

  it('it skips binary files, and refuses one that path names', async () => {
    await bench.write('program', Buffer.from('\u007fELF\u0000hello\n'));
    expect(await found({ pattern: 'hello', include: 'program' })).toEqual(NOTHING);
    expect((await grep({ pattern: 'hello', path: 'program' })).code).toBe('binary');
    expect((await grep({ pattern: 'hello', path: 'none' })).code).toBe('not_found');
  });

  it('it skips hidden files, .git and node_modules unless path names them', async () => {
    for (const name of ['.env', '.git/config', '.cache/x', 'node_modules/m/i.js']) await bench.write(name, 'KEY=1\n');
    expect(await found({ pattern: 'KEY' })).toEqual(NOTHING);
    expect(await found({ pattern: 'KEY', include: '.env' })).toEqual(NOTHING);
    expect(await found({ pattern: 'KEY', path: 'node_modules' })).toEqual(['node_modules/m/i.js:1: KEY=1']);
  });

  it('H-261 it never follows a link', async () => {
    await bench.link('d', bench.evil);
    await bench.link('f', join(bench.evil, 's'));
    expect(await found({ pattern: SECRET })).toEqual(NOTHING);
    expect(await found({ pattern: SECRET, include: 'd/*' })).toEqual(NOTHING);
    expect((await grep({ pattern: SECRET, path: 'd/s' })).code).toBe('outside_workspace');
  });

  it('a line that contains other line ends is one line, and no match follows from its text', async () => {
    await bench.write('ends.txt', 'a match\r2:1:b\u20283:1:c\u0085\nb\nc\n');
    expect(await found({ pattern: 'match' })).toEqual(['ends.txt:1: a match\r2:1:b\u20283:1:c\u0085']);
    expect(await found({ pattern: '^2' })).toEqual(NOTHING);
  });

  it('of a long line it shows the part around the match, and never half of a character', async () => {
    await bench.write('min.js', `${'🎉'.repeat(500)}zneedles${'🎉'.repeat(500)}\n`);
    expect(await found({ pattern: 'needle' })).toEqual([`min.js:1: …${'🎉'.repeat(49)}zneedles${'🎉'.repeat(96)}…`]);
  });

  it('it searches the start of an overlong line and reports this', async () => {
    await bench.write('long.txt', `first${'x'.repeat(100_000)}last\nlast\n`);
    const lines = await found({ pattern: 'first|last' });
    expect(lines).toHaveLength(3);
    expect(lines[1]).toBe('long.txt:2: last');
    expect(lines[2]).toContain('only the beginning was searched');
  });

  it('it returns at most 1,000 matches and reports this', async () => {
    await bench.write('many.txt', 'match\n'.repeat(50_000));
    const lines = await found({ pattern: 'match' });
    expect(lines).toHaveLength(1_001);
    expect(lines[999]).toBe('many.txt:1000: match');
    expect(lines[1_000]).toContain('the first 1000 are shown and there are more');
  });

  it('it searches every file that matches include, however many there are', async () => {
    const names = Array.from({ length: 1_010 }, (_, at) => `many/${String(at).padStart(4, '0')}.txt`);
    for (const name of names) await bench.write(name, '');
    await bench.write('many/last.txt', 'needle');
    expect(await found({ pattern: 'needle', include: '*.txt' })).toEqual(['many/last.txt:1: needle']);
  });

  it('it finds one line among many batches of files', async () => {
    await bench.write('big.txt', `${'filler of some length\n'.repeat(200_000)}needle\n${'more\n'.repeat(1_000)}`);
    expect(await found({ pattern: '^needle$' })).toEqual(['big.txt:200001: needle']);
  });

  it('the error explains that lookaround and backreferences are unsupported', async () => {
    for (const pattern of ['hello(?=;)', '(?!x)hello', '(?<=c)hello', '(l)\\1']) {
      const { code, text } = await grep({ pattern });
      expect({ pattern, code }).toEqual({ pattern, code: 'invalid_arguments' });
      expect(text).toContain('without lookaround and backreferences');
    }
  });

  it('escapes and classes are those of ASCII', async () => {
    await bench.write('text.md', 'năm 2026\n٣ naïve\nx\u00a0y\nend\r\n');
    const numbers = async (pattern: string) =>
      (await found({ pattern, include: '*.md' })).map((line) => line.split(':')[1] ?? line);
    expect(await numbers('\\d')).toEqual(['1']);
    expect(await numbers('na\\Wve')).toEqual(['2']);
    expect(await numbers('na\\b')).toEqual(['2']);
    expect(await numbers('x\\sy')).toEqual(NOTHING);
    expect(await numbers('x[^\\w]y')).toEqual(['3']);
    expect(await numbers('d$')).toEqual(['4']);
    expect(await numbers('[\\d\\-]{4}')).toEqual(['1']);
    expect(await numbers('\\n')).toEqual(NOTHING);
  });

  it('an expression that causes endless backtracking elsewhere returns in time', async () => {
    await bench.write('five.txt', 'aaaaa');
    await bench.write('many.txt', `${'a'.repeat(5_000)}!\n`);
    expect(await found({ pattern: 'a?'.repeat(300) + 'a'.repeat(300), path: 'five.txt' })).toEqual(NOTHING);
    expect(await found({ pattern: '(a+)+$' })).toEqual(['five.txt:1: aaaaa']);
    expect(await found({ pattern: '(a|aa)+$', path: 'many.txt' })).toEqual(NOTHING);
  });
});

/** Much work for each character, in any engine. */
const SLOW = 'a(?:a|b){900}[^ab]';
const slowLine = Array.from({ length: 60_000 }, (_, index) => ((index * index) % 7 < 3 ? 'a' : 'b')).join('');

describe('an expression that exceeds its time', () => {
  beforeEach(async () => {
    vi.stubEnv('PATH', WITHOUT_RIPGREP);
    await bench.write('trap.txt', `${slowLine}\n`.repeat(20));
  });

  it('an abort ends it before its own time limit, with the reason of the signal', async () => {
    const controller = new AbortController();
    const reason = new Error('stopped');
    // This timer fires only if the thread of the runs is free.
    setTimeout(() => controller.abort(reason), 300);
    await expect(grep({ pattern: SLOW }, controller.signal)).rejects.toBe(reason);
  });

  it.runIf(process.platform === 'linux')('it leaves no thread', async () => {
    const before = await steadyThreads();
    const controller = new AbortController();
    const reason = new Error('stopped');
    const slow = expect(grep({ pattern: SLOW }, controller.signal)).rejects.toBe(reason);
    await expect.poll(threads).toBe(before + 1);
    controller.abort(reason);
    await slow;
    // The kernel lists a thread a moment after its end.
    await expect.poll(threads).toBe(before);
  });

  it('it never starts if the signal has already fired', async () => {
    const reason = new Error('stopped');
    await expect(grep({ pattern: SLOW }, AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  it.skipIf(!proves)('it stops automatically, as an error result, and does not delay the next search', async () => {
    expect((await grep({ pattern: SLOW })).code).toBe('timeout');
    expect(await found({ pattern: '^c', path: 'trap.txt' })).toEqual(NOTHING);
  });

  it.skipIf(!proves)('earlier matches are returned, with the reason for the end of the search', async () => {
    await bench.write('first.txt', `${'a'.repeat(901)}!\n${'filler\n'.repeat(100_000)}`);
    const result = await searched(['first.txt', 'trap.txt'], 10);
    expect(result.found.map(({ name, number }) => ({ name, number }))).toEqual([{ name: 'first.txt', number: 1 }]);
    expect(result.stopped).toMatchObject({ code: 'timeout' });
  });

  it('it is not reached if enough matches were found before', async () => {
    await bench.write('first.txt', `${'a'.repeat(901)}!\n`.repeat(1_000));
    const result = await searched(['first.txt', 'trap.txt'], 3, 60_000);
    expect(result.found.map(({ number }) => number)).toEqual([1, 2, 3]);
    expect(result.stopped).toBeUndefined();
  });
});

async function searched(names: string[], foundMax: number, batchMs = 1_000) {
  const places = await Promise.all(names.map((name) => placeOf(bench.root, name)));
  const files = places.flatMap((place) => (place.kind === 'place' ? [place] : []));
  const { signal } = new AbortController();
  const matcher = startMatcher(signal, batchMs);
  try {
    return await search(files, expression(SLOW), { matcher, foundMax, signal });
  } finally {
    await matcher.end();
  }
}

describe.runIf(process.platform !== 'win32')('ripgrep of the machine', () => {
  /** A program named rg, first in PATH. */
  async function standIn(script: string): Promise<void> {
    await bench.write('bin/rg', `#!/bin/sh\n${script}\n`);
    await chmod(join(bench.root, 'bin/rg'), 0o755);
    vi.stubEnv('PATH', `${join(bench.root, 'bin')}${delimiter}/usr/bin${delimiter}/bin`);
  }
  const lines = ['one', 'two'];
  async function matched(pattern: string, batchMs = 1_500, signal = new AbortController().signal) {
    const matcher = startMatcher(signal, batchMs);
    try {
      return await matcher.match(expression(pattern), lines, 10);
    } finally {
      await matcher.end();
    }
  }

  it('it performs the search if PATH contains it', async () => {
    await standIn('echo 2:3:two');
    expect(await matched('one')).toEqual({ kind: 'hits', hits: [[1, 2]] });
  });

  it('it is not used for an expression that it interprets differently', async () => {
    await standIn('echo 2:3:two');
    for (const pattern of ['[[:alpha:]]ne', '(?s)one', 'on\\pL', 'o{1}{0}ne|one']) {
      expect(await matched(pattern), pattern).not.toEqual({ kind: 'hits', hits: [[1, 2]] });
    }
  });

  it('the built-in engine performs the search if ripgrep fails', async () => {
    for (const script of ['exit 2', 'kill -9 $$', 'exec /nowhere/rg']) {
      await standIn(script);
      expect(await matched('o$'), script).toEqual({ kind: 'hits', hits: [[1, 2]] });
    }
  });

  it.skipIf(!proves)('it is killed at its time limit and by an abort, and no process remains', async () => {
    await standIn(`echo $$ >> ${bench.root}/pids; exec sleep 1000`);
    expect(await matched('one', 500)).toMatchObject({ code: 'timeout' });
    const controller = new AbortController();
    const reason = new Error('stopped');
    setTimeout(() => controller.abort(reason), 500);
    await expect(matched('one', 60_000, controller.signal)).rejects.toBe(reason);
    const pids = (await readFile(join(bench.root, 'pids'), 'utf8')).trim().split('\n').map(Number);
    expect(pids).toHaveLength(2);
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });

  it('it is not used from a relative directory in PATH', async () => {
    await standIn('echo 2:3:two');
    vi.stubEnv('PATH', `.${delimiter}bin${delimiter}`);
    const cwd = vi.spyOn(process, 'cwd').mockReturnValue(bench.root);
    expect(await matched('one')).toEqual({ kind: 'hits', hits: [[0, 0]] });
    cwd.mockRestore();
  });
});

const escapes = ['d', 'w', 's', 'D', 'W', 'S', 'b', 'B', '.', '/', '-', '[', 't', '<'].map((name) => `\\${name}`);
const atoms = fc.constantFrom(
  'a',
  'b',
  'é',
  'K',
  '.',
  '^',
  '$',
  '_',
  '-',
  '"',
  ...escapes,
  '[ab]',
  '[^a]',
  '[\\w-]',
  '[a-z\\d]',
);
const repeats = fc.constantFrom('', '', '*', '+?', '{2}', '{0,3}');
const piece = fc.tuple(atoms, repeats).map((each) => each.join(''));
const branch = fc.array(piece, { maxLength: 4 }).map((each) => each.join(''));
const grouped = fc.oneof(
  branch,
  branch.map((each) => `(?:${each})+`),
  fc.tuple(branch, branch).map((each) => `(${each.join('|')})`),
);
const patterns = fc
  .tuple(fc.constantFrom('', '(?i)'), fc.array(grouped, { minLength: 1, maxLength: 3 }))
  .map(([first, rest]) => first + rest.join(''))
  .filter((each) => each !== '');
const texts = fc.array(fc.string({ unit: fc.constantFrom(...'abABékK\u212a_-".[/<1: \t\r\u00a0\u2028🎉') }), {
  minLength: 1,
  maxLength: 6,
});

it('each expression finds the same matches with ripgrep and without', async () => {
  const { signal } = new AbortController();
  const own = startMatcher(signal, 60_000);
  try {
    await fc.assert(
      fc.asyncProperty(patterns, texts, async (pattern, lines) => {
        vi.stubEnv('PATH', WITH_RIPGREP);
        const matcher = startMatcher(signal, 60_000);
        const first = await matcher.match(expression(pattern), lines, 10);
        await matcher.end();
        vi.stubEnv('PATH', WITHOUT_RIPGREP);
        expect(first).toEqual(await own.match(expression(pattern), lines, 10));
      }),
      { numRuns: volume.expressions },
    );
  } finally {
    await own.end();
  }
});
