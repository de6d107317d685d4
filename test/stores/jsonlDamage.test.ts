/** Tests how the JSONL store reads files that were damaged by a crash, a disk or a person. */
import { rename, writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { VERSION } from '../../src/stores/jsonl/lineFormat.ts';
import { readDamagedLog } from '../../src/stores/jsonl/readDamagedLog.ts';
import { notice, notices, opened, refused, stamped, stored } from '../../src/testing/storeSuite/storeCase.ts';
import { volume } from '../support/tier.ts';
import { mends, refuses } from './damagedFile.ts';
import { contentOf, linesFor, noticeCodes, place, placeWith } from './storeDirectory.ts';

const entries = [...notices('c', 0, 3), notice('c', 3, 'the läst 🎉 one')];
const [header = '', ...records] = await linesFor(entries);
const [first = '', second = '', third = '', last = ''] = records;
const file = (...lines: string[]) => lines.map((line) => `${line}\n`).join('');
const whole = file(header, ...records);

describe('the end of a file', () => {
  test('H-130 a last line that is cut at any byte is removed by the next write, and all lines before it are kept', async () => {
    const bytes = Buffer.from(whole);
    const from = bytes.length - Buffer.byteLength(last) - 1;
    for (let cut = from + 1; cut < bytes.length - 1; cut += volume.byteStep) {
      await mends(bytes.subarray(0, cut), entries.slice(0, 3), ['torn_tail']);
    }
    expect(bytes.length - from).toBeGreaterThan(60);
  });

  test('H-130 a header cut at any byte is an empty log', async () => {
    for (let cut = 1; cut < header.length; cut += volume.byteStep) await mends(header.slice(0, cut), [], ['torn_tail']);
  });

  test('H-130 INV-5 a file cut at any byte at all keeps every complete record and nothing else', async () => {
    const bytes = Buffer.from(whole);
    const found = await place();
    for (let cut = 0; cut < bytes.length; cut += volume.byteStep) {
      await writeFile(found.path('c.jsonl'), bytes.subarray(0, cut));
      const lines = bytes.subarray(0, cut).toString().split('\n');
      const complete = Math.max(0, lines.length - 2) + (records.includes(lines.at(-1) ?? '') ? 1 : 0);
      expect(await stored(found.store, 'c')).toEqual(entries.slice(0, complete));
    }
  });

  test('H-131 a complete last line without a newline is kept', async () => {
    await mends(whole.slice(0, -1), entries, []);
    await mends(header, [], []);
  });

  test('H-141 an empty file and one with only its header are empty logs; a lone newline is one with a notice', async () => {
    await mends('', [], []);
    await mends(`${header}\n`, [], []);
    await mends('\n', [], ['blank_tail']);
    await mends(`${whole}\n\n`, entries, ['blank_tail']);
  });

  test('H-134 zero bytes at the end are skipped, with and without a record after them', async () => {
    await mends(`${whole}${'\0'.repeat(5000)}`, entries, ['zero_bytes']);
    await mends(`${whole}${'\0'.repeat(7)}\n`, entries, ['zero_bytes']);
    await mends(`${file(header, first, second, third)}${'\0'.repeat(300)}${last}\n`, entries, ['zero_bytes']);
    await mends(`${file(header, first, second, third)}\0${last}`, entries, ['zero_bytes']);
    await mends('\0'.repeat(100), [], ['zero_bytes']);
  });

  test('arguments that look like a record do not become one when the record around them is torn', async () => {
    const forged = { seq: 1, at: 1, type: 'run-stop', reason: 'completed' };
    const [, zero = '', one = ''] = await linesFor([
      notice('c', 0),
      stamped('c', 1, { type: 'extension', name: 'x', value: forged }),
    ]);
    const torn = `${file(header, zero)}${one.slice(0, -1)}`;
    expect(torn.endsWith(JSON.stringify(forged))).toBe(true);
    await mends(torn, [notice('c', 0)], ['torn_tail']);
  });
});

describe('the middle of a file', () => {
  test('H-132 a complete record after a torn one on the same line is read if its seq is the next one', async () => {
    const cut = third.slice(0, third.length / 2);
    await mends(file(header, first, second, cut + third, last), entries, ['spliced_line']);
    await refuses(file(header, first, second, cut + last), 'corrupt', 4);
  });

  test('H-132 a record that is torn at any byte never changes the record after it', async () => {
    const found = await place();
    const bytes = Buffer.from(second);
    for (let cut = 1; cut < bytes.length; cut += 1) {
      const torn = bytes.subarray(0, cut);
      // Only whole characters are cut, because half a character is refused for its encoding first.
      if (torn.toString().includes('\ufffd')) continue;
      await writeFile(found.path('c.jsonl'), file(header, first, `${torn}${second}`, third));
      // If a value may follow, the next record could be that value, so nothing is guessed.
      if (/[:,]$/.test(torn.toString())) await refused('corrupt', () => found.store.open('c'));
      else expect(await stored(found.store, 'c')).toEqual(entries.slice(0, 3));
      await writeFile(found.path('c.jsonl'), file(header, first, `${torn}${third}`, last));
      await refused('corrupt', () => found.store.open('c'));
    }
  });

  test('H-132 text that looks like a record inside a torn one is refused, even with the next seq and a newline', async () => {
    const forged = JSON.stringify({ seq: 1, at: 1, type: 'run-stop', reason: 'completed' });
    for (const before of ['"value":', '"value": ', '"value":[', '"value":[0,', '"value":[0, ']) {
      const line = `{"seq":1,"at":1,"type":"extension","name":"x",${before}${forged}`;
      await refuses(file(header, first, line), 'corrupt', 3);
      await refuses(file(header, first, `{"seq":1,"at${line}`), 'corrupt', 3);
    }
  });

  test('all whole records on one line are read, and the line stays unchanged', async () => {
    const joined = ['joined_line'];
    await mends(file(header, first, second + third, last), entries, joined);
    await mends(file(header, `${first} \t${second}\r${third}`, last), entries, joined);
    await mends(file(header, first, second, third + last), entries, joined);
    await mends(file(header, first, second) + third + last, entries, joined);
    await mends(file(header + first, second + third, last), entries, joined);
    await mends(whole.replaceAll('\n', ''), entries, joined);
    await mends(whole.replaceAll('\n', '\r'), entries, joined);
    await mends(file(header, first, second + second + third), entries.slice(0, 3), [...joined, 'duplicate']);
  });

  test('whole records on one line count like lines: a gap, a fork and a second header are refused', async () => {
    await refuses(file(header, first + third, last), 'gap', 2);
    await refuses(file(header, first, second + second.replace('entry', 'other')), 'fork', 3);
    await refuses(file(header, first + header, second), 'corrupt', 2);
    await refuses(file(header + header, first), 'corrupt', 1);
  });

  test('a line with other text between whole records is refused', async () => {
    const texts = ['say "so {', '}{"seq":2,', '\\"}'].map((text, seq) => notice('c', seq, text));
    const [head = '', ...lines] = await linesFor(texts);
    await mends(file(head, lines.join('')), texts, ['joined_line']);
    for (const between of ['x', ',', '\0', '\0 ', '"', '}', '{', '[]']) {
      await refuses(file(header, first, `${second}${between}${third}`, last), 'corrupt', 3);
    }
    await refuses(file(header, first, `[${second},${third}]`, last), 'corrupt', 3);
    const nested = second.replace(/}$/, `,"more":${third}}`);
    await mends(file(header, first, nested), [entries[0], { ...entries[1], more: JSON.parse(third) }] as never, []);
  });

  test('H-134 zero bytes or blank lines before further records are refused', async () => {
    await refuses(file(header, first, `\0\0${second}`, third), 'corrupt', 3);
    await refuses(file(header, first, '\0\0', second), 'corrupt', 3);
    await refuses(file(header, first, '', second), 'corrupt', 3);
  });

  test('H-135 a record broken over several lines is refused', async () => {
    await refuses(file(header, first, second.replace('entry', 'en\ntry\n'), third), 'corrupt', 3);
  });

  test('H-136 a repeated record counts once, next to the first or far from it', async () => {
    await mends(file(header, first, first, second), entries.slice(0, 2), ['duplicate']);
    await mends(file(header, first, second, third, first, second, third, last), entries, ['duplicate']);
  });

  test('H-136 a record counts once, also where it is repeated below the header of another run', async () => {
    const runs = ['r', 's'].flatMap((runId, run) =>
      [0, 1].map((index) => stamped('c', 1 + 2 * run + index, { type: 'run-started', runId })),
    );
    const log = [notice('c', 0), ...runs];
    const lines = await linesFor(log);
    const firsts = lines.flatMap((line, index) => (index > 0 && line.startsWith('{"format"') ? [index + 1] : []));
    expect(firsts).toEqual([3, 6]);
    for (const first of firsts) {
      const repeated = lines[first] ?? '';
      for (const place of [first + 1, first + 2]) {
        const damaged = file(...lines.slice(0, place), repeated, ...lines.slice(place));
        await mends(damaged, log, ['duplicate']);
        const found = await placeWith(damaged);
        const read: LogEntry[] = [];
        for await (const entry of readDamagedLog(found.directory, 'c')) read.push(entry);
        expect(read).toEqual(log);
      }
    }
    for (const line of lines.filter((each) => !each.startsWith('{"format"'))) {
      await mends(file(...lines, line), log, ['duplicate']);
    }
    const other = (lines[3] ?? '').replace('run-started', 'run-other');
    await refuses(file(...lines.slice(0, 4), other, ...lines.slice(4)), 'fork', 5);
    // A second writer, with a run of its own.
    const rival = (lines[5] ?? '').replace('"s"', '"t"');
    await refuses(file(...lines, rival, ...lines.slice(6)), 'fork', lines.length + 2);
  });

  test('H-137 another record with an existing seq is a fork', async () => {
    await refuses(file(header, first, second, second.replace('entry', 'other'), third), 'fork', 4);
  });

  test('H-138 a missing seq is a gap, also at the start', async () => {
    await refuses(file(header, first, third, last), 'gap', 3);
    await refuses(file(header, second), 'gap', 2);
  });

  test('H-138 a missing header of a run is a gap: no line is read as part of another run', async () => {
    const runs = ['r', 's', 'r'].flatMap((runId, run) =>
      [0, 1].map((index) => stamped('c', 1 + 2 * run + index, { type: 'run-started', runId })),
    );
    const log = [notice('c', 0), ...runs];
    const lines = await linesFor(log);
    const headers = lines.flatMap((line, index) => (index > 0 && line.startsWith('{"format"') ? [index] : []));
    expect(headers).toEqual([2, 5, 8]);
    const without = (lost: number) => file(...lines.slice(0, lost), ...lines.slice(lost + 1));
    for (const lost of headers) await refuses(without(lost), 'gap', lost + 1);
    for (const lost of [3, 6]) await refuses(without(lost), 'gap', lost + 1);
    await mends(file(...lines.slice(0, 5), ...lines.slice(2)), log, ['duplicate']);
    const found = await placeWith(without(5));
    const read: LogEntry[] = [];
    for await (const entry of readDamagedLog(found.directory, 'c')) read.push(entry);
    expect(read.map(({ seq, runId }) => [seq, runId])).toEqual([
      [0, null],
      [1, 'r'],
      [2, 'r'],
      [3, null],
      [4, null],
      [5, 'r'],
      [6, 'r'],
    ]);
  });

  test('H-145 invalid UTF-8 is refused with its line and never rewritten', async () => {
    const bytes = Buffer.from(file(header, first, second, third));
    bytes[bytes.indexOf('entry 1')] = 0xff;
    await refuses(bytes, 'encoding', 3);
    const head = Buffer.from(whole);
    head[head.indexOf('"c"') + 1] = 0xff;
    await refuses(head, 'encoding', 1);
  });

  test('H-147 a record with keys such as __proto__ is a record, and changes no prototype', async () => {
    const value = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}';
    const line = `{"seq":1,"at":1,"__proto__":{"polluted":true},"type":"extension","name":"x","value":${value}}`;
    const { store } = await placeWith(file(header, first, line));
    const [, entry] = await stored(store, 'c');
    expect(entry).toMatchObject({ seq: 1, type: 'extension', runId: null, conversationId: 'c' });
    expect(JSON.stringify(entry)).toContain(value);
    expect(({} as { polluted?: boolean }).polluted).toBe(undefined);
    expect(Object.getPrototypeOf(entry)).toBe(Object.prototype);
    await refuses(file(header, '{"__proto__":{"seq":0,"at":1,"type":"x"}}'), 'corrupt', 2);
  });

  test('H-147 a record that is nested 10,000 levels deep is refused without recursion', async () => {
    const deep = `${'{"in":'.repeat(10_000)}1${'}'.repeat(10_000)}`;
    const line = `{"seq":1,"at":1,"type":"extension","name":"x","value":${deep}}`;
    await refuses(file(header, first, line, third), 'corrupt', 3);
  });

  test('a line with JSON that is not an entry is refused', async () => {
    for (const line of ['12', '[]', 'null', '{}', '{"seq":-1,"at":1,"type":"x"}', '{"seq":1,"at":1,"type":7}']) {
      await refuses(file(header, first, line, third), 'corrupt', 3);
    }
  });

  test('the first of encoding, no_header, version, corrupt, gap, fork is reported, at any position', async () => {
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

describe('a byte order mark', () => {
  const mark = '\ufeff';

  test('at the start of a file is skipped: the lines after it are read, with their damage', async () => {
    const marked = ['byte_order_mark'];
    await mends(mark + whole, entries, marked);
    await mends(mark + whole.slice(0, -5), entries.slice(0, 3), [...marked, 'torn_tail']);
    await mends(mark + header, [], marked);
    await mends(mark + header.slice(0, 20), [], [...marked, 'torn_tail']);
    await mends(`${mark}\n`, [], [...marked, 'blank_tail']);
    await mends(mark, [], []);
    await refuses(mark + file(header, first, third), 'gap', 3);
    await refuses(`${mark}hello\n`, 'no_header', 1);
  });

  test('anywhere else is refused', async () => {
    await refuses(mark + mark + whole, 'no_header', 1);
    await refuses(file(header, first, mark + second), 'corrupt', 3);
    await refuses(file(header, first + mark + second), 'corrupt', 2);
    await refuses(`\n${mark}${whole}`, 'no_header', 2);
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

  test('H-140 a second header is refused: another version as version, this version as damage', async () => {
    await refuses(file(header, first, header.replace(/\d+/, String(VERSION + 1)), second), 'version', 3);
    await refuses(file(header, first, header, second), 'corrupt', 3);
    await refuses(file(header, header, first), 'corrupt', 2);
  });

  test("a log under another conversation's name keeps its own, with the notice renamed", async () => {
    const { store, path } = await placeWith(whole);
    await rename(path('c.jsonl'), path('d.jsonl'));
    await opened(store, 'd', async (handle) => {
      expect(noticeCodes(handle)).toEqual(['renamed']);
      await handle.append([notice('d', 4)], 4);
    });
    expect(await stored(store, 'd')).toEqual([...entries, notice('d', 4)]);
  });
});

test('reading a damaged log skips a byte order mark and finds every record of a line, like opening', async () => {
  const found = await placeWith(`\ufeff${file(header + first, 'no', second + third, last)}`);
  await refused('corrupt', () => found.store.open('c'));
  const read: LogEntry[] = [];
  for await (const entry of readDamagedLog(found.directory, 'c')) read.push(entry);
  expect(read).toEqual(entries);
});

test('reading a damaged log yields every readable entry, writes nothing and needs no lease', async () => {
  const damaged = file(header, first, 'no', `\0${third}`, second) + last.slice(0, -1);
  const found = await refuses(damaged, 'corrupt', 3);
  const read: LogEntry[] = [];
  for await (const entry of readDamagedLog(found.directory, 'c')) read.push(entry);
  expect(read).toEqual([entries[0], entries[2]]);
  expect(await contentOf(found)).toBe(damaged);
});
