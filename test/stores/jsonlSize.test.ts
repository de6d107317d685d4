/** Tests logs and lines of any size: logs are read in pieces, and long lines are refused. */
import { type FileHandle, open } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { linesOf } from '../../src/stores/jsonl/fileLines.ts';
import { scanLog } from '../../src/stores/jsonl/logScan.ts';
import { readDamagedLog } from '../../src/stores/jsonl/readDamagedLog.ts';
import { notice, notices, opened, refused, stamped, stored } from '../../src/testing/storeSuite/storeCase.ts';
import { proves } from '../support/tier.ts';
import { contentOf, linesFor, place, placeWith } from './storeDirectory.ts';

const MIB = 1024 * 1024;
const [header = '', first = ''] = await linesFor([notice('c', 0)]);
const file = (...lines: string[]) => lines.map((line) => `${line}\n`).join('');

/** A file that is made up as it is read: `count` lines of a size, each with its number in front. */
function madeUp(lineBytes: number, count: number, lineAt: (number: number) => string) {
  const filling = Buffer.alloc(lineBytes, 'x');
  let most = 0;
  const read = async (buffer: Buffer, offset: number, length: number, position: number) => {
    most = Math.max(most, length);
    let done = 0;
    for (; done < length && position + done < lineBytes * count; ) {
      const at = (position + done) % lineBytes;
      const head = Buffer.from(lineAt(Math.floor((position + done) / lineBytes)));
      const line = (from: number, to: number) => {
        if (from < head.length) return head.subarray(from, Math.min(to, head.length));
        return from < lineBytes - 3
          ? filling.subarray(from, Math.min(to, lineBytes - 3))
          : Buffer.from('"}\n').subarray(from - lineBytes);
      };
      const piece = line(at, at + length - done);
      done += piece.copy(buffer, offset + done, 0, length - done);
    }
    return { bytesRead: done, buffer };
  };
  return { handle: { read } as unknown as FileHandle, size: lineBytes * count, most: () => most };
}

/** Returns the greatest additional memory of the process meanwhile. */
async function growth(use: (measure: () => void) => Promise<unknown>): Promise<number> {
  const before = process.memoryUsage().rss;
  let most = before;
  const measure = () => {
    most = Math.max(most, process.memoryUsage().rss);
  };
  await use(measure);
  measure();
  return most - before;
}

if (proves)
  test('a log of 640 MiB, longer than any string, is checked and read line by line', {
    timeout: 120_000,
  }, async () => {
    const count = 640;
    const log = madeUp(MIB, count, (number) =>
      number === 0
        ? `${header.slice(0, -1)},"filling":"`
        : `{"seq":${number - 1},"at":1,"type":"notice","code":"n","text":"`,
    );
    expect(log.size).toBeGreaterThan(512 * MIB);
    const grown = await growth(async (measure) => {
      const scan = await scanLog(log.handle, log.size, 'c');
      measure();
      expect([scan.offsets.length, scan.end, scan.notices]).toEqual([count - 1, log.size, []]);
      let lines = 0;
      for await (const line of linesOf(log.handle, scan.offsets[600] ?? 0, log.size)) {
        lines += line.bytes.length + 1 === MIB && line.whole ? 1 : 0;
        measure();
      }
      expect(lines).toBe(count - 601);
    });
    expect(log.most()).toBeLessThanOrEqual(MIB);
    expect(grown).toBeLessThan(256 * MIB);
  });

test('H-142 a line of more than 64 MiB is refused without reading it into memory', { timeout: 120_000 }, async () => {
  const found = await placeWith(file(header, first));
  const log = await open(found.path('c.jsonl'), 'a');
  for (let piece = 0; piece < 100; piece += 1) await log.write(Buffer.alloc(1024 * 1024, 'a'));
  await log.close();
  const before = process.memoryUsage().rss;
  await expect(found.store.open('c')).rejects.toMatchObject({ code: 'line_too_long', line: 3 });
  expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
});

test('H-142 lines before one that is too long can still be read', { timeout: 120_000 }, async () => {
  const found = await placeWith(file(header, first));
  const log = await open(found.path('c.jsonl'), 'a');
  for (let piece = 0; piece < 65; piece += 1) await log.write(Buffer.alloc(MIB, 'a'));
  await log.close();
  const read: LogEntry[] = [];
  for await (const entry of readDamagedLog(found.directory, 'c')) read.push(entry);
  expect(read).toEqual([notice('c', 0)]);
});

test('an entry that could not be read back is refused before anything is written', async () => {
  const found = await place();
  await opened(found.store, 'c', async (handle) => {
    await handle.append([notice('c', 0)], 0);
    const before = await contentOf(found);
    let deep: unknown = 1;
    for (let level = 0; level < 600; level += 1) deep = [deep];
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    for (const value of [deep, cyclic, 1n]) {
      const entry = stamped('c', 2, { type: 'extension', name: 'x', value: value as never });
      await refused('store', () => handle.append([notice('c', 1), entry], 1));
    }
    const huge = notice('c', 1, 'a'.repeat(64 * 1024 * 1024));
    await refused('store', () => handle.append([huge], 1));
    expect(await contentOf(found)).toBe(before);
    await handle.append([notice('c', 1)], 1);
  });
  expect(await stored(found.store, 'c')).toEqual(notices('c', 0, 2));
});
