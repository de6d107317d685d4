/** Earlier lines: after any number of steps up and down, the expected line is shown. */
import { expect, test } from 'vitest';
import { type EditedLine, editedBy, type Key, lineWith } from '../../../src/cli/interactive/lineEditor.ts';

const key = (name: string): Key => ({ name, ctrl: false, meta: false, shift: false, sequence: '' });
const typed = (from: EditedLine, names: readonly string[], history: readonly string[]): EditedLine =>
  names.reduce((line, name) => editedBy(line, key(name), history) ?? line, from);

const DRAFT = 'draft';
const histories = [0, 1, 2, 4].map((length) => Array.from({ length }, (_, at) => `line ${at}`));
const steps = histories.flatMap((history) =>
  [0, 1, 2, 3, 4, 5].flatMap((ups) =>
    [0, 1, 2, 3, 4, 5, 6].map((downs) => ({ lines: history.length, ups, downs, history })),
  ),
);

test.each(steps)('of $lines lines, $ups up and $downs down', ({ history, ups, downs }) => {
  const names = [...Array(ups).fill('up'), ...Array(downs).fill('down')];
  const back = Math.max(0, Math.min(ups, history.length) - downs);
  const line = typed(lineWith(DRAFT), names, history);
  const wanted = back === 0 ? DRAFT : history.at(-back);
  expect([line.text, line.cursor, line.back]).toEqual([wanted, wanted?.length, back]);
});

test('after any way up and down each line is reached again, and an edit of it is not in the history', () => {
  const history = ['one', 'two', 'three'];
  const seen: string[] = [];
  let line = lineWith(DRAFT);
  for (const name of ['up', 'up', 'down', 'up', 'up', 'down', 'down', 'down', 'down', 'up']) {
    line = typed(line, [name], history);
    seen.push(line.text);
  }
  expect(seen).toEqual(['three', 'two', 'three', 'two', 'one', 'two', 'three', DRAFT, DRAFT, 'three']);
  const edited = typed(line, ['backspace'], history);
  expect([edited.text, typed(edited, ['up', 'down'], history).text]).toEqual(['thre', 'three']);
});
