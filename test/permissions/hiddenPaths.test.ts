/**
 * The files that rules hide from a command in the sandbox, also outside if a rule names a place, and with parent
 * directories.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hiddenPaths } from '../../src/permissions/hiding/hiddenPaths.ts';
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
  expect(await hidden('./conf/keys')).toEqual({ hide: [join(ws, 'conf/keys')], hold: [join(ws, 'conf')] });
  expect(await hidden('**/.env')).toEqual({
    hide: expect.arrayContaining([join(ws, '.env'), join(ws, 'sub/.env')]),
    hold: [],
  });
});

it('every match outside is hidden: a file, a directory or files below one', async () => {
  expect(await hidden(`/${evil}/s`)).toEqual({ hide: [join(evil, 's').replace('/ws/..', '')], hold: [] });
  expect(await hidden(`/${evil}/*`)).toEqual({ hide: [join(evil, 's').replace('/ws/..', '')], hold: [] });
});

describe('a rule that names a directory above the working directory', () => {
  const base = join(ws, '..');
  const below = async (...specs: string[]): Promise<string[]> => {
    const found = await hidden(...specs);
    return (found?.hide ?? []).map((path) => path.slice(base.length + 1)).sort();
  };

  it('hides everything beside the working directory, and what it contains, but not the way to it', async () => {
    const inside = ['.env', '.git', 'README.md', 'conf', 'docs', 'package.json', 'src', 'sub'].map(
      (name) => `ws/${name}`,
    );
    for (const spec of [`/${base}/**`, `/${base}`, `/${base}/*`]) {
      const paths = await below(spec);
      expect([spec, paths.filter((path) => !path.includes('search-'))]).toEqual([spec, [...inside, 'ws-evil'].sort()]);
    }
  });

  it('hides the matches beside the working directory, at the depth of the pattern', async () => {
    await mkdir(join(base, 'other/deep/er'), { recursive: true });
    for (const name of ['other/x.key', 'other/deep/x.key', 'other/deep/er/x.key'])
      await writeFile(join(base, name), 'k');
    expect(await below(`/${base}/*/x.key`)).toEqual(['other/x.key']);
    expect(await below(`/${base}/**/x.key`)).toEqual(['other/deep/er/x.key', 'other/deep/x.key', 'other/x.key']);
  });

  it('loses nothing of the working directory if there is too much beside it', async () => {
    for (let at = 0; at < 20; at += 1) await writeFile(join(base, `many-${at}`), '');
    const root = await surroundingsOf(ws);
    const pattern = pathPattern(`/${base}/**`) as PathPattern;
    const all = await hiddenPaths([pattern], root);
    const found = await hiddenPaths([pattern], root, { entries: 200_000, hidden: 25 });
    expect(all?.hide.length).toBeGreaterThan(25);
    expect(found?.hide).toEqual(all?.hide.slice(0, found?.hide.length));
    expect(found?.hide).toEqual(expect.arrayContaining([join(ws, 'README.md'), join(ws, '.env')]));
  });
});

it.each([
  ['as many entries as are searched', { entries: 6, hidden: 10 }, 4],
  ['one entry more than is searched', { entries: 5, hidden: 10 }, undefined],
  ['as many places as are hidden', { entries: 100, hidden: 4 }, 4],
  ['one place more than is hidden', { entries: 100, hidden: 3 }, undefined],
])('with %s, a search is complete or has no result', async (_, most, count) => {
  const root = join(ws, `search-${most.entries}-${most.hidden}`);
  await mkdir(join(root, 'below'), { recursive: true });
  // Six entries, one of them in the directory below.
  for (const name of ['a.key', 'b.key', 'c.key', 'below/d.key', 'e']) await writeFile(join(root, name), name);
  const found = await hiddenPaths([pathPattern('**/*.key') as PathPattern], await surroundingsOf(root), most);
  expect(found?.hide.length).toBe(count);
});

it('nothing is hidden without a pattern', async () => {
  expect(await hidden()).toEqual({ hide: [], hold: [] });
});
