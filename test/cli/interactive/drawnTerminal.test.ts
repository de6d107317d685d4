/** The drawn terminal: its draws, the effect of each key, and its state after a close or a handover. */
import { EventEmitter, once } from 'node:events';
import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { TerminalSource } from '../../../src/cli/interactive/conversationTerminal.ts';
import { DrawnTerminal } from '../../../src/cli/interactive/drawnTerminal.ts';
import { ownLine } from '../../../src/cli/interactive/textRows.ts';
import { TerminalScreen } from '../../support/terminalScreen.ts';

afterEach(() => void vi.useRealTimers());

const source: TerminalSource = {
  view: () => ({ lines: [], question: ['plain', '>'], isAwaiting: true }),
  settle: () => [],
  isTurning: () => false,
  history: () => [],
  submit: () => undefined,
  escape: () => undefined,
  interrupt: () => undefined,
  end: () => undefined,
  completed: (text) => text,
  moveInMenu: () => false,
};

function drawn(own: Partial<TerminalSource> = {}, size: object = {}, isStyled = false) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
  const modes: boolean[] = [];
  const input = Object.assign(new PassThrough(), {
    setRawMode: (isRaw: boolean) => void modes.push(isRaw),
    isTTY: true,
  });
  const written: string[] = [];
  const output = Object.assign(new EventEmitter(), { columns: 80, rows: 24, ...size });
  const stream = Object.assign(output, { write: (text: string) => void written.push(text) });
  const terminal = new DrawnTerminal(input as never, stream as never, isStyled, { ...source, ...own });
  onTestFinished(() => terminal.close());
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  const types = async (...keys: string[]): Promise<string> => {
    for (const each of keys) {
      input.write(each);
      await turns();
    }
    return terminal.text;
  };
  return { terminal, input, output, modes, written, turns, types };
}

test('keys are drawn at once, those that arrive together once, and other changes wait for the next turn of the screen', async () => {
  const { terminal, input, written, turns } = drawn();
  vi.advanceTimersByTime(20);
  written.length = 0;
  input.write('abc');
  await turns();
  expect(written).toEqual([expect.stringContaining('> abc')]);
  terminal.changed();
  terminal.changed();
  await turns();
  expect(written).toHaveLength(1);
  vi.advanceTimersByTime(16);
  expect(written).toHaveLength(2);
  // A change that a key has drawn is not drawn again.
  terminal.changed();
  input.write('d');
  await turns();
  vi.advanceTimersByTime(100);
  expect(written.slice(2)).toEqual([expect.stringContaining('> abcd')]);
});

test('text that is put into the line ends a search, so the question before the line is visible', async () => {
  const { terminal, input, written, turns } = drawn({ history: () => ['npm test'] });
  input.write('\x12npm');
  await turns();
  expect(written.at(-1)).toContain('search "npm": npm test');
  terminal.fill('');
  vi.advanceTimersByTime(20);
  expect(written.at(-1)).not.toContain('search');
  input.write('y');
  await turns();
  expect(terminal.text).toBe('y');
});

test('pasted text ends a search, and the next key is added to it', async () => {
  const { terminal, input, turns } = drawn({ history: () => ['npm test'] });
  input.write('\x12npm');
  await turns();
  input.write('\x1b[200~ --run\x1b[201~');
  await turns();
  input.write('!');
  await turns();
  expect(terminal.text).toBe('npm test --run!');
});

test('Tab without a completion leaves the cursor and the draft, and with one the cursor is after it', async () => {
  const completed = (text: string) => (text === '/he' ? '/help ' : text);
  const { terminal, types } = drawn({ history: () => ['earlier'], completed });
  expect(await types('ab', '\x1b[D', '\t', 'x')).toBe('axb');
  expect(await types('\x1b[A', '\t')).toBe('earlier');
  expect(await types('\x1b[B')).toBe('axb');
  terminal.fill('/he');
  expect(await types('\x1b[D', '\t', 'x')).toBe('/help x');
});

test('a terminal that is closed while an editor has it stays restored after the editor', async () => {
  const { terminal, input, modes } = drawn();
  const quit = new EventEmitter();
  const handedOver = terminal.handOver(() => once(quit, 'quit'));
  terminal.close();
  quit.emit('quit');
  await handedOver;
  expect([modes.at(-1), input.isPaused(), input.listenerCount('keypress')]).toEqual([false, true, 0]);
});

const PASTE_ON = '\x1b[?2004h';
const PASTE_OFF = '\x1b[?2004l';
const line = (text: string) => ownLine(['plain', text]);

test('it reads keys and pasted text as such, and is restored where the program exits at once', () => {
  const before = process.listeners('exit');
  const { modes, written } = drawn();
  expect([modes, written]).toEqual([[true], [PASTE_ON]]);
  for (const listener of process.listeners('exit').filter((each) => !before.includes(each))) listener(1);
  expect([modes, written]).toEqual([
    [true, false],
    [PASTE_ON, PASTE_OFF],
  ]);
});

describe('a terminal that is closed', () => {
  test('has written what was committed, has no foot and no listener, and draws no more', () => {
    const exits = process.listenerCount('exit');
    const { terminal, input, output, modes, written } = drawn();
    vi.advanceTimersByTime(20);
    terminal.commit([line('the last line')]);
    terminal.close();
    const screen = new TerminalScreen(80);
    for (const text of written) screen.write(text);
    expect(screen.rows).toEqual(['the last line']);
    expect(written.at(-1)).toBe(PASTE_OFF);
    expect([modes, input.isPaused()]).toEqual([[true, false], true]);
    expect([output.listenerCount('resize'), input.listenerCount('keypress')]).toEqual([0, 0]);
    expect([process.listenerCount('exit'), vi.getTimerCount()]).toEqual([exits, 0]);
    const { length } = written;
    terminal.commit([line('later')]);
    vi.advanceTimersByTime(1_000);
    expect(written).toHaveLength(length);
  });

  test('although it is gone, ends without an error', () => {
    const { terminal, input } = drawn();
    input.setRawMode = () => {
      throw new Error('EIO');
    };
    expect(() => terminal.close()).not.toThrow();
  });
});

test('while another program has the terminal nothing is drawn, and afterwards all of it, with its keys', async () => {
  for (const fails of [false, true]) {
    const { terminal, input, modes, written, types, turns } = drawn({
      view: () => ({ lines: [line('working')], question: ['plain', '>'], isAwaiting: true }),
    });
    await types('ab');
    const work = async () => {
      expect([terminal.isHandedOver, modes.at(-1), written.at(-1)]).toEqual([true, false, PASTE_OFF]);
      const { length } = written;
      terminal.commit([line('meanwhile')]);
      input.emit('keypress', 'x', { name: 'x', ctrl: false, meta: false, shift: false, sequence: 'x' });
      await turns();
      vi.advanceTimersByTime(1_000);
      expect(written).toHaveLength(length);
      if (fails) throw new Error('no editor');
      return 'edited';
    };
    const handedOver = terminal.handOver(work);
    if (fails) await expect(handedOver).rejects.toThrow('no editor');
    else expect(await handedOver).toBe('edited');
    expect([terminal.isHandedOver, modes.at(-1), written.at(-1)]).toEqual([false, true, PASTE_ON]);
    vi.advanceTimersByTime(20);
    const screen = new TerminalScreen(80);
    screen.write(`of the\r\nother program\r\n${written.at(-1)}`);
    expect(screen.rows).toEqual(['of the', 'other program', 'meanwhile', 'working', '> ab']);
    expect(await types('\x7f', 'c')).toBe('ac');
    terminal.close();
  }
});

test('a key that hands the terminal over is not drawn into the other program', async () => {
  const quit = new EventEmitter();
  const talk = drawn({ submit: () => void talk.terminal.handOver(() => once(quit, 'quit')) });
  await talk.types('edit', '\r');
  vi.advanceTimersByTime(100);
  expect(talk.written.at(-1)).toBe(PASTE_OFF);
  quit.emit('quit');
});

test('a stopped program gives the terminal back, and takes it again when it continues', async () => {
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
  onTestFinished(() => kill.mockRestore());
  const { modes, written, types } = drawn({
    view: () => ({ lines: [line('working')], question: ['plain', '>'], isAwaiting: true }),
  });
  await types('ab', '\x1a');
  expect(kill.mock.calls).toEqual([[0, 'SIGTSTP']]);
  expect([modes.at(-1), written.includes(PASTE_OFF)]).toEqual([false, true]);
  written.length = 0;
  process.emit('SIGCONT');
  expect([modes.at(-1), written]).toEqual([true, [PASTE_ON]]);
  vi.advanceTimersByTime(20);
  // The output of the shell above stays.
  const screen = new TerminalScreen(80);
  screen.write(`one\r\ntwo\r\n${written.at(-1)}`);
  expect(screen.rows).toEqual(['one', 'two', 'working', '> ab']);
  expect(process.listenerCount('SIGCONT')).toBe(0);
});

test('it is drawn ten times a second while something turns, and else not', () => {
  let isTurning = true;
  const { written } = drawn({ isTurning: () => isTurning });
  vi.advanceTimersByTime(20);
  written.length = 0;
  vi.advanceTimersByTime(1_000);
  expect(written).toHaveLength(10);
  isTurning = false;
  vi.advanceTimersByTime(1_000);
  expect(written).toHaveLength(10);
});

test('committed lines are written once, above a foot that is lower than the screen', async () => {
  const working = Array.from({ length: 40 }, (_, at) => line(`working ${at}`));
  const { terminal, written, types } = drawn(
    { view: () => ({ lines: working, question: ['plain', '>'], isAwaiting: true }) },
    { rows: 10 },
  );
  terminal.commit([line('one')]);
  vi.advanceTimersByTime(20);
  await types('a', 'b');
  const screen = new TerminalScreen(80);
  for (const text of written.slice(1)) screen.write(text);
  expect(screen.rows).toEqual(['one', ...working.slice(-8).map(({ spans: [span] }) => span?.[1]), '> ab']);
});

test('any number of lines is written at once', () => {
  const { terminal, written } = drawn();
  terminal.commit(Array.from({ length: 200_000 }, () => line('x')));
  vi.advanceTimersByTime(20);
  expect(written.at(-1)?.match(/x/g)).toHaveLength(200_000);
});

test('a change of the size is drawn, and text in progress keeps a third of the rows', () => {
  const settled: unknown[] = [];
  const { output, written } = drawn({
    settle: (...size) => {
      settled.push(size);
      return [];
    },
  });
  vi.advanceTimersByTime(20);
  written.length = 0;
  Object.assign(output, { columns: 40, rows: 10 }).emit('resize');
  vi.advanceTimersByTime(20);
  expect([written.length, settled]).toEqual([
    1,
    [
      [79, 8],
      [39, 3],
    ],
  ]);
});

test.each([
  [{ columns: 0, rows: 0 }, 24, 79],
  [{ columns: 1, rows: 1 }, 24, 79],
  [{ columns: undefined, rows: undefined }, 24, 79],
  [{ columns: 30, rows: 7 }, 7, 29],
])('a terminal of the size %j has %i rows and %i columns of text, where it shows colours', (size, rows, columns) => {
  const { terminal } = drawn({}, size, true);
  expect([terminal.rows, terminal.textColumns]).toEqual([rows, columns]);
  expect(drawn({}, size).terminal.textColumns).toBeUndefined();
});

describe('a key', () => {
  const submitted = () => {
    const lines: unknown[] = [];
    return { lines, ...drawn({ submit: (text, later) => void lines.push([text, later]) }) };
  };

  test('Enter that was typed before the terminal was ready sends the line, and Ctrl-J is a new line later', async () => {
    const { lines, types } = submitted();
    expect(await types('early', '\n')).toBe('');
    vi.advanceTimersByTime(100);
    expect(await types('a', '\n', 'b')).toBe('a\nb');
    await types('\r');
    expect(lines).toEqual([
      ['early', false],
      ['a\nb', false],
    ]);
  });

  test('Alt with Enter queues the line, as Enter is sent by the terminal', async () => {
    const { lines, types } = submitted();
    vi.advanceTimersByTime(100);
    expect(await types('one', '\x1b\r', 'two', '\x1b\n')).toBe('');
    expect(lines).toEqual([
      ['one', true],
      ['two', true],
    ]);
  });

  test('Enter after a backslash at the end continues the line, and sends it elsewhere and with Alt', async () => {
    const { lines, types } = submitted();
    expect(await types('a\\', '\r', 'b')).toBe('a\nb');
    await types('\\', '\x1b[D', '\r', 'c\\', '\x1b\r');
    expect(lines).toEqual([
      ['a\nb\\', false],
      ['c\\', true],
    ]);
  });

  test('Ctrl-Y puts back what was removed last, whatever was typed or removed one by one since', async () => {
    const { types } = drawn();
    expect(await types('one two', '\x17', 'x', '\x7f', '\x19', '\x19')).toBe('one twotwo');
  });

  test('Ctrl-L clears the screen and draws the foot from its beginning', async () => {
    const { written, types } = drawn({
      view: () => ({ lines: [line('working')], question: ['plain', '>'], isAwaiting: true }),
    });
    await types('ab');
    written.length = 0;
    await types('\x0c');
    expect(written[0]).toContain('\x1b[2J');
    const screen = new TerminalScreen(80);
    screen.write('one\r\ntwo\r\n');
    screen.write(written.slice(1).join(''));
    expect(screen.rows).toEqual(['one', 'two', 'working', '> ab']);
  });

  test('Up and Down move in an open menu, else through the earlier lines', async () => {
    const steps: unknown[] = [];
    const { types } = drawn({
      history: () => ['earlier'],
      moveInMenu: (text, step) => {
        steps.push([text, step]);
        return text.startsWith('/');
      },
    });
    expect(await types('/m', '\x1b[A', '\x1b[B')).toBe('/m');
    expect(await types('\x15', '\x1b[A')).toBe('earlier');
    expect(steps).toEqual([
      ['/m', -1],
      ['/m', 1],
      ['', -1],
    ]);
  });

  test('Ctrl-C passes on the line, and Ctrl-D and the end of the input leave only an empty one', async () => {
    const acts: unknown[] = [];
    const { input, types, turns } = drawn({
      interrupt: (text) => void acts.push(text),
      end: () => void acts.push('end'),
    });
    expect(await types('ab', '\x03', '\x01', '\x04')).toBe('b');
    await types('\x04');
    expect(acts).toEqual(['ab']);
    await types('\x04');
    expect(acts).toEqual(['ab', 'end']);
    input.end();
    await turns();
    expect(acts).toEqual(['ab', 'end', 'end']);
  });
});
