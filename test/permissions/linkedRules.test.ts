/**
 * Rules about files that are reached by another spelling. Rule: a deny or ask rule applies if the spelling or the real
 * path matches, an allow rule only if both do. The rule is the same for each list, tool and way to the file.
 */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { PermissionOptions } from '../../src/node.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
beforeAll(async () => {
  await mkdir(join(ws, 'real'));
  await writeFile(join(ws, 'real/f'), 'f');
  await symlink('real', join(ws, 'alias'));
  await symlink('real/f', join(ws, 'direct'));
});

/** The path of a call, and whether the patterns name its spelling, its real path, both or neither. */
const WAYS = [
  ['alias/f', './alias/**', 'spelling'],
  ['alias/f', './real/**', 'real'],
  ['alias/f', '**/f', 'both'],
  ['alias/f', './docs/**', 'neither'],
  ['direct', './direct', 'spelling'],
  ['direct', './real/f', 'real'],
  ['direct', './docs/**', 'neither'],
  ['real/f', './real/f', 'both'],
  ['real/f', './alias/f', 'neither'],
] as const;
const CALLS = [
  ['Read', 'read', (file_path: string) => ({ file_path })],
  ['Edit', 'edit', (file_path: string) => ({ file_path, old_string: 'f', new_string: 'g' })],
  ['Write', 'edit', (file_path: string) => ({ file_path, content: 'g' })],
  ['Grep', 'read', (path: string) => ({ path, pattern: 'f' })],
] as const;
const LISTS = ['deny', 'ask', 'allow'] as const;
const table = LISTS.flatMap((list) =>
  CALLS.flatMap(([tool, rule, args]) =>
    WAYS.map(([path, pattern, names]) => ({ list, tool, path, rule: `${rule}(${pattern})`, names, args })),
  ),
);

describe('a rule about a file and the ways to it', () => {
  it.each(table)('$list $rule, $tool of $path: it names $names', async ({ list, tool, path, rule, names, args }) => {
    const options: PermissionOptions = { [list]: [rule] };
    const { outcome, by } = await explain(options, tool, args(path), ws);
    const applies = list === 'allow' ? names === 'both' : names !== 'neither';
    const without = await explain({}, tool, args(path), ws);
    expect([outcome, by]).toEqual(applies ? [list, `${list} ${rule}`] : [without.outcome, without.by]);
  });

  const commands = LISTS.filter((list) => list !== 'allow').flatMap((list) =>
    WAYS.flatMap(([path, pattern, names]) =>
      [`cat ${path}`, `wc -l < ${path}`].map((command) => ({ list, command, rule: `read(${pattern})`, names })),
    ),
  );
  it.each(commands)('$list $rule, the command $command: it names $names', async ({ list, command, rule, names }) => {
    const { outcome } = await explain({ [list]: [rule] }, 'Bash', { command }, ws);
    expect(outcome).toBe(names === 'neither' ? 'allow' : list);
  });
});

describe('a pattern that matches nothing now', () => {
  const MAKES = { allow: ['bash(mkdir *)', 'bash(cp *)'] };
  // An earlier command of the line may create a file that the pattern matches.
  const OUTSIDE = [
    'q*/../../ws-evil/s',
    'q*/q*/../../../ws-evil/s',
    './q*/../../ws-evil/s',
    'sub/q*/../../../ws-evil/s',
    'q?/../../ws-evil/s',
    '[q]/../../ws-evil/s',
  ];
  it.each(OUTSIDE)('cat %s needs approval, alone and after a command that makes a match', async (pattern) => {
    for (const command of [`cat ${pattern}`, `mkdir q1 && cat ${pattern}`, `cat < ${pattern}`])
      expect([command, (await explain(MAKES, 'Bash', { command }, ws)).outcome]).toEqual([command, 'ask']);
  });

  it.each(['q*', 'q*/x', './q*/./x', 'sub/q*'])('cat %s does not', async (pattern) => {
    expect((await explain(MAKES, 'Bash', { command: `cat ${pattern}` }, ws)).outcome).toBe('allow');
  });
});

describe('a rule whose pattern names a directory', () => {
  const COMMANDS = ['ls real', 'cat real/f', 'cp -r real copy', 'mv real copy', 'rm -r real', 'tar cf x.tar real'];
  const table = ['real', 'real/', './real', './real/', 'real/**', '**/real/'].flatMap((pattern) =>
    (['deny', 'ask'] as const).map((list) => ({ list, rule: pattern })),
  );
  it.each(table)('$list $rule holds for the files in it', async ({ list, rule }) => {
    const { outcome } = await explain({ [list]: [`read(${rule})`] }, 'Read', { file_path: 'real/f' }, ws);
    expect(outcome).toBe(list);
  });
  it.each(table.filter(({ rule }) => !rule.endsWith('**')))(
    '$list $rule holds for the directory itself',
    async (row) => {
      const options: PermissionOptions = { [row.list]: [`read(${row.rule})`, `edit(${row.rule})`], allow: ['bash(*)'] };
      const outcomes = await Promise.all(
        COMMANDS.map(async (command) => [command, (await explain(options, 'Bash', { command }, ws)).outcome]),
      );
      expect(outcomes).toEqual(COMMANDS.map((command) => [command, row.list]));
      expect((await explain(options, 'Ls', { path: 'real' }, ws)).outcome).toBe(row.list);
    },
  );
});

describe('a search below a link to a directory', () => {
  it.each(['deny', 'ask'] as const)('needs approval if a %s rule names files by the link', async (list) => {
    const outcome = async (path: string) =>
      (await explain({ [list]: ['read(./alias/*)'] }, 'Grep', { path, pattern: 'f' }, ws)).outcome;
    expect([await outcome('alias'), await outcome('./alias/'), await outcome('docs')]).toEqual(['ask', 'ask', 'allow']);
  });

  it.each(['grep -r f alias', 'grep -rn f ./alias', 'cp -r alias copy', 'tar cf x.tar alias'])(
    'also for the command %s',
    async (command) => {
      const options: PermissionOptions = { deny: ['read(./alias/*)'], allow: ['bash'] };
      expect((await explain(options, 'Bash', { command }, ws)).outcome).toBe('ask');
      expect((await explain({ ...options, deny: [] }, 'Bash', { command }, ws)).outcome).toBe('allow');
    },
  );
});
