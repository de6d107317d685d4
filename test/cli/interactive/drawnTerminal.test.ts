/** When the drawn terminal draws: keys at once, other changes at most 60 times a second. */
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

test('keys are drawn at once, those that arrive together once, and other changes wait for the next turn of the screen', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  const input = Object.assign(new PassThrough(), { setRawMode: () => undefined, isTTY: true });
  const written: string[] = [];
  const output = { columns: 80, rows: 24, on: () => undefined, off: () => undefined };
  const stream = { ...output, write: (text: string) => void written.push(text) };
  const terminal = new DrawnTerminal(input as never, stream as never, false, source);
  onTestFinished(() => terminal.close());
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
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
