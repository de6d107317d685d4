import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { filesBelow } from '../../../src/tools/coding/workspace.ts';
import { type Bench, call, makeBench } from './codingBench.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await makeBench();
});
afterEach(() => bench.remove());

const glob = (pattern: string, path?: string, signal?: AbortSignal) =>
  call(bench.root, 'Glob', path === undefined ? { pattern } : { pattern, path }, signal);
/** By name; `ignored.test.ts` checks the order by time. */
const found = async (pattern: string, path?: string) => (await glob(pattern, path)).text.split('\n').sort();
const NOTHING = ['[no file matches]'];

describe('Glob', () => {
  beforeEach(async () => {
    for (const name of ['main.go', 'src/b.ts', 'src/a.ts', 'src/deep/c.ts', 'docs/a.md'])
      await bench.write(name, 'x\n');
  });

  it('TRC-13 it finds files at any depth, as paths that Read accepts', async () => {
    expect(await found('**/*.ts')).toEqual(['src/a.ts', 'src/b.ts', 'src/deep/c.ts']);
    expect(await found('*.go')).toEqual(['main.go']);
    expect(await found('./src/*.{ts,js}')).toEqual(['src/a.ts', 'src/b.ts']);
    expect(await found('**/a.*')).toEqual(['docs/a.md', 'src/a.ts']);
    expect((await call(bench.root, 'Read', { file_path: 'src/deep/c.ts' })).status).toBe('success');
  });

  it('it matches below path and still returns paths from the working directory', async () => {
    expect(await found('*.ts', 'src')).toEqual(['src/a.ts', 'src/b.ts']);
    expect(await found('**/*.ts', join(bench.root, 'src/deep'))).toEqual(['src/deep/c.ts']);
  });

  it('it skips hidden entries, node_modules and .git, unless path names them', async () => {
    for (const name of ['.env', '.github/ci.yml', '.git/config', 'node_modules/x/i.ts', 'src/node_modules/y.ts']) {
      await bench.write(name, 'x\n');
    }
    expect(await found('**')).toEqual(['docs/a.md', 'main.go', 'src/a.ts', 'src/b.ts', 'src/deep/c.ts']);
    expect(await found('.env')).toEqual(NOTHING);
    expect(await found('.github/*')).toEqual(NOTHING);
    expect(await found('*.yml', '.github')).toEqual(['.github/ci.yml']);
    expect(await found('**/*.ts', 'node_modules')).toEqual(['node_modules/x/i.ts']);
  });

  it('H-261 it follows no link, wherever the pattern names it', async () => {
    await bench.link('d', bench.evil);
    await bench.link('f', join(bench.evil, 's'));
    await bench.link('inside', 'src');
    for (const pattern of ['**/s', 'd/*', 'd/s', 'f', '*/s', 'inside/*', '{d,x}/**']) {
      expect(await found(pattern), pattern).toEqual(NOTHING);
    }
  });

  it('H-260 it finds nothing above its directory, in any spelling', async () => {
    expect((await glob('../ws-evil/*')).code).toBe('outside_workspace');
    expect((await glob('src/../../ws-evil/*')).code).toBe('outside_workspace');
    expect((await glob(`${bench.evil}/*`)).code).toBe('invalid_arguments');
    for (const pattern of ['.\\./ws-evil/*', '\\.\\./ws-evil/*', '{..,x}/ws-evil/*', '[.][.]/ws-evil/*', '@(..)/**']) {
      expect(await found(pattern), pattern).toEqual(NOTHING);
    }
  });

  it.runIf(process.platform !== 'win32')(
    'a directory name with backslashes or brackets is taken literally',
    async () => {
      await bench.write('..\\..\\ws-evil/in', 'x\n');
      await bench.write('[a]*/in', 'x\n');
      expect(await found('**', '..\\..\\ws-evil')).toEqual(['..\\..\\ws-evil/in']);
      expect(await found('*', '[a]*')).toEqual(['[a]*/in']);
    },
  );

  it('an empty, overlong or invalid pattern is refused', async () => {
    expect((await glob('')).status).toBe('invalid');
    expect((await glob('+('.repeat(300))).status).toBe('invalid');
    expect((await glob('{a')).code).toBe('invalid_arguments');
  });

  it('a long list is cut with a note', async () => {
    await mkdir(join(bench.root, 'many'));
    await Promise.all(Array.from({ length: 1_100 }, (_, index) => bench.write(`many/${10_000 + index}`, '')));
    const lines = (await glob('many/*')).text.split('\n');
    expect(lines).toHaveLength(1_001);
    expect(new Set(lines.slice(0, 1_000)).size).toBe(1_000);
    expect(lines[1_000]).toContain('the first 1000 are shown and there are more');
  });

  it('a list of long names stays within 256 KiB', async () => {
    const directory = `${'d'.repeat(250)}/`.repeat(8);
    await Promise.all(Array.from({ length: 300 }, (_, index) => bench.write(`${directory}${index}`, '')));
    const { text } = await glob('**');
    expect(Buffer.byteLength(text)).toBeLessThan(256 * 1_024);
    expect(text).toContain('there are more');
  });

  it('a pattern that causes endless backtracking elsewhere returns in time', async () => {
    await bench.write('a'.repeat(250), '');
    for (const pattern of [`${'*a'.repeat(40)}b`, `${'*'.repeat(200)}b`, `${'+('.repeat(30)}a${')'.repeat(30)}b`]) {
      expect(await found(pattern), pattern).toEqual(NOTHING);
    }
  });

  it('it accepts sets, ranges, groups and nested alternatives', async () => {
    for (const name of ['a1', 'b2', 'c3', 'x[y]', '{z}', 'p/q/r']) await bench.write(name, '');
    expect(await found('[ab]?')).toEqual(['a1', 'b2']);
    expect(await found('[!ab]?')).toEqual(['c3']);
    expect(await found('{a..b}[[:digit:]]')).toEqual(['a1', 'b2']);
    expect(await found('{a,@(b|c)}[23]')).toEqual(['b2', 'c3']);
    expect(await found('x\\[y\\]')).toEqual(['x[y]']);
    expect(await found('{z}')).toEqual(['{z}']);
    expect(await found('**/q/**')).toEqual(['p/q/r']);
    expect(await found('!{docs,src,p}/**')).toEqual(['a1', 'b2', 'c3', 'main.go', 'x[y]', '{z}']);
  });

  it.each(['?', '*', '[!a]', '[^a]', '[!a-z]', '[^[:alpha:]]', '@([!a])', '{[!a],x}', '+(?)', '\\.'])(
    '%s in a part of a path stands for no slash',
    async (wildcard) => {
      for (const name of ['e.g', 'e/g.h/i', 'e/g/h/i']) await bench.write(name, '');
      expect(await found(`e${wildcard}g`)).toEqual(['e.g']);
      expect(await found(`e/g${wildcard}h/i`)).toEqual(['e/g.h/i']);
    },
  );

  it('the error names the unsupported syntax', async () => {
    for (const pattern of ['!(a)', 'a[b', '@(a', 'a\\', '[z-a]']) {
      expect((await glob(pattern)).code, pattern).toBe('invalid_arguments');
    }
  });
});

describe('the walk', () => {
  it('it visits a limited number of entries and reports skipped ones', async () => {
    for (const directory of ['a', 'b', 'c', 'd']) await bench.write(`${directory}/file`, '');
    const signal = new AbortController().signal;
    expect(await filesBelow(bench.root, signal)).toMatchObject({ cut: false, names: { length: 4 } });
    const bounded = await filesBelow(bench.root, signal, 4);
    expect(bounded).toEqual({ cut: true, names: [] });
  });

  it('an abort ends it with the reason of the signal', async () => {
    const reason = new Error('stopped');
    await expect(filesBelow(bench.root, AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});
