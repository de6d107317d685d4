/** Files that are read for a prompt: their places, their limits and their quotation. Also the calls of git. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/index.ts';
import { systemPrompt } from '../../src/node.ts';
import { gitContext } from '../../src/session/gitContext.ts';
import { namedFile, ownFileIn, treeOf } from '../../src/session/projectFiles.ts';
import { bench } from '../support/agentBench.ts';
import { temporaryFolder } from '../support/temporaryFolder.ts';

function folder(files: { [path: string]: string | Buffer } = {}) {
  const root = temporaryFolder();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}

/** The system prompt of a model in this directory. */
async function promptIn(cwd: string, tools: readonly string[] = []): Promise<string> {
  const made = await bench({
    ...{ replies: ['a'], cwd, plugins: [systemPrompt({ git: false, template: 'T' })] },
    tools: tools.map((name) => defineTool({ name, description: '', parameters: z.object({}), execute: () => '' })),
  });
  await made.conversation.send('hi').result;
  await made.agent.close();
  return made.model.calls[0]?.system ?? '';
}

describe('a file that is read', () => {
  it.each([
    ['abc', 2, 'ab', true],
    ['abc', 3, 'abc', false],
    ['abc', 4, 'abc', false],
    ['', 3, '', false],
    ['aé', 2, 'a', true],
    ['aé', 3, 'aé', false],
    ['a\u{1f600}b', 4, 'a', true],
    ['a\u{1f600}b', 5, 'a\u{1f600}', true],
  ])('%j, with a limit of %i bytes, is %j, cut: %s', async (content, most, text, cut) => {
    const path = join(folder({ a: content }), 'a');
    expect(await namedFile(path, most)).toEqual({ path, text, cut });
  });

  it('a broken character of the file stays broken', async () => {
    const path = join(folder({ a: Buffer.from([0x61, 0xc3]) }), 'a');
    expect(await namedFile(path, 10)).toEqual({ path, text: 'a\ufffd', cut: false });
  });

  it('above a working directory only files of the user or root are read', async () => {
    const root = folder({ a: 'mine' });
    const { uid } = process.getuid ? { uid: process.getuid() } : { uid: 0 };
    const as = async (user: number, directory: string, name: string) => {
      const getuid = vi.spyOn(process, 'getuid').mockReturnValue(user);
      const found = await ownFileIn(directory, name, 10_000);
      getuid.mockRestore();
      return found !== undefined;
    };
    expect(await as(uid, root, 'a')).toBe(true);
    expect(await as(uid + 1, root, 'a')).toBe(uid === 0);
    expect(await as(uid + 1, '/etc', 'passwd')).toBe(true);
  });

  it.skipIf(!existsSync('/proc/self/fd'))('it is closed, whatever it is', async () => {
    const root = folder({ text: 'a', binary: 'a\0b' });
    const open = (): number => readdirSync('/proc/self/fd').length;
    const before = open();
    for (let times = 0; times < 30; times++) {
      for (const name of ['text', 'binary', '.']) await namedFile(join(root, name), 10);
    }
    expect(open() - before).toBeLessThan(15);
  });
});

describe('the directories of a project', () => {
  it('they end at the nearest root of a repository, whose mark is a folder or, in a worktree, a file', async () => {
    const root = folder({
      'shop/.git/HEAD': '',
      'shop/lib/.git': 'gitdir: ../.git/modules/lib',
      'shop/lib/src/a/b': '',
    });
    const tree = (path: string) => treeOf(join(root, path));
    const lib = join(root, 'shop/lib');
    expect(await tree('shop/lib/src/a')).toEqual({
      ...{ repository: lib, above: [] },
      own: [lib, join(lib, 'src'), join(lib, 'src/a')],
    });
    expect((await tree('shop')).own).toEqual([join(root, 'shop')]);
  });

  it('without a repository they are the working directory and those above, the outermost first', async () => {
    const root = folder({ 'a/b/c/x': '' });
    const { repository, own, above } = await treeOf(join(root, 'a/b/c'));
    expect([repository, own]).toEqual([undefined, [join(root, 'a/b/c')]]);
    expect(above.slice(-3)).toEqual([root, join(root, 'a'), join(root, 'a/b')]);
    expect(above[0]).toBe('/');
  });
});

describe('files in a prompt', () => {
  it.each([
    ['a</project-file>b', 'a&lt;/project-file>b'],
    ['a</PROJECT-FILE>b', 'a&lt;/PROJECT-FILE>b'],
    ['a< / project-file >b', 'a&lt; / project-file >b'],
    ['<project-file path="x">', '&lt;project-file path="x">'],
    ['< Project-File>', '&lt; Project-File>'],
    ['<project-files> <b> a < project', '<project-files> <b> a < project'],
    ['a\r\nb\tc\r\n\n', 'a\nb\tc'],
    ['a\u202eb\u2028c\u200bd\u0000'.replace('\u0000', ''), 'abcd'],
  ])('%j are quoted as %j', async (content, quoted) => {
    const system = await promptIn(folder({ 'AGENTS.md': content }));
    expect(system).toContain(`<project-file path="AGENTS.md">\n${quoted}\n</project-file>`);
  });

  it.each(['', ' \n\t\n'])('files with nothing but %j are skipped', async (content) => {
    expect(await promptIn(folder({ 'AGENTS.md': content }))).not.toContain('project-file');
  });

  it('a small file farther away is used even if a nearer one is too large', async () => {
    const large = 'x'.repeat(32_000);
    const path = ['a', 'b', 'c', 'd', 'e'];
    const files = Object.fromEntries(path.map((_, at) => [join(...path.slice(0, at + 1), 'AGENTS.md'), large]));
    const root = folder({ '.git/HEAD': '', 'AGENTS.md': 'small one', ...files });
    const system = await promptIn(join(root, ...path));
    expect(system).toContain('small one');
    expect(system.match(/was left out/g)).toHaveLength(1);
    expect(system).toContain('[../../../../AGENTS.md was left out');
  });
});

it.each([
  [['Read'], []],
  [['Bash'], ['A command begins']],
  [
    ['Read', 'Bash'],
    ['Read files with Read', 'A command begins'],
  ],
  [['Grep', 'Glob'], []],
  [
    ['Grep', 'Bash'],
    ['Search with Grep', 'A command begins'],
  ],
  [['Edit'], ['Change a file with Edit']],
])('for the tools %j a prompt contains only the instructions for them: %j', async (tools, expected) => {
  const system = await promptIn(folder(), tools);
  const all = ['Read files with Read', 'Search with Grep', 'Change a file with Edit', 'A command begins'];
  expect(all.filter((words) => system.includes(words))).toEqual(expected);
});

describe('the output of git', () => {
  const { signal } = new AbortController();
  const git = (cwd: string, ...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd, encoding: 'utf8' });

  it('for a repository: its branch or its commit, its changes and its last five commits, each limited', async () => {
    const cwd = folder({ first: '' });
    git(cwd, 'init', '-q', '-b', 'trunk');
    expect(await gitContext(cwd, signal)).toBe('Branch: trunk\nChanges: \n  ?? first\nLast commits: none');
    for (const at of [1, 2, 3, 4, 5, 6]) git(cwd, 'commit', '-q', '--allow-empty', '-m', `${at}${'w'.repeat(300)}`);
    git(cwd, 'checkout', '-q', '--detach');
    for (let at = 10; at < 49; at++) writeFileSync(join(cwd, `n${at}`), '');
    const most = (await gitContext(cwd, signal))?.split('\n') ?? [];
    expect(most.slice(41, 43)).toEqual(['  ?? n48', expect.stringMatching(/^Last commits: /)]);
    for (let at = 49; at < 51; at++) writeFileSync(join(cwd, `n${at}`), '');
    const lines = (await gitContext(cwd, signal))?.split('\n') ?? [];
    const head = git(cwd, 'rev-parse', '--short', 'HEAD').trim();
    expect(lines[0]).toBe(`Branch: ${head}`);
    expect(lines.slice(2, 42)).toEqual(['  ?? first', ...Array.from({ length: 39 }, (_, at) => `  ?? n${at + 10}`)]);
    expect(lines[42]).toBe('  (and 2 more)');
    expect(lines.slice(44).map((line) => [line.length, line.slice(10, 11)])).toEqual(
      ['6', '5', '4', '3', '2'].map((first) => [202, first]),
    );
    expect(lines[44]).toContain(head);
  });

  it('a long line is cut after a whole character', async () => {
    const cwd = folder();
    git(cwd, 'init', '-q', '-b', 'trunk');
    git(cwd, 'commit', '-q', '--allow-empty', '-m', 'begin');
    const { length } = git(cwd, 'rev-parse', '--short', 'HEAD').trim();
    const subject = `${'w'.repeat(198 - length)}🎉 and more`;
    git(cwd, 'commit', '-q', '--allow-empty', '-m', subject);
    const [, , , last] = (await gitContext(cwd, signal))?.split('\n') ?? [];
    expect(last).toMatch(/^ {2}[0-9a-f]+ w+$/);
  });

  it.each([
    ['filter.f.clean', false],
    ['filter.f.smudge', false],
    ['filter.f.process', false],
    ['filter.two.words.process', false],
    ['core.worktree', false],
    ['core.attributesFile', false],
    ['extensions.worktreeConfig', false],
    ['filter.f.required', true],
    ['core.autocrlf', true],
    ['diff.f.textconv', true],
  ])('with the setting %s, of its own or included, the changes are looked at: %s', async (name, isLookedAt) => {
    for (const place of ['.git/config', 'included']) {
      const cwd = folder({ first: '', '.gitattributes': '* filter=f' });
      git(cwd, 'init', '-q', '-b', 'trunk');
      if (place === 'included') git(cwd, 'config', 'include.path', '../included');
      const value = name === 'core.worktree' ? '..' : name.startsWith('filter') ? 'touch ran; cat' : 'true';
      git(cwd, 'config', '--file', place, name, value);
      const context = await gitContext(cwd, signal);
      expect([place, context?.includes('Changes: not looked at')]).toEqual([place, !isLookedAt]);
      expect(existsSync(join(cwd, 'ran'))).toBe(false);
    }
  });

  it('outside a repository: nothing', async () => {
    expect(await gitContext(folder(), signal)).toBeUndefined();
  });

  /** A program in place of git that returns the test's output. */
  function standIn(script: string): string {
    const bin = folder({ git: `#!/bin/sh\n${script}\n` });
    chmodSync(join(bin, 'git'), 0o755);
    vi.stubEnv('PATH', `${bin}${delimiter}${process.env.PATH}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    return bin;
  }

  it('git runs with the settings of the user, without other variables of this process, and without locks, passwords or network', async () => {
    vi.stubEnv('SECRET_OF_THE_HOST', 'hidden');
    vi.stubEnv('GIT_DIR', '/elsewhere');
    vi.stubEnv('XDG_CONFIG_HOME', '/settings');
    vi.stubEnv('HOME', '/home-of-the-user');
    const bin = standIn('env > "$(dirname "$0")/env"; echo main');
    await gitContext(folder(), signal);
    const env = readFileSync(join(bin, 'env'), 'utf8');
    expect(env).not.toMatch(/SECRET_OF_THE_HOST|GIT_DIR/);
    for (const line of [
      ...[
        'GIT_TERMINAL_PROMPT=0',
        'GIT_OPTIONAL_LOCKS=0',
        'GIT_ALLOW_PROTOCOL=none',
        'GIT_NO_LAZY_FETCH=1',
        'LC_ALL=C',
      ],
      // Git reads the settings of the user, for example which directories are safe.
      ...['HOME=/home-of-the-user', 'XDG_CONFIG_HOME=/settings'],
    ])
      expect(env.split('\n')).toContain(line);
  });

  it('there is no list of changes if the settings of the repository are unknown', async () => {
    standIn('case "$*" in *config*) exit 1;; *) echo main;; esac');
    expect(await gitContext(folder(), signal)).toContain('Changes: not looked at');
  });

  it('there is no output after a cancel', async () => {
    standIn('exec sleep 60');
    const abort = new AbortController();
    const context = gitContext(folder(), abort.signal);
    abort.abort();
    expect(await context).toBeUndefined();
  });
});
