import { readFileSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { permissions } from '../../../src/node.ts';
import { Output, plainText } from '../../../src/tools/coding/shell.ts';
import { SpilledOutput } from '../../../src/tools/coding/spilledOutput.ts';
import { cpuTime } from '../../support/cpuTime.ts';
import { temporaryFolder } from '../../support/temporaryFolder.ts';
import { sampled, volume } from '../../support/tier.ts';
import { call } from './codingBench.ts';

const KIB = 1_024;
/** One half of a character that takes two. */
const HALF = /\p{Surrogate}/u;

function output(...chunks: (string | Buffer)[]): Output {
  const made = new Output();
  for (const chunk of chunks) made.push(Buffer.from(chunk));
  return made;
}

/** The same bytes in pieces of one size. */
function inPieces(bytes: Buffer, size: number): Output {
  const made = new Output();
  for (let at = 0; at < bytes.length; at += size) made.push(bytes.subarray(at, at + size));
  return made;
}

/** Distinct lines of eight bytes. */
const numbered = (lines: number): Buffer =>
  Buffer.from(Array.from({ length: lines }, (_, index) => `${String(index).padStart(7, '0')}\n`).join(''));

describe('the kept part of an output', () => {
  it('it is the whole output up to 128 KiB, in pieces of any size', () => {
    const bytes = numbered((128 * KIB) / 8);
    for (const size of [1, 7, 4_096, 65_536, 65_537, 1_000_000]) {
      expect(inPieces(bytes, size).text()).toBe(bytes.toString());
    }
    expect(output().text()).toBe('');
    expect(output('a', '', 'b').text()).toBe('ab');
  });

  it.each([128 * KIB + 8, 192 * KIB, 1_000_000, 3_333_336])(
    'it is the first and the last 64 KiB of %i bytes, and the size of the omitted part',
    (length) => {
      const bytes = numbered(length / 8);
      const wanted = [
        bytes.subarray(0, 64 * KIB),
        `\n[${bytes.length - 128 * KIB} bytes left out]\n`,
        bytes.subarray(-64 * KIB),
      ].join('');
      for (const size of [13, 65_536, 65_537, 200_000, 4_000_000]) {
        const made = inPieces(bytes, size);
        expect(made.bytes).toBe(bytes.length);
        expect(made.text() === wanted, `in pieces of ${size}`).toBe(true);
      }
    },
  );

  it('a character is never split, neither between pieces nor at the cut', () => {
    for (const [character, shift] of ['ü', '€', '😀'].flatMap((each) =>
      [0, 1, 2, 3].map((by) => [each, by] as const),
    )) {
      const bytes = Buffer.from(`${'a'.repeat(shift)}${character.repeat(100 * KIB)}`);
      const text = inPieces(bytes, 999).text();
      expect(text).not.toContain('\uFFFD');
      const [head = '', left = '', tail = ''] = text.split(/\n\[(\d+) bytes left out\]\n/);
      expect(Buffer.byteLength(head) + Number(left) + Buffer.byteLength(tail)).toBe(bytes.length);
    }
  });

  it('the last line is found at any position', () => {
    expect(output().lastLine()).toBe('');
    expect(output('a\nb\n\n').lastLine()).toBe('b');
    expect(inPieces(numbered(8_193), 1_000).lastLine()).toBe('0008192');
    expect(inPieces(numbered(50_000), 1_000).lastLine()).toBe('0049999');
    expect(Array.from(output('😀'.repeat(5_000)).lastLine())).toEqual(Array(200).fill('😀'));
    expect(output('a\n\u001b[31mred\u001b[0m').lastLine()).toBe('red');
  });
});

describe('bytes as text', () => {
  it('no sequence in it controls a terminal', () => {
    expect(plainText(Buffer.from('\u001b[31mred\u001b[0m \u001b]0;title\u0007x'))).toBe('red x');
    expect(plainText(Buffer.from('a\u0000b\bc\u007fd\u0085e'))).toBe('a\uFFFDb\uFFFDc\uFFFDd\uFFFDe');
    expect(plainText(Buffer.from('10%\r20%\r\nend\tok\n'))).toBe('10%\n20%\nend\tok\n');
  });

  it.each([
    ['\u001b', ';?', '\uFFFD'],
    ['\u001b[', ';#', '\uFFFD['],
    ['\u009b', '?;a', '\uFFFD'],
  ])('of a hostile author takes no long time: %j and many of %j', async (begin, part, shown) => {
    const bytes = Buffer.from(begin + part.repeat(24_000));
    let text = '';
    const used = await cpuTime(() => {
      text = plainText(bytes);
    });
    expect(used).toBeLessThan(1_000);
    expect(text === shown + part.repeat(24_000)).toBe(true);
    expect(plainText(Buffer.from(`a\u001b[?;;;;;;;;mb`))).toBe('ab');
  });

  it('bytes that are not UTF-8 become U+FFFD', () => {
    expect(plainText(Buffer.from([0x61, 0xff, 0xfe, 0x62, 0xe2, 0x82]))).toBe('a\uFFFD\uFFFDb\uFFFD');
    const every = plainText(Uint8Array.from({ length: 256 }, (_, byte) => byte));
    expect(every).not.toMatch(HALF);
    expect([...every].filter((character) => /[^\P{Cc}\n\t]/u.test(character))).toEqual([]);
  });
});

describe('H-230 commands with endless output', () => {
  const endless: [command: string, wanted: RegExp][] = [
    ['yes', /^y\ny\n[\s\S]*\[\d+ bytes left out\]\n[\s\S]*\n\[timed out after 700 ms and was ended\]$/],
    ['cat /dev/urandom', /\[\d+ bytes left out\]\n[\s\S]*\[timed out after 700 ms and was ended\]$/],
    [
      'cat /dev/zero',
      /^\uFFFD+\n\[\d+ bytes left out\]\n\uFFFD+\n\[[^\]]*\]\n\[timed out after 700 ms and was ended\]$/,
    ],
  ];
  it.each(sampled(endless, volume.caseOf))('%s is limited, and so is its memory', async (command, wanted) => {
    let most = 0;
    const before = process.memoryUsage().rss;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss - before);
    }, 20);
    const { code, text } = await call(process.cwd(), 'Bash', { command, timeoutMs: 700 });
    clearInterval(watch);
    expect(code).toBe('timeout');
    expect(wanted.test(text)).toBe(true);
    expect(text).not.toMatch(HALF);
    expect(text.replace(/\n\[[^\]]* can be read in [^\]]*\]/, '').length).toBeLessThanOrEqual(128 * KIB + 100);
    expect(most / 1_048_576).toBeLessThan(128);
  });

  it('a hundred thousand NULs are text', async () => {
    const { text } = await call(process.cwd(), 'Bash', { command: "printf '\\x00%.0s' {1..99999}" });
    expect(text).toBe('\uFFFD'.repeat(99_999));
  });
});

describe('H-077 the whole of a long output', () => {
  const line = (text: string): string | undefined => /\[(.*) can be read in (.*)\]/.exec(text)?.[0];
  const pathIn = (text: string): string => /can be read in (.*)\]/.exec(text)?.[1] ?? '';

  it('it is in a file that the result names; only this user may read it, and Read and Grep open it from any working directory', async () => {
    const cwd = temporaryFolder();
    const { text } = await call(cwd, 'Bash', { command: 'seq 1 40000' });
    const path = pathIn(text);
    expect(line(text)).toBe(`[all of it can be read in ${path}]`);
    expect(await readFile(path, 'utf8')).toBe(Array.from({ length: 40_000 }, (_, index) => `${index + 1}\n`).join(''));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await call(cwd, 'Read', { file_path: path, offset: 20_000, limit: 1 })).text).toContain('20000');
    expect((await call(cwd, 'Grep', { pattern: '^23456$', path })).text).toContain('23456');
    expect((await call(cwd, 'Read', { file_path: join(dirname(path), 'other.txt') })).code).toBe('outside_workspace');
    expect((await call(cwd, 'Write', { file_path: path, content: 'x' })).code).toBe('outside_workspace');
  });

  const LENGTHS = [128 * KIB, 128 * KIB + 8, 192 * KIB, 256 * KIB, 1_000_000];
  it.each(LENGTHS)('of %i bytes, it is complete and once in its file, whatever pieces it came in', (length) => {
    const bytes = numbered(length / 8);
    for (const size of [999, 4_096, 32_768, 65_535, 65_536, 65_537, 131_072, 131_073, 2_000_000]) {
      const made = new Output(new SpilledOutput());
      for (let at = 0; at < length; at += size) made.push(bytes.subarray(at, at + size));
      made.end();
      const { path, bytes: written } = made.spilled ?? {};
      expect([size, written]).toEqual([size, length > 128 * KIB ? length : undefined]);
      if (path !== undefined) expect(readFileSync(path).equals(bytes), `in pieces of ${size}`).toBe(true);
    }
  });

  it('reading it needs no approval', async () => {
    const { text } = await call(tmpdir(), 'Bash', { command: 'seq 1 40000' });
    const rules = permissions({});
    expect(await rules.explain('Read', { file_path: pathIn(text) }, homedir())).toMatchObject({ outcome: 'allow' });
    expect(await rules.explain('Edit', { file_path: pathIn(text) }, homedir())).not.toMatchObject({ outcome: 'allow' });
    expect(await rules.explain('Read', { file_path: dirname(pathIn(text)) }, homedir())).toMatchObject({
      outcome: 'ask',
    });
  });

  it('it is cut at its limit, and the oldest files are deleted if all of them are too large', () => {
    const spilled = new SpilledOutput(10);
    spilled.write(Buffer.from('abcdef'));
    spilled.write(Buffer.from('ghijklmn'));
    spilled.end();
    expect(spilled.file).toMatchObject({ bytes: 10 });
    expect(readFileSync(spilled.file?.path ?? '', 'utf8')).toBe('abcdefghij');
    const [first, ...others] = Array.from({ length: 5 }, () => {
      const large = new SpilledOutput();
      large.write(Buffer.alloc(63 * KIB * KIB));
      large.end();
      return large;
    });
    expect(first?.file).toBeUndefined();
    expect(others.map((large) => large.file?.bytes)).toEqual(Array(4).fill(63 * KIB * KIB));
  });

  it('files that are written at the same time keep the limit of all together', () => {
    const outputs = Array.from({ length: 5 }, () => new SpilledOutput());
    const chunk = Buffer.alloc(KIB * KIB);
    for (let time = 0; time < 60; time += 1) for (const each of outputs) each.write(chunk);
    for (const each of outputs) each.end();
    const sizes = outputs.map(({ file }) => (file ? statSync(file.path).size : 0));
    expect(outputs.map(({ file }) => file?.bytes)).toEqual(sizes);
    expect(sizes.reduce((all, size) => all + size)).toBe(256 * KIB * KIB);
    const next = new SpilledOutput();
    next.write(chunk);
    next.end();
    expect([next.file?.bytes, outputs[0]?.file]).toEqual([KIB * KIB, undefined]);
  });

  it('a result without an omitted part is unchanged', async () => {
    expect((await call(process.cwd(), 'Bash', { command: 'seq 1 100' })).text).not.toContain('can be read in');
  });
});
