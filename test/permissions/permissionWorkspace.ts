/** A working directory with a sibling, for tests of rules. Removed at the end of the test file. */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { Json } from '../../src/index.ts';
import { type PermissionOptions, type PermissionVerdict, permissions } from '../../src/node.ts';

/** `ws` with a few files, `ws-evil` beside it, and a link from one to the other. */
export async function workspace(): Promise<string> {
  const place = await realpath(await mkdtemp(join(tmpdir(), 'runchart-permissions-')));
  afterAll(() => rm(place, { recursive: true, force: true }));
  const ws = join(place, 'ws');
  await mkdir(join(ws, 'src'), { recursive: true });
  await mkdir(join(ws, 'docs'));
  await mkdir(join(ws, 'sub'));
  for (const name of ['hooks', 'objects', 'refs']) await mkdir(join(ws, '.git', name), { recursive: true });
  await writeFile(join(ws, '.git/HEAD'), 'ref: refs/heads/main\n');
  await mkdir(join(place, 'ws-evil'));
  await writeFile(join(place, 'ws-evil/s'), 'secret');
  await writeFile(join(ws, 'src/a.ts'), 'a');
  await writeFile(join(ws, 'package.json'), '{}');
  await writeFile(join(ws, 'README.md'), 'r');
  await writeFile(join(ws, '.env'), 'KEY=1');
  await writeFile(join(ws, 'sub/.env'), 'KEY=2');
  await symlink(join(place, 'ws-evil'), join(ws, 'd'));
  await symlink(join(ws, '.env'), join(ws, 'second'));
  await symlink('second', join(ws, 'first'));
  await symlink(join(place, 'ws-evil/new'), join(ws, 'dangling'));
  return ws;
}

export const explain = (
  options: PermissionOptions,
  tool: string,
  args: Json,
  cwd: string,
): Promise<PermissionVerdict> => permissions(options).explain(tool, args, cwd);

export const HOSTILE_RULES: PermissionOptions = {
  allow: ['bash(git status *)', 'bash(git log *)', 'bash(npm test *)', 'bash(echo *)', 'bash(find *)', 'read(./**)'],
  ask: ['bash(git push *)'],
  deny: ['bash(rm *)', 'bash(curl *)', 'read(**/.env)'],
};
