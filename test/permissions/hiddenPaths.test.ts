/**
 * The files that rules hide from a command in the sandbox, also outside if a rule names a place, and with parent
 * directories.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { hiddenPaths } from '../../src/permissions/hiddenPaths.ts';
import { type PathPattern, pathPattern, surroundingsOf } from '../../src/permissions/pathRules.ts';
import { workspace } from './permissionWorkspace.ts';

const ws = await workspace();
const evil = join(ws, '..', 'ws-evil');
await mkdir(join(ws, 'conf/keys/old'), { recursive: true });
await writeFile(join(ws, 'conf/keys/a'), 'a');
await writeFile(join(ws, 'conf/b'), 'b');
const hidden = async (...specs: string[]) =>
  hiddenPaths(
    specs.map((spec) => pathPattern(spec) as PathPattern),
    await surroundingsOf(ws),
  );

it('every match of a pattern below the working directory is hidden, and the directories that the pattern names above it', async () => {
  expect(await hidden('./conf/keys/**')).toEqual({
    hide: expect.toSatisfy(
      (paths: string[]) => [...paths].sort().join() === [join(ws, 'conf/keys/a'), join(ws, 'conf/keys/old')].join(),
    ),
    hold: [join(ws, 'conf'), join(ws, 'conf/keys')],
  });
  expect(await hidden('**/.env')).toEqual({
    hide: expect.arrayContaining([join(ws, '.env'), join(ws, 'sub/.env')]),
    hold: [],
  });
});

it('every match outside is hidden: a file, a directory or files below one', async () => {
  expect(await hidden(`/${evil}/s`)).toEqual({ hide: [join(evil, 's').replace('/ws/..', '')], hold: [] });
  expect(await hidden(`/${evil}/*`)).toEqual({ hide: [join(evil, 's').replace('/ws/..', '')], hold: [] });
});

it('nothing is hidden without a pattern', async () => {
  expect(await hidden()).toEqual({ hide: [], hold: [] });
});
