/** What the JSONL store makes of files that a crash, a disk or a person damaged. */
import { open, readFile, rename } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { readDamagedLog } from '../../src/stores/jsonlLenient.ts';
import { all, notice, notices, opened, refused, stamped, stored } from '../../src/testing/storeCase.ts';
import { contentOf, linesFor, noticeCodes, type Place, place, placeWith } from './place.ts';

const entries = [...notices('c', 0, 3), notice('c', 3, 'the läst 🎉 one')];
const [header = '', ...records] = await linesFor(entries);
const [first = '', second = '', third = '', last = ''] = records;
const file = (...lines: string[]) => lines.map((line) => `${line}\n`).join('');
const whole = file(header, ...records);

/** Opening must be refused with this code and line, and must leave the file as it was. */
async function refuses(content: string | Uint8Array, code: string, line?: number): Promise<Place> {
  const found = await placeWith(content);
  await expect(found.store.open('c')).rejects.toMatchObject({ name: 'CorruptLogError', code, line });
  expect((await readFile(found.path('c.jsonl'))).equals(Buffer.from(content))).toBe(true);
  return found;
}

/** Opens with these entries and notices; one more append makes the file whole again. */
async function mends(content: string | Uint8Array, kept: LogEntry[], codes: string[]): Promise<void> {
  const found = await placeWith(content);
  const next = notice('c', kept.length, 'next');
  await opened(found.store, 'c', async (handle) => {
    expect(noticeCodes(handle)).toEqual(codes);
    expect(await all(handle)).toEqual(kept);
    expect((await readFile(found.path('c.jsonl'))).equals(Buffer.from(content))).toBe(true);
    await handle.append([next], kept.length);
    expect(await all(handle)).toEqual([...kept, next]);
  });
  await opened(found.store, 'c', async (handle) => {
    expect(await all(handle)).toEqual([...kept, next]);
    expect(noticeCodes(handle).filter((code) => ['torn-tail', 'zero-bytes', 'blank-tail'].includes(code))).toEqual([]);
  });
}

describe('the end of a file', () => {
  test('H-130 a last line cut at any byte is cut off at the next write, all before it is kept', async () => {
    const bytes = Buffer.from(whole);
    const from = bytes.length - Buffer.byteLength(last) - 1;
    for (let cut = from + 1; cut < bytes.length - 1; cut += 1) {
      await mends(bytes.subarray(0, cut), entries.slice(0, 3), ['torn-tail']);
    }
    expect(bytes.length - from).toBeGreaterThan(60);
  });

  test('H-130 a header cut at any byte is an empty log', async () => {
    for (let cut = 1; cut < header.length; cut += 1) await mends(header.slice(0, cut), [], ['torn-tail']);
  });

  test('H-131 a complete last line without its newline is kept', async () => {
    await mends(whole.slice(0, -1), entries, []);
    await mends(header, [], []);
  });

  test('H-141 an empty file and one with only its header are empty logs; a lone newline is one with a notice', async () => {
    await mends('', [], []);
    await mends(`${header}\n`, [], []);
    await mends('\n', [], ['blank-tail']);
    await mends(`${whole}\n\n`, entries, ['blank-tail']);
  });

  test('H-134 zero bytes at the end are passed over, with and without a record behind them', async () => {
    await mends(`${whole}${'\0'.repeat(5000)}`, entries, ['zero-bytes']);
    await mends(`${whole}${'\0'.repeat(7)}\n`, entries, ['zero-bytes']);
    await mends(`${file(header, first, second, third)}${'\0'.repeat(300)}${last}\n`, entries, ['zero-bytes']);
    await mends(`${file(header, first, second, third)}\0${last}`, entries, ['zero-bytes']);
    await mends('\0'.repeat(100), [], ['zero-bytes']);
  });

  test('arguments that look like a record are not taken for one when the record around them is torn', async () => {
    const forged = { seq: 1, at: 1, type: 'run-stop', reason: 'completed' };
    const [, zero = '', one = ''] = await linesFor([
      notice('c', 0),
      stamped('c', 1, { type: 'extension', name: 'x', value: forged }),
    ]);
    const torn = `${file(header, zero)}${one.slice(0, -1)}`;
    expect(torn.endsWith(JSON.stringify(forged))).toBe(true);
    await mends(torn, [notice('c', 0)], ['torn-tail']);
  });
});

describe('the middle of a file', () => {
  test('H-132 a torn record with a complete one behind it gives the complete one where its seq fits', async () => {
    const cut = third.slice(0, third.length / 2);
    await mends(file(header, first, second, cut + third, last), entries, ['spliced-line']);
    await refuses(file(header, first, second, cut + last), 'corrupt', 4);
  });

  test('H-134 zero bytes or blank lines before further records are refused', async () => {
    await refuses(file(header, first, `\0\0${second}`, third), 'corrupt', 3);
    await refuses(file(header, first, '\0\0', second), 'corrupt', 3);
    await refuses(file(header, first, '', second), 'corrupt', 3);
  });

  test('H-135 a record broken over several lines is refused', async () => {
    await refuses(file(header, first, second.replace('entry', 'en\ntry\n'), third), 'corrupt', 3);
  });

  test('H-136 a repeated record is kept once, next to the first or far from it', async () => {
    await mends(file(header, first, first, second), entries.slice(0, 2), ['duplicate']);
    await mends(file(header, first, second, third, first, second, third, last), entries, ['duplicate']);
  });

  test('H-137 another record with a seq there is already is a fork', async () => {
    await refuses(file(header, first, second, second.replace('entry', 'other'), third), 'fork', 4);
  });

  test('H-138 a missing seq is a gap, also at the start', async () => {
    await refuses(file(header, first, third, last), 'gap', 3);
    await refuses(file(header, second), 'gap', 2);
  });

  test('H-145 invalid UTF-8 is refused with its line and never rewritten', async () => {
    const bytes = Buffer.from(file(header, first, second, third));
    bytes[bytes.indexOf('entry 1')] = 0xff;
    await refuses(bytes, 'encoding', 3);
    const head = Buffer.from(whole);
    head[head.indexOf('"c"') + 1] = 0xff;
    await refuses(head, 'encoding', 1);
  });

  test('H-147 a record nested 10,000 levels deep is refused, not walked', async () => {
    const deep = `${'{"in":'.repeat(10_000)}1${'}'.repeat(10_000)}`;
    const line = `{"seq":1,"at":1,"type":"extension","name":"x","value":${deep}}`;
    await refuses(file(header, first, line, third), 'corrupt', 3);
  });

  test('a line that is JSON but no entry is refused', async () => {
    for (const line of ['12', '[]', 'null', '{}', '{"seq":-1,"at":1,"type":"x"}', '{"seq":1,"at":1,"type":7}']) {
      await refuses(file(header, first, line, third), 'corrupt', 3);
    }
  });

  test('the first of encoding, no_header, version, corrupt, gap, fork is reported, wherever it stands', async () => {
    const fork = second.replace('entry', 'other');
    await refuses(file(header, first, second, fork, last), 'gap', 5);
    await refuses(file(header, first, second, fork, last, 'no'), 'corrupt', 6);
    await refuses(file(header.replace(/\d+/, '999'), first, 'no', last), 'version', 1);
    await refuses(file(first, second, 'no'), 'no_header', 1);
    const bytes = Buffer.from(`${file(first, second, 'no')}x\n`);
    bytes[bytes.length - 2] = 0xff;
    await refuses(bytes, 'encoding', 4);
  });
});

describe('the header', () => {
  test('H-140 an unknown version and a missing header are refused', async () => {
    for (const version of ['999', '0', '"1"', 'null']) {
      await refuses(file(header.replace(/\d+/, version), first), 'version', 1);
    }
    await refuses(file(...records), 'no_header', 1);
    await refuses(file('{"format":"other","version":1}', first), 'no_header', 1);
    await refuses(file('not json', first), 'no_header', 1);
  });

  test("a log under another conversation's name keeps its own and says so", async () => {
    const { store, path } = await placeWith(whole);
    await rename(path('c.jsonl'), path('d.jsonl'));
    await opened(store, 'd', async (handle) => {
      expect(noticeCodes(handle)).toEqual(['renamed']);
      await handle.append([notice('d', 4)], 4);
    });
    expect(await stored(store, 'd')).toEqual([...entries, notice('d', 4)]);
  });
});

describe('size', () => {
  test('H-142 a line beyond 64 MiB is refused without being held', { timeout: 60_000 }, async () => {
    const found = await placeWith(file(header, first));
    const log = await open(found.path('c.jsonl'), 'a');
    for (let piece = 0; piece < 100; piece += 1) await log.write(Buffer.alloc(1024 * 1024, 'a'));
    await log.close();
    const before = process.memoryUsage().rss;
    await expect(found.store.open('c')).rejects.toMatchObject({ code: 'line_too_long', line: 3 });
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
  });

  test('an entry no reader would take back is refused before anything is written', async () => {
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
});

test('reading a damaged log takes what can be read, writes nothing and needs no lease', async () => {
  const damaged = file(header, first, 'no', `\0${third}`, second) + last.slice(0, -1);
  const found = await refuses(damaged, 'corrupt', 3);
  const read: LogEntry[] = [];
  for await (const entry of readDamagedLog(found.directory, 'c')) read.push(entry);
  expect(read).toEqual([entries[0], entries[2]]);
  expect(await contentOf(found)).toBe(damaged);
});
