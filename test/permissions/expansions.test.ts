/**
 * Command lines whose real targets differ from their text: links before `..`, patterns and brace forms in directories,
 * computed words, options that open files, and repositories whose settings run programs.
 */
import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PermissionOptions } from '../../src/node.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
await mkdir(join(ws, '..', 'ws-evil/dir'));
await mkdir(join(ws, 'secrets/sub'), { recursive: true });
await mkdir(join(ws, 'a/b'), { recursive: true });
await writeFile(join(ws, 'a/b/c.txt'), 'c');
await writeFile(join(ws, 'secrets/key'), 'KEY');
await writeFile(join(ws, 'src/.env'), 'KEY');
await symlink(join(ws, '..', 'ws-evil/dir'), join(ws, 'e'));
await symlink('secrets/sub', join(ws, 's'));
await symlink('.git/hooks', join(ws, 'h'));
await symlink('src', join(ws, 'inner'));

const outcomeOf = async (command: string, options: PermissionOptions = {}): Promise<string> =>
  (await explain(options, 'Bash', { command }, ws)).outcome;
const outcomes = (commands: readonly string[], options: PermissionOptions = {}): Promise<string[][]> =>
  Promise.all(commands.map(async (command) => [command, await outcomeOf(command, options)]));
const each = (commands: readonly string[], outcome: string): string[][] => commands.map((line) => [line, outcome]);

describe('a link before ..', () => {
  it('it is followed first, as in the kernel, so a path after it is outside', async () => {
    const lines = [
      'cat e/../secret',
      'ls e/..',
      'rg x e/..',
      'find e/.. -name x',
      'wc -l < e/../s',
      'cd e/.. && cat s',
    ];
    expect(await outcomes(lines)).toEqual(each(lines, 'ask'));
    expect(await outcomeOf('echo x > e/../f', { allow: ['edit(./**)'] })).toBe('ask');
  });

  it('it may lead to a denied file or a protected place', async () => {
    expect(await outcomeOf('cat s/../key', { deny: ['read(./secrets/**)'] })).toBe('deny');
    const options: PermissionOptions = { mode: 'bypass', allow: ['bash(tee *)', 'edit(./**)'] };
    expect(await outcomeOf('tee h/../config', options)).toBe('ask');
  });

  it('makes a cd lead to one place for the shell and to another one for the kernel: the line is asked about, though both are inside', async () => {
    const lines = [
      'cd s/.. && cat key',
      'cd s/..; ls',
      'cd ./s/../ && rg x',
      'cd a && cd ../s/.. && ls',
      'cd s/../sub && ls',
    ];
    expect(await outcomes(lines)).toEqual(each(lines, 'ask'));
    const same = ['cd inner/.. && cat README.md', 'cd a/b/.. && ls', 'cd s && ls'];
    expect(await outcomes(same)).toEqual(each(same, 'allow'));
  });

  it('the line itself may create it, whatever rule allows that', async () => {
    const allow = ['bash(ln *)', 'bash(mv *)', 'bash(git checkout *)', 'bash(mkdir *)', 'bash(cp *)'];
    const lines = [
      'ln -s ../ws-evil y; cat y/s',
      'mv d y && cat y/s',
      'git checkout x && cat src/a.ts',
      'cp -a d y; ls y',
    ];
    expect(await outcomes(lines, { allow })).toEqual(each(lines, 'ask'));
    const plain = ['mkdir -p out && cp src/a.ts out && cat out/a.ts', 'git checkout x && ls', 'ln -s src y'];
    expect(await outcomes(plain, { allow })).toEqual(each(plain, 'allow'));
  });

  it('it requires no approval if its target is inside', async () => {
    expect(await outcomes(['cat inner/../package.json', 'ls inner'])).toEqual([
      ['cat inner/../package.json', 'allow'],
      ['ls inner', 'allow'],
    ]);
  });

  it('file tools follow it too, and stay inside', async () => {
    expect((await explain({}, 'Read', { file_path: 'e/../secret' }, ws)).outcome).toBe('ask');
    expect((await explain({}, 'Read', { file_path: 'inner/../package.json' }, ws)).outcome).toBe('allow');
  });
});

describe('patterns and brace forms', () => {
  const deny = ['read(./secrets/**)', 'read(**/.env)', 'edit(./secrets/**)', 'bash(rm *)'];

  it('in a directory part they bypass no rule that hides files', async () => {
    const lines = ['cat sr*/.env', 'head -1 */.env', 'cat ?ecrets/key', 'cat a/[b]/c.txt'];
    expect(await outcomes(lines, { deny })).toEqual(each(lines, 'ask'));
    const options: PermissionOptions = { deny, allow: ['bash(cat *)', 'bash(tee *)'] };
    expect(await outcomes([...lines, 'tee s*/key'], options)).toEqual(each([...lines, 'tee s*/key'], 'ask'));
  });

  it('in a loop they are checked by the rules of the matching files', async () => {
    const hiding = ['read(./secrets/**)'];
    for (const mode of ['default', 'bypass'] as const)
      for (const reader of ['tac "$f"', 'cat < "$f"', 'cat $f', 'grep a "$f"', 'echo x > "$f"'])
        expect(await outcomeOf(`for f in sec?ets/key; do ${reader}; done`, { deny: hiding, mode })).toBe('ask');
  });

  it('in braces they are the words that bash makes of them', async () => {
    const options: PermissionOptions = { deny, mode: 'bypass' };
    expect(await outcomes(['tee {secrets,}/key', '{rm,z}', 'r{m,} z', 'cat {src/{a,b},secrets}/key'], options)).toEqual(
      each(['tee {secrets,}/key', '{rm,z}', 'r{m,} z', 'cat {src/{a,b},secrets}/key'], 'deny'),
    );
    expect(await outcomes(['cat {package.json,README.md}', 'ls a{,/b}', 'echo {1..3}'])).toEqual(
      each(['cat {package.json,README.md}', 'ls a{,/b}', 'echo {1..3}'], 'allow'),
    );
  });

  it('in the name of a command they require approval in every mode', async () => {
    for (const line of ['/bin/r? z', '/bin/[r]m z']) expect(await outcomeOf(line, { mode: 'bypass' })).toBe('ask');
  });

  it('a pattern that reaches protected places requires approval in every mode', async () => {
    const lines = ['.gi?/config', '.g{it,}/config', '~/.bash*', '$PWD/.git/config', '"$(pwd)/.git/hooks/x"', '.git*'];
    for (const mode of ['default', 'bypass'] as const) {
      const written = lines.map((path) => `tee ${path}`);
      expect(await outcomes(written, { mode, allow: ['bash(tee *)'] })).toEqual(each(written, 'ask'));
    }
  });

  it('they list nothing outside without approval', async () => {
    const lines = [
      'echo ~/.ssh/*',
      'for f in /etc/*; do :; done',
      'test -f /etc/shadow',
      '[ -d /root ]',
      'echo /etc/*',
    ];
    expect(await outcomes(lines)).toEqual(each(lines, 'ask'));
    // biome-ignore lint/suspicious/noTemplateCurlyInString: bash reads it
    expect(await outcomeOf('echo ${x:-../ws-evil/*}')).toBe('ask');
    expect(await outcomes(['echo /etc/passwd', 'echo *.md', '[ -f package.json ]', 'test "$a" = b'])).toEqual(
      each(['echo /etc/passwd', 'echo *.md', '[ -f package.json ]', 'test "$a" = b'], 'allow'),
    );
  });

  it('they list nothing outside without approval, whatever the command does with the names', async () => {
    const takesNames = [
      'type',
      'command -v',
      'which',
      'basename',
      'dirname',
      'printenv',
      'id',
      'uname',
      'sleep',
      'seq',
    ];
    const takesWords = ['true', 'false', ':', 'printf', 'tr', 'exit', 'ls', 'cat', 'stat', 'readlink'];
    const outside = [...takesNames, ...takesWords].map((command) => `${command} ~/.ssh/[i]d`);
    expect(await outcomes(outside)).toEqual(each(outside, 'ask'));
    const inside = takesNames.map((command) => `${command} *.md`);
    expect(await outcomes(inside)).toEqual(each(inside, 'allow'));
  });

  it('in directories they run without approval if no rule hides files and every match is inside', async () => {
    expect(await outcomeOf('cat a/*/c.txt')).toBe('allow');
    expect(await outcomeOf('cat */s')).toBe('ask');
    expect(await outcomeOf('cat ]*')).toBe('allow');
    expect(await outcomeOf('cat a/*/../../../x')).toBe('ask');
  });
});

describe('computed words', () => {
  it('they are resolved if bash can make exactly one path of them', async () => {
    const options: PermissionOptions = { allow: ['bash(cat *)'], deny: ['read(./secrets/**)'] };
    // biome-ignore lint/suspicious/noTemplateCurlyInString: bash reads it
    const lines = ['cat $PWD/secrets/key', 'cat "${PWD}/secrets/key"', 'cat $(pwd)/secrets/key'];
    expect(await outcomes(lines, options)).toEqual(each(lines, 'deny'));
    expect(await outcomeOf('cat $PWD/package.json')).toBe('allow');
    // After a change of directory they are another path.
    expect(await outcomeOf('cd src && cat $PWD/a.ts', options)).toBe('ask');
  });

  it('they require approval whatever allows the command, except a rule for exactly this line', async () => {
    const allow = ['bash(cat *)', 'bash(git commit *)', 'bash(tee $X)'];
    for (const mode of ['default', 'bypass'] as const) {
      expect(await outcomeOf('cat $X', { allow, mode })).toBe('ask');
      expect(await outcomeOf('tee "$X"/config', { allow, mode })).toBe('ask');
    }
    expect(await outcomeOf('tee $X', { allow })).toBe('allow');
    expect(await outcomeOf('git commit -m "of $(date)"', { allow })).toBe('allow');
  });
});

describe('reading commands', () => {
  it('a command that opens files by an option, or runs programs, requires approval', async () => {
    const lines = [
      ...[
        'wc --files=list0',
        'wc --files0-from=list0',
        'du --files=list0',
        'hexdump -f fmt a',
        'file -z a',
        'diff -l a b',
      ],
      ...[
        'diff -Xk a b',
        'grep --fil=keys a',
        'grep --exclude-from keys a README.md',
        'grep */*/*',
        'git log --format=%G?',
      ],
      ...['git log --show-signature', 'git log --show-sig', 'git diff --submodule=diff'],
    ];
    expect(await outcomes(lines)).toEqual(each(lines, 'ask'));
  });

  it('they compare files, not directories, whose links they would follow', async () => {
    expect(await outcomes(['diff a src', 'diff package.json src', 'diff package.json README.md'])).toEqual([
      ['diff a src', 'ask'],
      ['diff package.json src', 'ask'],
      ['diff package.json README.md', 'allow'],
    ]);
  });

  it('any of them asks if it names a directory that a rule hides completely, whatever allows it', async () => {
    const deny = ['read(./secrets/**)'];
    const lines = ['cp -r secrets a', 'tar c secrets', 'file --magic-file secrets a', 'mv s/.. x'];
    for (const options of [
      { deny, mode: 'bypass' as const },
      { deny, allow: ['bash(cp *)', 'bash(tar *)', 'bash(file *)', 'bash(mv *)'] },
    ]) {
      expect(await outcomes(lines, options)).toEqual(each(lines, 'ask'));
      expect(await outcomes(['cp -r src a', 'tar c src docs'], options)).toEqual(
        each(['cp -r src a', 'tar c src docs'], 'allow'),
      );
    }
  });

  it('a command that searches directories asks if a rule hides files, even under a rule for every command and in bypass', async () => {
    const deny = ['read(secrets/**)'];
    for (const options of [
      { deny, allow: ['bash'] },
      { deny, mode: 'bypass' as const },
    ]) {
      const lines = ['grep -rn KEY .', 'grep -R KEY .', 'rg -uu KEY', 'git grep KEY', 'git diff', 'diff -rN . src'];
      expect(await outcomes(lines, options)).toEqual(each(lines, 'ask'));
      expect(await outcomeOf('npm test', options)).toBe('allow');
    }
    expect(await outcomeOf('git log -p --follow src/a.ts', { deny })).toBe('ask');
  });
});

describe('a variable that is set in the shell', () => {
  const options: PermissionOptions = { allow: ['bash(npm test *)', 'bash(echo *)'] };
  const forms = (name: string): string[] => [
    `${name}=x; npm test`,
    `${name}=x && npm test`,
    `for ${name} in x y; do npm test; done`,
    `echo x | while read -r ${name}; do npm test; done`,
  ];

  it.each([
    ...['http_proxy', 'https_proxy', 'ftp_proxy', 'all_proxy', 'no_proxy'],
    ...['npm_config_registry', 'npm_config_script_shell', 'npm_x'],
    ...['PATH', 'BASH_ENV', 'IFS', 'LD_PRELOAD', 'NODE_OPTIONS', 'HTTP_PROXY', 'GIT_DIR', '_'],
  ])('is asked about where a program may read it: %s', async (name) => {
    expect(await outcomes(forms(name), options)).toEqual(each(forms(name), 'ask'));
  });

  it.each(['x', 'file', 'http', 'proxy', 'npm', 'xnpm_config', 'LANG', 'LC_ALL', 'CI'])(
    'is allowed where no program reads it: %s',
    async (name) => {
      expect(await outcomes(forms(name), options)).toEqual(each(forms(name), 'allow'));
    },
  );
});

describe('a line that changes its directory, which may fail', () => {
  // The first directory is outside from the start of the line, the second one from the place after the change.
  const lines = ['cd src; cat ../ws-evil/s', 'cd src || cat ../ws-evil/s', 'cd src; wc -l < ../ws-evil/s'];

  it('it requires approval if a word leads outside from one of the two places', async () => {
    expect(await outcomes(lines)).toEqual(each(lines, 'ask'));
    expect(await outcomeOf('cd src; cat ../../ws-evil/s')).toBe('ask');
    expect(await outcomeOf('cd src; cat ../README.md')).toBe('ask');
    expect(await outcomeOf('cd src; cat a.ts')).toBe('allow');
  });

  it('it is checked by the rules for the files of both', async () => {
    for (const rule of ['read(./.env)', 'read(./src/.env)'])
      expect([rule, await outcomeOf('cd src; cat .env', { deny: [rule] })]).toEqual([rule, 'deny']);
    for (const write of ['echo x > package.json', 'echo x > a.ts'])
      expect(await outcomeOf(`cd src; ${write}`, { allow: ['edit(./src/**)', 'bash(echo *)'] })).toBe('ask');
  });
});

describe('git in a repository with its own settings', () => {
  const withConfig = async (text: string, name = 'config'): Promise<void> => {
    const config = join(ws, '.git', name);
    await writeFile(config, text);
    onTestFinished(() => rm(config, { force: true }));
  };
  const lines = ['git status', 'git diff', 'git log --oneline'];

  it('it runs without approval if the settings name no program', async () => {
    await withConfig('[core]\n\tbare = false\n[remote "origin"]\n\turl = x\n\tfetch = +refs/heads/*\n; note\n');
    expect(await outcomes(lines)).toEqual(each(lines, 'allow'));
  });

  it.each([
    '[core]\n\tfsmonitor = ./x',
    '[diff]\n\texternal = ./x',
    '[filter "a"]\n\tclean = ./x',
    '[diff "a"]\n\ttextconv = ./x',
    '[include]\n\tpath = ../x',
    '[includeIf "gitdir:."]\n\tpath = ../x',
    '[core]\n\tworktree = ../x',
    '[gpg]\n\tprogram = ./x',
    '[core]\n\tpager = ./x',
    '[log]\n\tshowSignature',
    '[CORE] fsMonitor=./x',
    '[core]\n\tabbrev = 1\\\n2',
  ])('it requires approval if they contain %j', async (text) => {
    await withConfig(text);
    expect(await outcomes(lines)).toEqual(each(lines, 'ask'));
  });

  it('it requires approval if the settings of one working tree contain them', async () => {
    await withConfig('[core]\n\tbare = false\n');
    await withConfig('[core]\n\tfsmonitor = ./x', 'config.worktree');
    expect(await outcomes(lines)).toEqual(each(lines, 'ask'));
    await withConfig('[core]\n\tbare = false\n', 'config.worktree');
    expect(await outcomes(lines)).toEqual(each(lines, 'allow'));
  });

  it('it requires approval inside any command that runs it, too', async () => {
    const runs = [
      '',
      'timeout 5 ',
      'nohup ',
      'time ',
      'nice -n 5 ',
      'stdbuf -oL ',
      'command ',
      'time timeout 5s nice ',
    ];
    const wrapped = runs.flatMap((before) => [`${before}git status`, `ls && ${before}git log --oneline`]);
    await withConfig('[core]\n\tbare = false\n');
    expect(await outcomes(wrapped)).toEqual(each(wrapped, 'allow'));
    await withConfig('[core]\n\tfsmonitor = ./x');
    expect(await outcomes(wrapped)).toEqual(each(wrapped, 'ask'));
  });

  it('it requires approval if a hook runs when git reads, or if the repository borrows objects from others', async () => {
    for (const file of [
      '.git/hooks/post-index-change',
      '.gitmodules',
      '.git/objects/info/alternates',
      '.git/commondir',
    ]) {
      await mkdir(join(ws, file, '..'), { recursive: true });
      await writeFile(join(ws, file), 'x');
      expect(await outcomeOf('git status'), file).toBe('ask');
      await rm(join(ws, file));
    }
    await withConfig('[core]\n\thooksPath = .husky');
    expect(await outcomeOf('git status')).toBe('allow');
    await mkdir(join(ws, '.husky'));
    await writeFile(join(ws, '.husky/post-index-change'), 'x');
    expect(await outcomeOf('git status')).toBe('ask');
  });

  it('it requires approval below the top of a repository, because git reads all of it', async () => {
    expect((await explain({}, 'Bash', { command: 'git diff' }, join(ws, 'src'))).outcome).toBe('ask');
  });
});

describe('git in a working tree of git worktree', () => {
  /** A tree beside the repository that has it, and its part there. Both name each other. */
  async function workingTree() {
    const home = await realpath(await mkdtemp(join(tmpdir(), 'runchart-trees-')));
    onTestFinished(() => rm(home, { recursive: true, force: true }));
    const [tree, common] = [join(home, 'tree'), join(home, 'main/.git')];
    const own = join(common, 'worktrees/w');
    for (const directory of [tree, own, join(common, 'objects'), join(common, 'refs')])
      await mkdir(directory, { recursive: true });
    await writeFile(join(common, 'HEAD'), 'ref: refs/heads/main\n');
    await writeFile(join(own, 'HEAD'), 'ref: refs/heads/w\n');
    await writeFile(join(own, 'commondir'), '../..\n');
    await writeFile(join(own, 'gitdir'), `${join(tree, '.git')}\n`);
    await writeFile(join(tree, '.git'), `gitdir: ${own}\n`);
    return { home, tree, common, own };
  }
  type Tree = Awaited<ReturnType<typeof workingTree>>;
  const RISKY = '[core]\n\tfsmonitor = ./x\n';
  const judged = async ({ tree }: Tree): Promise<string> =>
    (await explain({}, 'Bash', { command: 'git log --oneline' }, tree)).outcome;

  it.each<[string, 'allow' | 'ask', (tree: Tree) => Promise<unknown>]>([
    ['names it, and is named by it', 'allow', async () => undefined],
    ['names another tree', 'ask', ({ own, home }) => writeFile(join(own, 'gitdir'), `${join(home, 'other/.git')}\n`)],
    ['names no tree', 'ask', ({ own }) => rm(join(own, 'gitdir'))],
    ['has its own objects elsewhere', 'ask', ({ own }) => writeFile(join(own, 'commondir'), '../../..\n')],
    ['names no other part', 'ask', ({ own }) => rm(join(own, 'commondir'))],
    ['shares settings that run a program', 'ask', ({ common }) => writeFile(join(common, 'config'), RISKY)],
    ['shares such settings of trees', 'ask', ({ common }) => writeFile(join(common, 'config.worktree'), RISKY)],
    ['has such settings of its own', 'ask', ({ own }) => writeFile(join(own, 'config.worktree'), RISKY)],
    [
      'has harmless settings of its own',
      'allow',
      ({ own }) => writeFile(join(own, 'config.worktree'), '[core]\n\tbare = false\n'),
    ],
    [
      'is reached by a link',
      'ask',
      async ({ tree, own, common }) => {
        await rename(own, join(common, 'moved'));
        await symlink(join(common, 'moved'), own);
        await writeFile(join(tree, '.git'), `gitdir: ${own}\n`);
      },
    ],
    [
      'has a name with a blank at its end, beside one without',
      'ask',
      async ({ tree, own }) => {
        await mkdir(`${own} `);
        await writeFile(join(tree, '.git'), `gitdir: ${own} \n`);
      },
    ],
    ['shares a directory with a blank at its end', 'ask', ({ own }) => writeFile(join(own, 'commondir'), '../.. \n')],
    [
      'is at a place that is not UTF-8',
      'ask',
      async ({ tree, own, common }) => {
        const place = Buffer.from(`${own}-?`);
        await rename(own, join(common, 'worktrees/w-\ufffd'));
        await writeFile(
          join(tree, '.git'),
          Buffer.concat([Buffer.from('gitdir: '), place.fill(0xff, place.length - 1)]),
        );
      },
    ],
    [
      'is a whole repository of another directory',
      'ask',
      ({ tree, common }) => writeFile(join(tree, '.git'), `gitdir: ${common}\n`),
    ],
  ])('if its part of the repository %s, a command that reads gets: %s', async (_, expected, change) => {
    const tree = await workingTree();
    await change(tree);
    expect(await judged(tree)).toBe(expected);
  });
});

it.each([
  "GLOBIGNORE='*.md'; cat sub/*",
  'GLOBIGNORE=x cat sub/*',
  'export GLOBIGNORE=x; cat sub/*',
  'printf -v GLOBIGNORE x; cat sub/*',
  'read -r "GLOB"IGNORE; cat sub/*',
  'shopt -s dotglob; cat sub/*',
  "bash -O dotglob -c 'cat sub/*'",
  "BASHOPTS=dotglob bash -c 'cat sub/*'",
])(
  'a line that lets patterns match names with a leading dot requires approval if files are hidden: %s',
  async (command) => {
    const hides: PermissionOptions = { mode: 'bypass', deny: ['read(**/.env)'] };
    expect((await explain(hides, 'Bash', { command }, ws)).outcome).toBe('ask');
    expect((await explain(hides, 'Bash', { command: 'cat sub/*' }, ws)).outcome).toBe('allow');
  },
);

it('a question names the word that caused it, and the target of that word', async () => {
  const { parts } = await explain({}, 'Bash', { command: 'cat e/../secret' }, ws);
  expect(parts).toEqual([expect.objectContaining({ why: `e/../secret leads to ${join(ws, '..', 'ws-evil/secret')}` })]);
});

it('a deny rule also matches names in another normal form', async () => {
  expect((await explain({ deny: ['read(caf\u00e9)'] }, 'Read', { file_path: 'cafe\u0301' }, ws)).outcome).toBe('deny');
});

it('inherited properties are neither arguments nor options', async () => {
  const inherited = Object.prototype as { mode?: string; file_path?: string };
  onTestFinished(() => {
    delete inherited.mode;
    delete inherited.file_path;
  });
  inherited.mode = 'bypass';
  inherited.file_path = 'package.json';
  expect((await explain({}, 'Write', { content: '' }, ws)).outcome).toBe('ask');
  expect((await explain({}, 'Read', { path: '/etc/passwd' }, ws)).outcome).toBe('ask');
});
