/**
 * The work to judge one command line. Rule: its length limits the work, whatever the line contains. The tests count what
 * is read or compared, and no time.
 */
import { expect, it } from 'vitest';
import { innerLinesOf } from '../../src/permissions/readings/innerCommands.ts';
import { readShellLine } from '../../src/permissions/shellSyntax.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();

/** The characters of all texts that are read for the commands of a line. */
function charactersRead(line: string): number {
  const texts = [...innerLinesOf(readShellLine(line)).values()].flat();
  return texts.flatMap(({ commands }) => commands).reduce((sum, { source }) => sum + source.length, 0);
}

it.each([
  ['eval in eval', 'eval '.repeat(16)],
  ['shells in shells', `${'sh -c '.repeat(10)}"eval eval a"`],
  ['shells in heredocs', 'sh <<A\nsh "a b"\nA\n'.repeat(20)],
])('the texts of a command are read once: %s', (_, line) => {
  expect(charactersRead(line)).toBeLessThan(20 * line.length);
});

const aliased = Array.from({ length: 60 }, (_, at) => `-c alias.a${at}=b${at}`).join(' ');
it.each([
  ['aliases of git', `git x ${aliased}`],
  ['one alias', `alias a='${'b '.repeat(1_000)}'\n${'a;'.repeat(60)}`],
])('the texts of a line are read up to a limit, and the line needs approval: %s', async (_, command) => {
  expect(charactersRead(command)).toBeLessThan(200_000);
  const { outcome, parts } = await explain({ mode: 'bypass', deny: ['bash(rm *)'] }, 'Bash', { command }, ws);
  expect(outcome).toBe('ask');
  expect(parts).toContainEqual(expect.objectContaining({ by: 'doubt: a text in it cannot be parsed' }));
});
