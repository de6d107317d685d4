/** Small parts of the page: redacted places, edited texts, differences of contexts, and places on the time line. */
import { describe, expect, it } from 'vitest';
import { differences } from '../../inspector/model/contextAt.ts';
import { changed, diffRows, lineOfError } from '../../inspector/model/editedText.ts';
import { redactionsOf } from '../../inspector/model/redactions.ts';
import { axisOf, pixelsOf, placeOf } from '../../inspector/model/timeAxis.ts';
import type { LogEntry } from '../../machines/vocabulary.ts';

const entry = (seq: number, fields: object): LogEntry =>
  ({ seq, at: seq, conversationId: 'c', runId: null, type: 'extension', ...fields }) as unknown as LogEntry;

describe('redacted values of a log', () => {
  const entries = [
    entry(10, { value: 'nothing' }),
    entry(11, { value: { list: ['a', 'b [redacted]'], inner: { key: '[redacted] and [redacted]' } } }),
    entry(12, { name: `${'x'.repeat(30)}\n[redacted]\n${'y'.repeat(30)}`, value: null }),
  ];

  it('are found with their entry, the way to their text, their number and the text around the first', () => {
    expect(redactionsOf(entries)).toEqual([
      { index: 1, seq: 11, type: 'extension', path: 'value.list[1]', around: 'b [redacted]', count: 1 },
      { index: 1, seq: 11, type: 'extension', path: 'value.inner.key', around: '[redacted] and [redacted]', count: 2 },
      {
        ...{ index: 2, seq: 12, type: 'extension', path: 'name', count: 1 },
        around: `${'x'.repeat(23)} [redacted] ${'y'.repeat(23)}`,
      },
    ]);
  });

  it.each([0, 1, 2, 3])('are found from the entry %i on', (from) => {
    expect(redactionsOf(entries, from).map(({ index }) => index)).toEqual([1, 1, 2].filter((index) => index >= from));
  });
});

describe('the rows of an edited text', () => {
  it('have each line once, with its number in its own text, and a refusal below its line', () => {
    expect(diffRows('a\nb\nc', 'a\nB\nc\nd', { line: 4, why: 'no' })).toEqual([
      { line: 'a', look: '', number: 1 },
      { line: 'b', look: 'removed', number: 2 },
      { line: 'B', look: 'added', number: 2 },
      { line: 'c', look: '', number: 3 },
      { line: 'd', look: 'added', number: 4 },
      { line: 'no', look: 'refused' },
    ]);
  });

  it('show a refusal of an unchanged line once, and none beside a removed line of that number', () => {
    const rows = diffRows('a\nb', 'b', { line: 1, why: 'no' });
    expect(rows.map(({ line, look }) => `${line} ${look}`.trim())).toEqual(['a removed', 'b', 'no refused']);
    const after = diffRows('a\nx', 'a', { line: 1, why: 'no' });
    expect(after.map(({ line, look }) => `${line} ${look}`.trim())).toEqual(['a', 'no refused', 'x removed']);
  });

  it.each([
    ['Expected "," at line 3 column 5', 'a\nb\nc', 3],
    ['Unexpected token x in JSON at position 0', 'x', 1],
    ['Unexpected token x in JSON at position 2', 'a\nx', 2],
    ['Unexpected token in JSON at position 1', 'a\nx', 1],
    ['Unexpected end of JSON input', '{\n\n', 3],
    ['anything else', '{}', undefined],
    ['it ended: Unexpected end of JSON input', '{', undefined],
  ])('the line of the error %j', (error, text, line) => expect(lineOfError(text, error)).toBe(line));

  const edits: readonly (readonly [type: string, ends: number[], inserted: string, text: string, caret: number])[] = [
    ['insertText', [1, 1], 'X', 'aXbc', 2],
    ['insertText', [0, 2], 'X', 'Xc', 1],
    ['insertText', [2, 0], 'X', 'Xc', 1],
    ['insertFromPaste', [3, 3], 'x\r\ny\rz', 'abcx\ny\nz', 8],
    ['insertLineBreak', [1, 1], 'ignored', 'a\nbc', 2],
    ['insertParagraph', [1, 2], '', 'a\nc', 2],
    ['deleteContentBackward', [1, 1], '', 'bc', 0],
    ['deleteContentBackward', [0, 0], '', 'abc', 0],
    ['deleteContentBackward', [1, 3], '', 'a', 1],
    ['deleteContentForward', [1, 1], '', 'ac', 1],
    ['deleteContentForward', [3, 3], '', 'abc', 3],
    ['deleteByCut', [0, 1], 'ignored', 'bc', 0],
    ['insertText', [99, 99], 'X', 'abcX', 4],
    ['insertText', [1, 99], 'X', 'aX', 2],
  ];
  it.each(edits)('%s at %j', (type, ends, inserted, text, caret) => {
    expect(changed('abc', ends, type, inserted)).toEqual({ text, caret });
  });
});

describe('the differences of two contexts', () => {
  it('are the changed, new and removed leaves by their paths, in the order of the later one, and removed ones last', () => {
    const before = { gone: 1, a: 1, same: 'x', list: [1, 2], empty: {}, nested: { deep: null } };
    const after = { a: 2, same: 'x', list: [1, 3, 4], empty: [], nested: { deep: null }, more: true };
    expect(differences(before, after)).toEqual({
      changed: [
        { path: 'a', before: '1', after: '2' },
        { path: 'list[1]', before: '2', after: '3' },
        { path: 'list[2]', after: '4' },
        { path: 'empty', before: '{}', after: '[]' },
        { path: 'more', after: 'true' },
        { path: 'gone', before: '1' },
      ],
      same: 3,
    });
  });

  it('show 400 units of a long value at most, never with half a character', () => {
    const long = `${'a'.repeat(398)}😀`;
    expect(differences({}, { long }).changed).toEqual([{ path: 'long', after: `"${'a'.repeat(398)}…` }]);
  });

  it('include a long value that differs at its end only', () => {
    const [before, after] = ['1', '2'].map((end) => ({ long: 'a'.repeat(400) + end }));
    expect(differences(before ?? {}, after ?? {})).toMatchObject({ changed: [{ path: 'long' }], same: 0 });
  });

  it.each([399, 400, 401])('are at most 400, and equal values are only counted: %i', (count) => {
    const values = Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]));
    expect(differences({}, values).changed).toHaveLength(Math.min(400, count));
    expect(differences(values, values)).toEqual({ changed: [], same: count });
  });

  it.each([
    [398, false],
    [399, true],
  ])('cut a text of more than 400 characters, quotes included: %i', (length, isCut) => {
    const [one] = differences({}, { a: 'x'.repeat(length) }).changed;
    expect(one?.after?.endsWith('…')).toBe(isCut);
    expect(one?.after).toHaveLength(isCut ? 401 : length + 2);
  });
});

describe('a place on the time line', () => {
  const entries = [0, 100, 100, 300].map((at, seq) => ({ ...entry(seq, {}), at }));

  it.each([
    [-1, 0],
    [0, 0],
    [50, 0.5],
    [99, 0.99],
    [100, 2],
    [200, 2.5],
    [300, 3],
    [350, 3.5],
    [400, 4],
    [900, 4],
  ])('of the time %i is %f', (time, place) => expect(placeOf(entries, time, 400)).toBeCloseTo(place, 5));

  it('of a log without later time stays at its last entry, and of an empty log is its beginning', () => {
    expect([placeOf(entries, 900, 300), placeOf([], 5, 9)]).toEqual([3, 0]);
  });

  it('is between the pixels of the entries around it, and none before the window', () => {
    const axis = { x: [0, 10, 30], from: 5, to: 7, now: 20, gaps: [], isWindow: true };
    expect([4.9, 5, 5.5, 6, 6.5, 7, 7.5, 8, 9].map((place) => pixelsOf(axis, place))).toEqual([
      ...[undefined, 0, 5, 10, 20, 30, 40, 50, 50],
    ]);
  });
});

describe('the positions of entries', () => {
  const spaced = (...times: number[]) => times.map((at, seq) => ({ ...entry(seq, {}), at }));

  it('have at least 7 pixels between two, 22 after broken lines, and at most a fifth of the width', () => {
    const { x, gaps } = axisOf(spaced(0, 0, 1, 2, 100_000), 1_000, 4, 0, new Set([2]));
    expect(x.map((each, at) => each - (x[at - 1] ?? 0))).toEqual([0, 7, 22, 7, 200]);
    expect(gaps).toEqual([{ x: 36 + 100, ms: 99_998, isClipped: true }]);
  });

  it('follow the time, and a gap of 46 pixels has words', () => {
    const { x, gaps } = axisOf(spaced(0, 73, 148), 1_000, 2, 0);
    expect(x.map((each) => Math.round(each))).toEqual([0, 45, 92]);
    expect(gaps).toMatchObject([{ ms: 75, isClipped: false }]);
  });

  it.each([0, 100])('have room for the %i ms since the last entry only at the end of the log', (tail) => {
    const all = spaced(0, 100);
    const { x, now } = axisOf(all, 1_000, 1, tail);
    expect([x, now]).toEqual([[0, 62], tail === 0 ? 0 : 62]);
    const many = spaced(...Array.from({ length: 200 }, (_, at) => at));
    expect(axisOf(many, 700, 0, tail)).toMatchObject({ from: 0, now: 0, isWindow: true });
    expect(axisOf(many, 700, 199, tail).now > 0).toBe(tail > 0);
  });

  it.each([
    [87, false],
    [88, false],
    [89, true],
  ])('are a window around the cursor if not all of them fit: %i', (length, isWindow) => {
    // A hundred times 7 pixels, without the room that is left for ends.
    const entries = spaced(...Array.from({ length }, (_, at) => at));
    const axes = [0, 44, length - 1].map((head) => axisOf(entries, 700, head, 0));
    expect(axes.map((axis) => axis.isWindow)).toEqual(Array(3).fill(isWindow));
    expect(axes.map(({ from, to }) => [from, to])).toEqual(
      isWindow
        ? [
            [0, 87],
            [0, 87],
            [1, 88],
          ]
        : Array(3).fill([0, length - 1]),
    );
    for (const { x, from, to } of axes) expect(x).toHaveLength(to - from + 1);
  });
});
