/** The places where git finds a repository and its parts, and those that make a reading command ask first. */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { gitDoubt, ownsRepository } from '../../src/permissions/readings/gitRepository.ts';

async function directory(): Promise<string> {
  const place = await realpath(await mkdtemp(join(tmpdir(), 'runchart-places-')));
  onTestFinished(() => rm(place, { recursive: true, force: true }));
  return place;
}

/** A repository that reading git commands may use without approval. */
async function repository(): Promise<string> {
  const root = await directory();
  for (const name of ['hooks', 'objects/info', 'objects/ab', 'refs/heads', 'logs'])
    await mkdir(join(root, '.git', name), { recursive: true });
  await writeFile(join(root, '.git/HEAD'), 'ref: refs/heads/main\n');
  return root;
}

/** A working tree of `git worktree`: its directory, its own part of the repository, and the shared one. */
async function workingTree(among = 'worktrees') {
  const home = await directory();
  const [tree, common] = [join(home, 'tree'), join(home, 'main/.git')];
  const own = join(common, among, 'w');
  for (const path of [tree, own, join(common, 'objects'), join(common, 'refs')]) await mkdir(path, { recursive: true });
  await writeFile(join(own, 'HEAD'), 'ref: refs/heads/w\n');
  await writeFile(join(own, 'commondir'), '../..\n');
  await writeFile(join(own, 'gitdir'), `${join(tree, '.git')}\n`);
  await writeFile(join(tree, '.git'), `gitdir: ${own}\n`);
  return { tree, own, common };
}

describe('a directory without .git', () => {
  it('is a repository itself if it has HEAD and objects', async () => {
    const root = await directory();
    await mkdir(join(root, 'objects'));
    expect(await gitDoubt(root)).toBeUndefined();
    await mkdir(join(root, 'HEAD'));
    expect(await gitDoubt(root)).toBeUndefined();
    await rm(join(root, 'HEAD'), { recursive: true });
    await writeFile(join(root, 'HEAD'), '');
    expect(await gitDoubt(root)).toBe('the directory may be a repository itself');
    await rm(join(root, 'objects'), { recursive: true });
    await writeFile(join(root, 'objects'), '');
    expect(await gitDoubt(root)).toBeUndefined();
  });

  it('belongs to a repository of any directory above, even if .git is a file there', async () => {
    const root = await directory();
    await mkdir(join(root, 'a/b'), { recursive: true });
    expect(await gitDoubt(join(root, 'a/b'))).toBeUndefined();
    await writeFile(join(root, '.git'), 'gitdir: elsewhere\n');
    expect(await gitDoubt(join(root, 'a/b'))).toBe('the repository begins above the working directory');
    expect(await ownsRepository(root)).toBe(false);
  });
});

describe('a repository', () => {
  it.each(['refs/heads/x', 'objects/xy', 'objects/info/x', 'logs/x', 'config', 'packed-refs'])(
    'has no link in a place that git looks through: %s',
    async (path) => {
      const root = await repository();
      expect([await gitDoubt(root), await ownsRepository(root)]).toEqual([undefined, true]);
      await symlink('/nowhere', join(root, '.git', path));
      expect(await gitDoubt(root)).toBe(`the repository has the link ${path}`);
    },
  );

  it('may have links among its loose objects, which git compares with their hashes, and for its hooks', async () => {
    const root = await repository();
    await symlink('/nowhere', join(root, '.git/objects/ab/x'));
    await rm(join(root, '.git/hooks'), { recursive: true });
    await symlink('../made/hooks', join(root, '.git/hooks'));
    expect(await gitDoubt(root)).toBeUndefined();
    await mkdir(join(root, 'made/hooks'), { recursive: true });
    await writeFile(join(root, 'made/hooks/query-watchman'), '');
    expect(await gitDoubt(root)).toBe('the repository has the hook query-watchman');
  });

  it('has settings of at most 262,144 bytes', async () => {
    const root = await repository();
    const settings = '[core]\n\tbare = false\n';
    const comment = `; ${'x'.repeat(262_144 - settings.length - 3)}\n`;
    await writeFile(join(root, '.git/config'), settings + comment);
    expect(await gitDoubt(root)).toBeUndefined();
    await writeFile(join(root, '.git/config'), `${settings}${comment}#`);
    expect(await gitDoubt(root)).toBe("the repository's settings cannot be read");
  });

  it.each([
    ['# a comment \\\n[core]\n; fsmonitor = x\n', undefined],
    ['[core]\n\tbare = fal\\\nse\n', "the repository's settings cannot be read"],
    ['bare = false\n', "the repository's settings cannot be read"],
    ['[core] bare = false\n', "the repository's settings cannot be read"],
    ['[core]\n\thooksPath\n', 'the repository has hooks at an unclear place'],
    ['[core]\r\n\tbare\r\n', undefined],
    ['[remote "a]\\"b"]\n\turl = x\n', undefined],
    ['[remote "a"]\n\tvcs = x\n', "the repository's settings hold remote.vcs"],
  ])('with the settings %j gives the doubt: %s', async (settings, doubt) => {
    const root = await repository();
    await writeFile(join(root, '.git/config'), settings);
    expect(await gitDoubt(root)).toBe(doubt);
  });

  it.each(['ref:  refs/x', '0123456789abcdef0123456789abcdef01234567', 'ref: x', 'refs/heads/x', '012'])(
    'is whole only with a HEAD that names a branch or a commit: %s',
    async (head) => {
      const root = await repository();
      await writeFile(join(root, '.git/HEAD'), `${head}\n`);
      const isWhole = /^(ref: +refs\/|[0-9a-f]{40})/.test(head);
      expect(await gitDoubt(root)).toBe(isWhole ? undefined : 'the repository is not whole');
    },
  );
});

describe('a working tree of git worktree', () => {
  it('has no link in its own part or in the shared one', async () => {
    for (const part of ['own', 'common'] as const) {
      const tree = await workingTree();
      expect(await gitDoubt(tree.tree)).toBeUndefined();
      await symlink('/nowhere', join(tree[part], 'logs'));
      expect(await gitDoubt(tree.tree), part).toMatch(/^the repository has the link (worktrees\/w\/)?logs$/);
    }
  });

  it('has an index of its own', async () => {
    const { tree, own, common } = await workingTree();
    await writeFile(join(common, 'index'), 'not read');
    expect(await gitDoubt(tree)).toBeUndefined();
    await writeFile(join(own, 'index'), 'not an index');
    expect(await gitDoubt(tree)).toBe("the repository's index cannot be read");
  });

  it('is among the worktrees of its repository', async () => {
    expect(await gitDoubt((await workingTree('others')).tree)).toBe('the repository lies elsewhere');
  });
});
