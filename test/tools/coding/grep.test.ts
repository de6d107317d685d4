import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startMatcher } from '../../../src/tools/coding/matcher.ts';
import { search } from '../../../src/tools/coding/search.ts';
import { placeOf } from '../../../src/tools/coding/workspace.ts';
import { type Bench, call, makeBench, SECRET } from './bench.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await makeBench();
});
afterEach(() => bench.remove());

type Args = { pattern: string; path?: string; include?: string };
const grep = (args: Args, signal?: AbortSignal) => call(bench.root, 'Grep', args, signal);
const found = async (args: Args) => (await grep(args)).text.split('\n');
const NOTHING = ['[no line matches]'];

describe('Grep', () => {
  beforeEach(async () => {
    await bench.write('main.go', 'package main\n\nfunc main() {\n\tprintln("hello")\n}\n');
    await bench.write('src/a.ts', 'const hello = 1;\r\nconst bye = hello;\r\n');
    await bench.write('src/deep/b.ts', 'hello();\n');
  });

  it('TRC-13 gives each line that matches with its path and number', async () => {
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

  it('takes a leading (?i) as: ignore case', async () => {
    expect(await found({ pattern: 'HELLO', path: 'src/deep' })).toEqual(NOTHING);
    expect(await found({ pattern: '(?i)HELLO', path: 'src/deep' })).toEqual(['src/deep/b.ts:1: hello();']);
  });

  it('searches one file where path names it', async () => {
    expect(await found({ pattern: 'hello', path: 'src/deep/b.ts' })).toEqual(['src/deep/b.ts:1: hello();']);
  });

  it('include without a slash is about the name at any depth, with one about the path below path', async () => {
    expect(await found({ pattern: 'hello', include: '*.go' })).toEqual(['main.go:4: \tprintln("hello")']);
    expect(await found({ pattern: 'hello\\(', include: '*.{ts,md}' })).toEqual(['src/deep/b.ts:1: hello();']);
    expect(await found({ pattern: 'const h', include: 'src/*.ts' })).toEqual(['src/a.ts:1: const hello = 1;']);
    expect(await found({ pattern: 'hello', include: 'deep/*', path: 'src' })).toEqual(['src/deep/b.ts:1: hello();']);
    expect(await found({ pattern: 'hello', include: '*.rs' })).toEqual(NOTHING);
    expect((await grep({ pattern: 'hello', include: '{a' })).code).toBe('invalid_arguments');
  });

  it('an expression that is not valid or cannot be run is an error result', async () => {
    for (const pattern of ['(', '[z-a]', '(?<=']) expect((await grep({ pattern })).code).toBe('invalid_arguments');
    expect((await grep({ pattern: '' })).status).toBe('invalid');
    expect((await grep({ pattern: 'x'.repeat(2_001) })).status).toBe('invalid');
  });

  it('passes over binary files, and refuses one that path names', async () => {
    await bench.write('program', Buffer.from('\u007fELF\u0000hello\n'));
    expect(await found({ pattern: 'hello', include: 'program' })).toEqual(NOTHING);
    expect((await grep({ pattern: 'hello', path: 'program' })).code).toBe('binary');
    expect((await grep({ pattern: 'hello', path: 'none' })).code).toBe('not_found');
  });

  it('never searches hidden files, .git and node_modules unless path names them', async () => {
    for (const name of ['.env', '.git/config', '.cache/x', 'node_modules/m/i.js']) await bench.write(name, 'KEY=1\n');
    expect(await found({ pattern: 'KEY' })).toEqual(NOTHING);
    expect(await found({ pattern: 'KEY', include: '.env' })).toEqual(NOTHING);
    expect(await found({ pattern: 'KEY', path: 'node_modules' })).toEqual(['node_modules/m/i.js:1: KEY=1']);
  });

  it('H-261 never searches what a link leads to', async () => {
    await bench.link('d', bench.evil);
    await bench.link('f', join(bench.evil, 's'));
    expect(await found({ pattern: SECRET })).toEqual(NOTHING);
    expect(await found({ pattern: SECRET, include: 'd/*' })).toEqual(NOTHING);
    expect((await grep({ pattern: SECRET, path: 'd/s' })).code).toBe('outside_workspace');
  });

  it('shows of a long line the part around the match, and never half of a character', async () => {
    await bench.write('min.js', `${'🎉'.repeat(500)}zneedles${'🎉'.repeat(500)}\n`);
    expect(await found({ pattern: 'needle' })).toEqual([`min.js:1: …${'🎉'.repeat(49)}zneedles${'🎉'.repeat(96)}…`]);
  });

  it('searches the beginning of an overlong line and says so', async () => {
    await bench.write('long.txt', `first${'x'.repeat(100_000)}last\nlast\n`);
    const lines = await found({ pattern: 'first|last' });
    expect(lines).toHaveLength(3);
    expect(lines[1]).toBe('long.txt:2: last');
    expect(lines[2]).toContain('only the beginning was searched');
  });

  it('gives 1,000 matches at most and says so', async () => {
    await bench.write('many.txt', 'match\n'.repeat(50_000));
    const lines = await found({ pattern: 'match' });
    expect(lines).toHaveLength(1_001);
    expect(lines[999]).toBe('many.txt:1000: match');
    expect(lines[1_000]).toContain('the first 1000 are shown and there are more');
  });

  it('finds the one line in a file of many batches', async () => {
    await bench.write('big.txt', `${'filler of some length\n'.repeat(200_000)}needle\n${'more\n'.repeat(1_000)}`);
    expect(await found({ pattern: '^needle$' })).toEqual(['big.txt:200001: needle']);
  });
});

const ENDLESS = '(a+)+$';

describe('an expression that backtracks for ever', () => {
  beforeEach(() => bench.write('trap.txt', `${'a'.repeat(5_000)}!\n`));

  it('is ended by an abort within a second, with the reason of the signal', async () => {
    const controller = new AbortController();
    const reason = new Error('stopped');
    let abortedAt = Number.NaN;
    // That this timer fires at all shows that the thread of the runs is free.
    setTimeout(() => {
      abortedAt = performance.now();
      controller.abort(reason);
    }, 300);
    await expect(grep({ pattern: ENDLESS }, controller.signal)).rejects.toBe(reason);
    expect(performance.now() - abortedAt).toBeLessThan(1_000);
  });

  it.runIf(process.platform === 'linux')('leaves no thread behind', async () => {
    const threads = async () => (await readdir('/proc/self/task')).length;
    let before = await threads();
    await expect
      .poll(async () => {
        const last = before;
        before = await threads();
        return before === last;
      })
      .toBe(true);
    const controller = new AbortController();
    const reason = new Error('stopped');
    const endless = expect(grep({ pattern: ENDLESS }, controller.signal)).rejects.toBe(reason);
    await expect.poll(threads).toBe(before + 1);
    controller.abort(reason);
    await endless;
    // The kernel lists a thread a moment longer than it lives.
    await expect.poll(threads).toBe(before);
  });

  it('is never started where the signal has already fired', async () => {
    const reason = new Error('stopped');
    await expect(grep({ pattern: ENDLESS }, AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  it('is stopped by itself, as an error result, and does not hold up the next search', async () => {
    expect((await grep({ pattern: ENDLESS })).code).toBe('timeout');
    expect(await found({ pattern: '!$' })).toHaveLength(1);
  });

  it('leaves what was found before it, with the reason why the search ended', async () => {
    await bench.write('first.txt', `aaa\n${'filler\n'.repeat(100_000)}`);
    const result = await searched(['first.txt', 'trap.txt'], 10);
    expect(result.found).toEqual([{ name: 'first.txt', number: 1, excerpt: 'aaa' }]);
    expect(result.stopped).toMatchObject({ code: 'timeout' });
  });

  it('is never reached where enough was found before it', async () => {
    await bench.write('first.txt', 'aaa\n'.repeat(200_000));
    const result = await searched(['first.txt', 'trap.txt'], 3);
    expect(result.found.map(({ number }) => number)).toEqual([1, 2, 3]);
    expect(result.stopped).toBeUndefined();
  });
});

async function searched(names: string[], foundMax: number) {
  const places = await Promise.all(names.map((name) => placeOf(bench.root, name)));
  const files = places.flatMap((place) => (place.kind === 'place' ? [place] : []));
  const { signal } = new AbortController();
  const matcher = startMatcher(signal, 2_000);
  try {
    return await search(files, { kind: 'pattern', source: ENDLESS, flags: '' }, { matcher, foundMax, signal });
  } finally {
    await matcher.end();
  }
}
