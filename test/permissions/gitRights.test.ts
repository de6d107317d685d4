/** A repository of a foreign author whose files and directories deny access: git skips it, or follows files that nobody can list. */
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import type { PermissionVerdict } from '../../src/node.ts';
import { explain } from './permissionWorkspace.ts';

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
/** Nothing is denied to root. */
beforeAll(() => {
  if (isRoot) process.seteuid?.(NOBODY);
});
afterAll(() => {
  if (isRoot) process.seteuid?.(0);
});

async function repository(): Promise<string> {
  const ws = await realpath(await mkdtemp(join(tmpdir(), 'runchart-rights-')));
  const git = join(ws, '.git');
  for (const name of ['hooks', 'objects/info', 'refs/heads']) await mkdir(join(git, name), { recursive: true });
  await writeFile(join(git, 'HEAD'), 'ref: refs/heads/main\n');
  await writeFile(join(git, 'config'), '[core]\n\tbare = false\n');
  return ws;
}

/** The verdict on a command that reads, while the path has these rights. */
async function judged(ws: string, path: string, rights: number): Promise<PermissionVerdict> {
  const place = join(ws, '.git', path);
  onTestFinished(async () => {
    await chmod(place, 0o700);
    await rm(ws, { recursive: true });
  });
  await chmod(place, rights);
  return explain({}, 'Bash', { command: 'git status' }, ws);
}

it('git runs without approval if its own files and directories can be read', async () => {
  expect((await judged(await repository(), 'refs', 0o500)).outcome).toBe('allow');
});

it.each([
  ['refs', 'cannot be opened', 0o000],
  ['refs', 'can only be listed', 0o600],
  ['objects', 'cannot be opened', 0o000],
  ['objects', 'can only be listed', 0o600],
  ['HEAD', 'cannot be opened', 0o000],
])('git requires approval if %s %s, because git skips such a repository', async (path, _, rights) => {
  const { outcome, parts } = await judged(await repository(), path, rights);
  expect([outcome, parts[0]?.why]).toEqual(['ask', 'the repository is not whole']);
});

it.each(['refs', 'refs/heads', 'objects/info'])(
  'git requires approval if %s cannot be listed, because a link in it would be followed',
  async (path) => {
    const ws = await repository();
    await symlink('/etc/passwd', join(ws, '.git', path, 'x'));
    const { outcome, parts } = await judged(ws, path, 0o100);
    expect([outcome, parts[0]?.why]).toEqual(['ask', 'the repository has a directory that cannot be listed']);
  },
);

it('git requires approval if a hook runs when git reads, in a directory that cannot be listed too', async () => {
  const ws = await repository();
  await writeFile(join(ws, '.git/hooks/post-index-change'), '#!/bin/sh\n');
  const { outcome, parts } = await judged(ws, 'hooks', 0o100);
  expect([outcome, parts[0]?.why]).toEqual(['ask', 'the repository has the hook post-index-change']);
});

it.each(['config', 'index'])('git requires approval if the %s cannot be read', async (name) => {
  const ws = await repository();
  await writeFile(join(ws, '.git/index'), '');
  const { outcome, parts } = await judged(ws, name, 0o000);
  const what = name === 'config' ? 'settings' : 'index';
  expect([outcome, parts[0]?.why]).toEqual(['ask', `the repository's ${what} cannot be read`]);
});
