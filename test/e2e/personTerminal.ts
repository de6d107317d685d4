/**
 * The program on a pseudo-terminal as a person uses it: keys go in, and a screen of 80 columns is read. Invariant: it waits for the shown
 * text, never for a time.
 */
import { execFileSync } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'vitest';
import { QUESTION_MS } from '../../src/cli/interactive/prompt.machine.ts';
import { TerminalScreen } from '../support/terminalScreen.ts';
import { startOnTerminal } from './cli.ts';
import type { Place } from './runDirectory.ts';

export const ESCAPE = '\u001b';
export const CTRL_C = '\u0003';
export const CTRL_D = '\u0004';

/** Starts `runchart` on a terminal, with its model. */
export function personTerminal(
  { cwd, env }: Pick<Place, 'cwd' | 'env'>,
  options: readonly string[] = [],
  more: Record<string, string> = {},
) {
  const program = startOnTerminal(['-m', 'm1', ...options], { cwd, env: { ...env, ...more } });
  const screen = new TerminalScreen(80);
  let taken = 0;
  const text = (): string => {
    screen.write(program.stdout.slice(taken));
    taken = program.stdout.length;
    return screen.text;
  };
  const poll = (read: () => string, interval: number, wanted: string | RegExp): Promise<void> =>
    expect.poll(read, { interval }).toMatch(wanted);
  return {
    program,
    text,
    type: (keys: string): void => void program.process.stdin?.write(keys),
    /** The screen contains it. */
    shows: (wanted: string | RegExp): Promise<void> => poll(text, 20, wanted),
    /** Answers the shown question, and no later one, until the answer counts: a slow machine shows it late. */
    answers: async (keys: string, wanted: string | RegExp): Promise<void> => {
      const questionsIn = (shown: string): number => shown.split(' asks to ').length;
      const asked = questionsIn(text());
      const answered = (): string => {
        const now = text();
        if (questionsIn(now) === asked && /\n┃ (run it|carry it out)\?[^\n]*$/.test(now))
          program.process.stdin?.write(keys);
        return now;
      };
      await setTimeout(QUESTION_MS);
      await poll(answered, 3 * QUESTION_MS, wanted);
    },
    /** Nothing is running: the input line is at the bottom. */
    idle: (wanted: string): Promise<void> => poll(text, 20, new RegExp(`${wanted}[^\\n]*\\n>( .*)?$`)),
    /** The process id of the program, which is the child of the process that gives it a terminal. */
    programId: (): number =>
      Number(execFileSync('pgrep', ['-P', String(program.process.pid)], { encoding: 'utf8' }).split('\n')[0]),
  };
}
