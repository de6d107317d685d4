/** Tests large files that are not logs: the time to refuse them, and the reported reason. */
import { writeFile } from 'node:fs/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { VERSION } from '../../src/stores/jsonl/lineFormat.ts';
import { readDamagedLog } from '../../src/stores/jsonl/readDamagedLog.ts';
import { conversation, notice, refused } from '../../src/testing/storeSuite/storeCase.ts';
import { volume } from '../support/tier.ts';
import { refuses } from './damagedFile.ts';
import { fileHandle } from './failingDisk.ts';
import { linesFor, type Place, place, placeWith } from './storeDirectory.ts';

const [header = '', first = ''] = await linesFor([conversation('c')]);
const file = (...lines: string[]) => lines.map((line) => `${line}\n`).join('');
const UNITS = ['y\n', '{\n', '{x}\n', '"\n', 'null\n', 'no {"seq":0, no\n'];
/** Larger than several reads. */
const rubbish = (unit: string, bytes = 1_000_000) => unit.repeat(bytes / unit.length);

afterEach(() => {
  vi.restoreAllMocks();
});

/** Returns how often JSON is parsed during the act. */
async function parses(use: () => Promise<unknown>): Promise<number> {
  const spy = vi.spyOn(JSON, 'parse');
  try {
    await use();
    return spy.mock.calls.length;
  } finally {
    spy.mockRestore();
  }
}

describe('a file with arbitrary bytes', () => {
  test('is refused and listed without parsing every line', async () => {
    for (const unit of UNITS) {
      for (const head of ['', file(header, first)]) {
        const { store } = await placeWith(head + rubbish(unit));
        const code = head === '' ? 'no_header' : 'corrupt';
        expect(await parses(() => refused(code, () => store.open('c')))).toBeLessThan(100);
        expect(await parses(() => store.list())).toBeLessThan(100);
        expect((await store.list()).map(({ id }) => id)).toEqual(head === '' ? [] : ['c']);
      }
    }
  });

  const [megabytes, seconds] = [volume.rubbish / 1e6, (30 * volume.rubbish) / 5e7];
  test(`of ${megabytes} MB is refused within ${seconds} seconds, and so is one of blank lines listed and opened`, {
    timeout: 120_000,
  }, async () => {
    const begun = performance.now();
    for (const [content, code] of [
      [rubbish('y\n', volume.rubbish), 'no_header'],
      [file(header, first) + rubbish('y\n', volume.rubbish), 'corrupt'],
    ] as const) {
      const { store } = await placeWith(content);
      await refused(code, () => store.open('c'));
      await store.list();
    }
    const { store } = await placeWith(file(header, first) + rubbish('\n', volume.rubbish));
    await store.list();
    await (await store.open('c')).close();
    expect(performance.now() - begun).toBeLessThan(1_000 * seconds);
  });

  test('is read by a list only up to its first piece if it does not begin with a header', async () => {
    const found = await placeWith(rubbish('y\n', 4_000_000));
    const reads = vi.spyOn(fileHandle as unknown as { read(): Promise<unknown> }, 'read');
    expect(await found.store.list()).toEqual([]);
    expect(reads.mock.calls.length).toBe(1);
  });

  test('hides no entry from a list or a reader', async () => {
    const found = await placeWith(file(header, first) + rubbish('y\n') + file(JSON.stringify({ ...notice('c', 1) })));
    const read: LogEntry[] = [];
    for await (const entry of readDamagedLog(found.directory, 'c')) read.push(entry);
    expect(read).toEqual([conversation('c'), notice('c', 1)]);
    expect(await found.store.list()).toMatchObject([{ id: 'c', updatedAt: notice('c', 1).at }]);
  });
});

describe('the first of several reasons is reported at any distance', () => {
  const lines = rubbish('y\n');
  const number = lines.length / 2;
  const newer = header.replace(/\d+/, String(VERSION + 1));

  test('encoding, with its line', async () => {
    const odd = Buffer.concat([Buffer.from(lines), Buffer.from([0xff, 0x0a]), Buffer.from(lines)]);
    await refuses(odd, 'encoding', number + 1);
    await refuses(Buffer.concat([Buffer.from(file(header)), odd]), 'encoding', number + 2);
    await refuses(Buffer.concat([Buffer.from(file(newer)), odd]), 'encoding', number + 2);
  });

  test('a newer version after damage, with its line', async () => {
    await refuses(file(header, first) + lines + file(newer) + lines, 'version', number + 3);
  });

  test('damage after a gap, with its line', async () => {
    const late = (seq: number) => file(JSON.stringify({ seq, at: 1, type: 'notice', code: 'x', text: 'x' }));
    const late100k = Array.from({ length: 10_000 }, (_, seq) => late(seq + 2)).join('');
    await refuses(`${file(header, first)}${late100k}no\n`, 'corrupt', 10_003);
    await refuses(file(header, first) + late100k, 'gap', 3);
  });

  test('an endless line, with its number', { timeout: 120_000 }, async () => {
    const found: Place = await place();
    await writeFile(found.path('c.jsonl'), Buffer.concat([Buffer.from(lines), Buffer.alloc(65 * 1024 * 1024, 'y')]));
    await expect(found.store.open('c')).rejects.toMatchObject({ code: 'line_too_long', line: number + 1 });
  });
});

describe('the message names the remedy', () => {
  const messageOf = async (content: string | Uint8Array): Promise<string> => {
    const { store } = await placeWith(content);
    return store.open('c').then(
      () => 'opened',
      (error: Error) => error.message,
    );
  };

  test('only a greater version asks for a newer runchart', async () => {
    for (const version of [String(VERSION + 1), '999', '2.5']) {
      expect(await messageOf(file(header.replace(/\d+/, version)))).toContain('use a newer runchart');
    }
    for (const version of ['0', '"1"', '-1', 'null', '[2]']) {
      const message = await messageOf(file(header.replace(/\d+/, version)));
      expect(message).toContain(
        `expected version ${VERSION}, got ${version}: no runchart wrote that, restore the file`,
      );
    }
    expect(await messageOf('{"format":"runchart-log"}\n')).toContain('got nothing: no runchart wrote that');
  });

  test('another encoding is named', async () => {
    const log = file(header, first);
    expect(await messageOf(`${log}\ufeff${log}`)).toContain('byte order mark');
    expect(await messageOf(Buffer.from(log, 'utf16le'))).toContain('UTF-16');
    expect(await messageOf(Buffer.from(log, 'utf16le').swap16())).toContain('UTF-16');
    expect(await messageOf(Buffer.from(`\ufeff${log}`, 'utf16le'))).toContain('UTF-16');
    expect(await messageOf(log + Buffer.from('hello\n', 'utf16le').toString('latin1'))).toContain('UTF-16');
    expect(await messageOf('not a log\n')).toContain('it is no JSON object');
  });
});
