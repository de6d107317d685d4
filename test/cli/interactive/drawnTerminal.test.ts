/** When the drawn terminal draws: keys at once, other changes at most 60 times a second. */
import { EventEmitter, once } from 'node:events';
import { PassThrough } from 'node:stream';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import type { TerminalSource } from '../../../src/cli/interactive/conversationTerminal.ts';
import { DrawnTerminal } from '../../../src/cli/interactive/drawnTerminal.ts';

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

function drawn(own: Partial<TerminalSource> = {}) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  const modes: boolean[] = [];
  const input = Object.assign(new PassThrough(), {
    setRawMode: (isRaw: boolean) => void modes.push(isRaw),
    isTTY: true,
  });
  const written: string[] = [];
  const output = { columns: 80, rows: 24, on: () => undefined, off: () => undefined };
  const stream = { ...output, write: (text: string) => void written.push(text) };
  const terminal = new DrawnTerminal(input as never, stream as never, false, { ...source, ...own });
  onTestFinished(() => terminal.close());
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return { terminal, input, modes, written, turns };
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
  const { terminal, input, turns } = drawn({ history: () => ['earlier'], completed });
  const types = async (...keys: string[]): Promise<string> => {
    for (const each of keys) {
      input.write(each);
      await turns();
    }
    return terminal.text;
  };
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
