/**
 * The work to judge one command line. Rule: its length limits the work, whatever the line contains. The tests count what
 * is read or compared, and no time.
 */
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { strictForms } from '../../src/permissions/commandForms.ts';
import { placesOf } from '../../src/permissions/linePlaces.ts';
import { surroundingsOf } from '../../src/permissions/pathRules.ts';
import { gitTextsOf } from '../../src/permissions/readings/gitSettings.ts';
import { innerLinesOf } from '../../src/permissions/readings/innerCommands.ts';
import { shellTextsOf } from '../../src/permissions/readings/programTexts.ts';
import { parseRule } from '../../src/permissions/rules.ts';
import { readShellLine, type SimpleCommand } from '../../src/permissions/shellSyntax.ts';
import { globMatches } from '../../src/permissions/wordPaths.ts';
import { startsTooMany, unwrapped } from '../../src/permissions/wrappers.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
const long = join(ws, 'long');
await mkdir(long);
await writeFile(join(long, 'abcdefghij'.repeat(4)), '');

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

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const nested = (head: string, depth: number): string =>
  Array.from({ length: depth }).reduce<string>((text) => `${head} ${quoted(text)}`, 'rm x');

it.each([
  ['bash -c', 5, 'deny'],
  ['bash -c', 6, 'ask'],
  ['bash -c', 8, 'ask'],
  ['eval', 8, 'ask'],
])('a denied command in texts of %s, %d deep: %s', async (head, depth, expected) => {
  const options = { mode: 'bypass' as const, deny: ['bash(rm *)'] };
  expect((await explain(options, 'Bash', { command: nested(head, depth) }, ws)).outcome).toBe(expected);
});

it('an alias that contains its own name needs no approval', async () => {
  const options = { mode: 'bypass' as const, deny: ['bash(rm *)'] };
  const command = "alias ls='ls --all'\nls";
  expect((await explain(options, 'Bash', { command }, ws)).outcome).toBe('allow');
});

it('the texts of git in many readings are collected up to a limit, and the line needs approval', async () => {
  const line = `env ${"-u git -c alias.x='!a b' ".repeat(60)}`;
  const [command] = readShellLine(line).commands;
  if (!command) throw new Error('the line has no command');
  expect(gitTextsOf(command, 40_000).join('').length).toBeLessThan(50_000);
  expect((await explain({ mode: 'bypass', deny: ['bash(rm *)'] }, 'Bash', { command: line }, ws)).outcome).toBe('ask');
});

/** How often `read` reads the text of a word, for a line with this many words. */
function wordReads(
  line: (count: number) => string,
  count: number,
  read: (command: SimpleCommand) => unknown = readAll,
): number {
  let reads = 0;
  const [command] = readShellLine(line(count)).commands;
  if (!command) throw new Error('the line has no command');
  const words = command.words.map((word) => ({
    ...word,
    get value() {
      reads += 1;
      return word.value;
    },
  }));
  read({ ...command, words });
  return reads;
}

function readAll(command: SimpleCommand): void {
  strictForms(command);
  shellTextsOf(command);
  unwrapped(command.words);
}

it.each([
  ['variables of env', (count: number) => `env ${'a=b '.repeat(count)}`],
  ['words of docker', (count: number) => `docker run ${'a '.repeat(count)}`],
  ['commands of find', (count: number) => `find . ${'-exec a \\; '.repeat(count)}`],
  ['options of git', (count: number) => `git ${'-P '.repeat(count)}`],
  ['wrappers', (count: number) => 'timeout 5 '.repeat(count)],
])('four times as many words need about four times as many steps: %s', (_, line) => {
  expect(wordReads(line, 600)).toBeLessThan(6 * wordReads(line, 150));
});

it('the runs in a run of docker are found in steps that grow with the words', () => {
  const line = (count: number): string => 'docker run '.repeat(count);
  const read = ({ words }: SimpleCommand): boolean => startsTooMany(words);
  expect(wordReads(line, 600, read)).toBeLessThan(6 * wordReads(line, 150, read));
});

it('the texts of a command are compared with the rules once, also where a program is in it many times', () => {
  const [command] = readShellLine(`env ${'-u git -u b '.repeat(60)}`).commands;
  expect(command && strictForms(command).length).toBeLessThan(1_000);
});

it.each(['tar c', 'cp -r', 'grep -r a'])('a directory that %s names again is searched once', async (command) => {
  const around = await surroundingsOf(ws);
  const [rule] = parseRule('read(absent)');
  if (rule?.subject.kind !== 'path') throw new Error('the rule has no path');
  const { pattern } = rule.subject;
  let compared = 0;
  const matches: typeof pattern.matches = (...path) => {
    compared += 1;
    return pattern.matches(...path);
  };
  const hiding = [{ ...rule, subject: { kind: 'path' as const, pattern: { ...pattern, matches } } }];
  await placesOf(readShellLine(`${command} ${'. '.repeat(300)}`), { inner: [], around, hiding });
  expect(compared).toBeGreaterThan(0);
  expect(compared).toBeLessThan(200);
});

describe('a glob with many stars', () => {
  const many = '*?'.repeat(14);
  it.each([
    [`${many}`, ['abcdefghij'.repeat(4)]],
    [`${many}!`, []],
    [`*${'b*'.repeat(3)}J`, ['abcdefghij'.repeat(4)]],
    [`${'b*'.repeat(5)}`, []],
  ])('%s is compared with a name of 40 characters in one pass', async (glob, names) => {
    const { paths } = await globMatches(glob, long, await surroundingsOf(long));
    expect(paths.map(({ written }) => basename(written))).toEqual(names);
  });

  it('may match the name in a rule', async () => {
    const options = { mode: 'bypass' as const, deny: ['read(abcdefghijabcdefghijabcdefghij)'] };
    const { outcome } = await explain(options, 'Bash', { command: `rm ${many}!` }, long);
    expect(outcome).toBe('ask');
  });
});

it.each([
  ['a*', 'A.ts', true],
  ['*.TS', 'a.ts', true],
  ['a*a', 'a', false],
  ['*a*b*', 'xbxa', false],
  ['*a*b*', 'xaxb', true],
  ['a?c', 'abc', true],
  ['a?', 'abc', false],
  ['?', 'é', true],
  ['?', '😀', true],
  ['*😀?', 'a😀b', true],
  ['a.c*', 'abcd', false],
  ['a[bc]d', 'axyz', true],
  ['a+*', 'aa', false],
])('the glob %s and the name %s: %s', async (glob, name, isMatch) => {
  const directory = await mkdtemp(join(ws, 'one-'));
  await writeFile(join(directory, name), '');
  const { paths } = await globMatches(glob, directory, await surroundingsOf(directory));
  expect(paths.length).toBe(isMatch ? 1 : 0);
});
