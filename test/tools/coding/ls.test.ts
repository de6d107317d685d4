import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { shownName } from '../../../src/tools/coding/search/listing.ts';
import { type Bench, call, makeBench } from './codingBench.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await makeBench();
});
afterEach(() => bench.remove());

describe('Ls', () => {
  it('TRC-13 it lists a directory sorted, with marks for directories and links, and with hidden entries', async () => {
    await bench.write('b.txt', '');
    await bench.write('B.txt', '');
    await bench.write('a/inner.txt', '');
    await bench.write('.env', '');
    await bench.link('out', bench.evil);
    expect(await call(bench.root, 'Ls', {})).toMatchObject({ status: 'success', text: '.env\nB.txt\na/\nb.txt\nout@' });
    expect((await call(bench.root, 'Ls', { path: 'a' })).text).toBe('inner.txt');
    expect((await call(bench.root, 'Ls', { path: join(bench.root, 'a/') })).text).toBe('inner.txt');
  });

  it('an empty directory is reported as empty', async () => {
    await mkdir(join(bench.root, 'none'));
    expect((await call(bench.root, 'Ls', { path: 'none' })).text).toBe('[the directory is empty]');
  });

  it('H-279 names with line breaks, escape or direction characters are quoted and escaped', async () => {
    for (const name of ['a\nb', 'c\u001b[2Jd', 'e\u202ef', 'g\u009bh', 'i j']) await bench.write(name, 'text\n');
    const { text } = await call(bench.root, 'Ls', {});
    expect(text.split('\n')).toEqual(['"a\\nb"', '"c\\u001b[2Jd"', '"e\\u202ef"', '"g\\u009bh"', 'i j']);
    expect((await call(bench.root, 'Glob', { pattern: '**' })).text.split('\n')).toContain('"a\\nb"');
    expect((await call(bench.root, 'Grep', { pattern: 'text' })).text.split('\n')).toContain('"c\\u001b[2Jd":1: text');
    expect((await call(bench.root, 'Ls', { path: 'x\n\u001b' })).text).toContain('"x\\n\\u001b"');
  });

  it('ordinary names of every script are unchanged', () => {
    for (const name of ['main.go', 'äöü.txt', '日本語', 'a "b".txt', 'f🎉', '..\\x'])
      expect(shownName(name)).toBe(name);
    expect(shownName('a\ud800')).toBe('"a\\ud800"');
  });

  it('a long list is cut with a note', async () => {
    await mkdir(join(bench.root, 'many'));
    await Promise.all(Array.from({ length: 1_200 }, (_, index) => bench.write(`many/${10_000 + index}`, '')));
    const lines = (await call(bench.root, 'Ls', { path: 'many' })).text.split('\n');
    expect(lines).toHaveLength(1_001);
    expect(lines[999]).toBe('10999');
    expect(lines[1_000]).toContain('the first 1000 are shown and there are more');
  });

  it('an abort ends it with the reason of the signal', async () => {
    const reason = new Error('stopped');
    await expect(call(bench.root, 'Ls', {}, AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});
