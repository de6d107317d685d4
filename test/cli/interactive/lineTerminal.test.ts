/** The plain terminal of whole lines: its questions, the lines after a question, and its state after a close. */
import { PassThrough } from 'node:stream';
import { afterEach, expect, test, vi } from 'vitest';
import { LineTerminal, type TerminalSource } from '../../../src/cli/interactive/conversationTerminal.ts';
import { foreignLine, ownLine, type TextLine } from '../../../src/cli/interactive/textRows.ts';
import { keptOutput } from './talkBench.ts';

afterEach(() => void vi.useRealTimers());

/** The test sets its view. */
function lines(columns?: number) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const view = { lines: [], question: ['cyan', '>'] as ['cyan', string], isAwaiting: true };
  const settled: TextLine[] = [];
  const acts: unknown[] = [];
  const source = {
    view: () => view,
    settle: () => settled.splice(0),
    submit: (text: string, later: boolean) => void acts.push([text, later]),
    end: () => void acts.push('end'),
  } as unknown as TerminalSource;
  const typed = new PassThrough();
  const { output, written } = keptOutput(columns);
  const terminal = new LineTerminal(typed, output, source);
  const shown = (): string => {
    vi.advanceTimersByTime(60);
    return written();
  };
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return { terminal, typed, view, settled, acts, shown, turns };
}
const line = (text: string) => ownLine(['plain', text]);

test('it asks once until something else is written, and each line begins a row of its own', () => {
  const { terminal, view, settled, shown } = lines();
  expect(shown()).toBe('> ');
  terminal.changed();
  expect(shown()).toBe('> ');
  terminal.commit([]);
  terminal.fill('');
  expect(shown()).toBe('> ');
  terminal.commit([line('one'), line('two')]);
  expect(shown()).toBe('> \none\ntwo\n> ');
  view.question = ['cyan', 'run it?'];
  terminal.changed();
  expect(shown()).toBe('> \none\ntwo\n> \nrun it? ');
  settled.push(foreignLine('plain', 'text'));
  terminal.fill('mine');
  expect(shown()).toBe('> \none\ntwo\n> \nrun it? \nin the line: mine\n  text\nrun it? ');
  terminal.close();
});

test('it shows no prompt while no input is awaited, and shows one as soon as it is', () => {
  const { terminal, view, shown } = lines();
  view.isAwaiting = false;
  expect(shown()).toBe('');
  terminal.commit([line('working')]);
  expect(shown()).toBe('working\n');
  view.isAwaiting = true;
  terminal.changed();
  expect(shown()).toBe('working\n> ');
  terminal.close();
});

test('a typed line is passed on and is followed by the next question, which no empty row precedes', async () => {
  const { terminal, typed, acts, shown, turns } = lines();
  expect(shown()).toBe('> ');
  typed.write('one\ntwo\n');
  await turns();
  expect(acts).toEqual([
    ['one', false],
    ['two', false],
  ]);
  expect(shown()).toBe('> > ');
  terminal.close();
});

test('its rows are as wide as the terminal, and not broken without a width', () => {
  const text = 'one two three four five';
  for (const [columns, rows] of [
    [10, 'one two\n  three\n  four\n  five\n'],
    [undefined, `${text}\n`],
  ] as const) {
    const { terminal, view, shown } = lines(columns);
    view.isAwaiting = false;
    terminal.commit([line(text)]);
    expect(shown()).toBe(rows);
    terminal.close();
  }
});

test('the end of the input leaves, and that of a closed terminal, which asks no more, does not', async () => {
  const open = lines();
  open.typed.end('last');
  await open.turns();
  expect(open.acts).toEqual([['last', false], 'end']);
  open.terminal.close();
  const closed = lines();
  expect(closed.shown()).toBe('> ');
  closed.terminal.close();
  closed.terminal.changed();
  closed.typed.end();
  await closed.turns();
  expect(closed.acts).toEqual([]);
  expect(closed.shown()).toBe('> \n');
  expect(vi.getTimerCount()).toBe(0);
  const early = lines();
  early.terminal.close();
  early.terminal.changed();
  expect(early.shown()).toBe('');
});
