import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { linesOf } from '../../../src/tools/coding/textFile.ts';
import { type Bench, call, makeBench } from './codingBench.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await makeBench();
});
afterEach(() => bench.remove());

const read = (args: { offset?: number; limit?: number }) => call(bench.root, 'Read', { file_path: 'a.txt', ...args });
const counted = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join('');

describe('Read', () => {
  it('TRC-13 it numbers the lines of a file', async () => {
    await bench.write('a.txt', 'package main\n\nfunc main() {}\n');
    expect(await read({})).toMatchObject({
      status: 'success',
      text: '  1 | package main\n  2 | \n  3 | func main() {}',
    });
  });

  it('all numbers of one result have the same width', async () => {
    await bench.write('a.txt', counted(1_000));
    const lines = (await read({ offset: 999 })).text.split('\n');
    expect(lines).toEqual([' 999 | line 999', '1000 | line 1000']);
  });

  it('it reads limit lines from offset and reports how to continue', async () => {
    await bench.write('a.txt', counted(10));
    const { text } = await read({ offset: 4, limit: 2 });
    expect(text).toBe('  4 | line 4\n  5 | line 5\n[lines 4 to 5; more follow: read on with offset 6]');
  });

  it('there is no such note after the last line', async () => {
    await bench.write('a.txt', counted(5));
    expect((await read({ offset: 4, limit: 2 })).text).toBe('  4 | line 4\n  5 | line 5');
  });

  it('it returns 2,000 lines by default, and more with a higher limit', async () => {
    await bench.write('a.txt', counted(2_500));
    const lines = (await read({})).text.split('\n');
    expect(lines).toHaveLength(2_001);
    expect(lines.at(-1)).toContain('read on with offset 2001');
    expect((await read({ limit: 2_500 })).text.split('\n')).toHaveLength(2_500);
  });

  it('it returns at most 256 KiB, and each continuation returns the next lines without a gap', async () => {
    await bench.write('a.txt', `${'é'.repeat(600)}\n`.repeat(700));
    const numbers: number[] = [];
    for (let offset: number | undefined = 1; offset !== undefined; ) {
      const { text } = await read({ offset });
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(256 * 1_024);
      for (const [, number] of text.matchAll(/^ *(\d+) \| é{600}$/gm)) numbers.push(Number(number));
      const next: string | undefined = /read on with offset (\d+)/.exec(text)?.[1];
      offset = next === undefined ? undefined : Number(next);
    }
    expect(numbers).toEqual(Array.from({ length: 700 }, (_, index) => index + 1));
  });

  it('it cuts a long line with a mark, never inside a character, and continues after it', async () => {
    await bench.write('a.txt', `${'x'.repeat(1_999)}🎉${'y'.repeat(300_000)}\nshort\n`);
    const [long, short] = (await read({})).text.split('\n');
    expect(long).toBe(`  1 | ${'x'.repeat(1_999)} … [line cut at 2000 characters]`);
    expect(short).toBe('  2 | short');
  });

  it('it returns a line of exactly the maximum length completely, also with CR LF', async () => {
    await bench.write('a.txt', `${'x'.repeat(2_000)}\r\n${'y'.repeat(2_000)}`);
    expect((await read({})).text).toBe(`  1 | ${'x'.repeat(2_000)}\n  2 | ${'y'.repeat(2_000)}`);
  });

  it('it decodes UTF-8 across chunks, without a byte order mark', async () => {
    // Each line has 99 bytes, an odd number. So characters of two and four bytes cross every border.
    await bench.write('a.txt', `\uFEFF${`${'é'.repeat(47)}🎉\n`.repeat(2_000)}`);
    const { text: shown } = await read({});
    expect(shown.match(/^ *\d+ \| é{47}🎉$/gm)).toHaveLength(2_000);
    expect(shown).not.toContain('\uFFFD');
  });

  it('bytes that are not UTF-8 are replacement characters', async () => {
    await bench.write('a.txt', Buffer.from([0x61, 0xff, 0x62, 0x0a]));
    expect((await read({})).text).toBe('  1 | a\uFFFDb');
  });

  it('a binary file is refused', async () => {
    await bench.write('a.txt', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2]));
    expect(await read({})).toMatchObject({ status: 'error', code: 'binary' });
  });

  it('a NUL byte within the first 8 KiB makes a file binary, and a later one does not', async () => {
    const file = (at: number): Buffer => Buffer.concat([Buffer.alloc(at, 'x\n'), Buffer.from([0, 0x0a])]);
    for (const at of [0, 1_024, 8_191]) {
      await bench.write('a.txt', file(at));
      expect([at, (await read({ limit: 1 })).code]).toEqual([at, 'binary']);
    }
    await bench.write('a.txt', file(8_192));
    expect((await read({ limit: 1 })).status).toBe('success');
  });

  it('an empty file and an offset after the end are reported', async () => {
    await bench.write('a.txt', '');
    expect(await read({})).toMatchObject({ status: 'success', text: '[a.txt is empty]' });
    await bench.write('a.txt', counted(3));
    const reply = await read({ offset: 9 });
    expect(reply).toMatchObject({ status: 'error', code: 'invalid_arguments' });
    expect(reply.text).toContain('3 lines');
  });

  it('H-061 arguments that are missing, of a wrong type or out of range are refused', async () => {
    await bench.write('a.txt', 'text\n');
    for (const args of [{}, { file_path: 1 }, { file_path: 'a.txt', offset: 0 }, { file_path: 'a.txt', limit: 1.5 }]) {
      expect((await call(bench.root, 'Read', args)).status, JSON.stringify(args)).toBe('invalid');
    }
  });

  it('H-079 control characters of the text are unchanged', async () => {
    await bench.write('a.txt', 'a\u001b[2Jb\n');
    expect((await read({})).text).toBe('  1 | a\u001b[2Jb');
  });

  it('an abort ends it with the reason of the signal', async () => {
    await bench.write('a.txt', 'text\n');
    const reason = new Error('stopped by the user');
    await expect(call(bench.root, 'Read', { file_path: 'a.txt' }, AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});

describe('the lines of a large file', () => {
  it('they are read as far as they are used', async () => {
    await bench.write('a.txt', counted(1_000_000));
    const file = await open(join(bench.root, 'a.txt'));
    const reads = vi.spyOn(file, 'read');
    try {
      for await (const lines of linesOf(file, 100, new AbortController().signal)) {
        expect(lines[0]).toEqual({ number: 1, text: 'line 1', cut: false });
        break;
      }
      expect(reads).toHaveBeenCalledTimes(1);
    } finally {
      await file.close();
    }
  });

  it('H-077 a single endless line holds only its cut part in memory', async () => {
    await bench.write('a.txt', Buffer.alloc(32 * 1_024 * 1_024, 'x'));
    const file = await open(join(bench.root, 'a.txt'));
    try {
      const all = [];
      for await (const lines of linesOf(file, 100, new AbortController().signal)) all.push(...lines);
      expect(all).toEqual([{ number: 1, text: 'x'.repeat(100), cut: true }]);
    } finally {
      await file.close();
    }
  });

  it('they end at the next chunk after an abort', async () => {
    await bench.write('a.txt', counted(100_000));
    const file = await open(join(bench.root, 'a.txt'));
    const controller = new AbortController();
    const reason = new Error('enough');
    try {
      const lines = linesOf(file, 100, controller.signal);
      await lines.next();
      controller.abort(reason);
      await expect(lines.next()).rejects.toBe(reason);
    } finally {
      await file.close();
    }
  });
});
