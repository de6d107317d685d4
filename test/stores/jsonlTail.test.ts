/** Tests the end of a file without a newline: remains of a write are removed, anything else is refused. */
import { describe, expect, test } from 'vitest';
import { VERSION } from '../../src/stores/jsonl/lineFormat.ts';
import { readDamagedLog } from '../../src/stores/jsonl/readDamagedLog.ts';
import { notice, notices, refused, stamped } from '../../src/testing/storeSuite/storeCase.ts';
import { volume } from '../support/tier.ts';
import { mends, refuses } from './damagedFile.ts';
import { linesFor, placeWith } from './storeDirectory.ts';

const entries = [...notices('c', 0, 3), notice('c', 3, 'the läst 🎉 one')];
const [header = '', ...records] = await linesFor(entries);
const [first = '', second = '', third = ''] = records;
const file = (...lines: string[]) => lines.map((line) => `${line}\n`).join('');
const whole = file(header, ...records);
const NEWER = `{"format":"runchart-log","version":${VERSION + 1},"conversationId":"c"}`;

describe('a file of another program without a newline at its end', () => {
  test.for<[string, string | Uint8Array]>([
    ['JSON of another program', '[{"my":"own data"},{"of":"another program"}'],
    ['an object cut off', '{"my":"own data"'],
    ['prose', 'Dear log, nothing happened.'],
    ['a header of another format', '{"format":"runchart-logbook","version":1'],
    ['UTF-16', Buffer.from('{"my":"own data"}', 'utf16le')],
    ['a header with prose after zero bytes', `${header.slice(0, -2)}\0 Dear log`],
    ['a disk image', Buffer.concat([Buffer.alloc(512), Buffer.from('{"format')])],
    ['a log in base64', Buffer.from(whole).toString('base64')],
    ['a log whose newlines became zero bytes', whole.replaceAll('\n', '\0')],
    ['a log whose newlines were lost and that was cut', whole.replaceAll('\n', '').slice(0, -1)],
  ])('%s is refused, and left as it is', async ([, content]) => {
    await refuses(content, 'no_header', 1);
  });

  test('bytes that are not text are refused for their encoding', async () => {
    await refuses(Buffer.from([0x1f, 0x8b, 8, 0, 0xff, 0xfe]), 'encoding', 1);
  });
});

describe('a last line without a newline that no write of the store can leave', () => {
  test.for<[string, string]>([
    ['prose', 'hello'],
    ['zero bytes and prose', '\0\0\0hello'],
    ['a record and a torn one after it', second + third.slice(0, -1)],
    ['a record and prose after it', `${second} hello`],
    ['records whose newlines became blanks', `${second} ${third} {"seq":3,"at`],
    ['records whose newlines became zero bytes', `${second}\0${third}\0`],
    ['a header of a newer version and more', `${NEWER}\r{"seq":1`],
  ])('%s: it is refused with its number, and left as it is', async ([, tail]) => {
    await refuses(file(header, first) + tail, 'corrupt', 3);
  });

  test('bytes that are not text are refused for their encoding', async () => {
    await refuses(Buffer.concat([Buffer.from(file(header, first)), Buffer.from([0xff, 0xfe, 0xff])]), 'encoding', 3);
  });
});

describe('an incomplete object at the end of a log', () => {
  test.for<[string, string]>([
    ['of another shape', '{"at":1,"se'],
    ['of another seq', '{"seq":3,"at":17'],
    ['of an earlier record', '{"seq":0,"at":17'],
    ['of another header', header.slice(0, -4)],
  ])('%s: it counts as torn', async ([, tail]) => {
    await mends(Buffer.from(file(header, first) + tail), entries.slice(0, 1), ['torn_tail']);
  });
});

describe('the remains of an interrupted write', () => {
  test('H-130 the complete records of a write that is cut at any byte are kept', async () => {
    const bytes = Buffer.from(whole);
    const from = Buffer.byteLength(file(header, first));
    for (let cut = from; cut < bytes.length; cut += volume.byteStep) {
      const lines = bytes.subarray(0, cut).toString().split('\n').slice(1);
      const kept = lines.filter((line) => records.includes(line)).length;
      const torn = lines.at(-1) !== '' && kept < lines.length;
      await mends(bytes.subarray(0, cut), entries.slice(0, kept), torn ? ['torn_tail'] : []);
    }
  });

  test('H-134 the complete records before zero bytes are kept', async () => {
    const bytes = Buffer.from(whole);
    for (let cut = 1; cut < bytes.length; cut += 7 * volume.byteStep) {
      const lines = bytes.subarray(0, cut).toString().split('\n');
      const kept = lines.filter((line) => records.includes(line)).length;
      const torn = lines.at(-1) !== '' && ![header, ...records].includes(lines.at(-1) ?? '');
      const padded = Buffer.concat([bytes.subarray(0, cut), Buffer.alloc(300)]);
      await mends(padded, entries.slice(0, kept), [torn ? 'torn_tail' : 'zero_bytes']);
    }
  });

  test('H-131 H-134 a complete last line is kept if zero bytes and blanks follow it', async () => {
    const three = whole.slice(0, -1);
    for (const rest of ['\0', '\0'.repeat(5000), ' \0\0 ', '\0 \0', '\r\0'])
      await mends(three + rest, entries, ['zero_bytes']);
    await mends(`${three}  `, entries, []);
    await mends(`${header}\0\0`, [], ['zero_bytes']);
    const { directory } = await placeWith(`${three}\0\0`);
    const read: unknown[] = [];
    for await (const entry of readDamagedLog(directory, 'c')) read.push(entry);
    expect(read).toEqual(entries);
  });

  test('H-134 partly overwritten zero bytes still count as zero bytes', async () => {
    await mends(`${file(header, first)}  \0\0${second}\n`, entries.slice(0, 2), ['zero_bytes']);
    await mends(`${file(header, first)}  \0 \n`, entries.slice(0, 1), ['zero_bytes']);
  });

  test('H-134 zero bytes in a torn record and before it are removed with it', async () => {
    const kept = entries.slice(0, 1);
    for (const tail of [
      '{"seq":1,"at\0\0\0',
      '{"se\0\0"text":"x"}',
      '\0\0{"seq":1,"at',
      '\0\0{"s',
      `${second.slice(0, 30)}\0\0x`,
    ]) {
      await mends(file(header, first) + tail, kept, ['torn_tail']);
    }
  });

  test('H-134 the rest of a record whose beginning was lost up to the end of a block is removed', async () => {
    const start = file(header, first);
    const zeros = '\0'.repeat(512 - start.length);
    await mends(`${start}${zeros}e":"notice","text":"x`, entries.slice(0, 1), ['torn_tail']);
    await refuses(`${start}${zeros}\0e":"notice","text":"x`, 'corrupt', 3);
    await refuses(`${start}${zeros}${second}${third}`, 'corrupt', 3);
  });

  test('H-130 H-140 a header of a newer version that is cut at any byte is removed', async () => {
    for (let cut = 1; cut < NEWER.length; cut += 1) {
      await mends(file(header, first) + NEWER.slice(0, cut), entries.slice(0, 1), ['torn_tail']);
    }
    const { store } = await placeWith(file(header, first) + NEWER);
    await refused('version', () => store.open('c'));
  });

  test('H-130 a run whose header or first line is cut at any byte is removed, and the runs before it are kept', async () => {
    const runs = ['r', 's'].flatMap((runId, run) =>
      [0, 1].map((index) => stamped('c', 1 + 2 * run + index, { type: 'run-started', runId })),
    );
    const log = [notice('c', 0), ...runs];
    const lines = await linesFor(log);
    const isHeader = (line: string): boolean => line.startsWith('{"format"');
    expect(lines.map(isHeader)).toEqual([true, false, true, false, false, true, false, false]);
    const bytes = Buffer.from(file(...lines));
    for (let cut = file(...lines.slice(0, 5)).length; cut < bytes.length; cut += volume.byteStep) {
      const left = bytes.subarray(0, cut).toString().split('\n');
      const kept = left.filter((line) => lines.includes(line));
      const torn = left.at(-1) !== '' && kept.length < left.length;
      const count = kept.filter((line) => !isHeader(line)).length;
      await mends(bytes.subarray(0, cut), log.slice(0, count), torn ? ['torn_tail'] : []);
    }
  });

  test('H-130 a header with any id that is cut at any byte is an empty log', async () => {
    const id = 'a"}{\\ 🎉';
    const odd = JSON.stringify({ format: 'runchart-log', version: 1, conversationId: id });
    const bytes = Buffer.from(odd);
    for (let cut = 1; cut < bytes.length; cut += 1) await mends(bytes.subarray(0, cut), [], ['torn_tail']);
  });
});
