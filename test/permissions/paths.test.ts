/** Paths that try to evade the permission rules, and the meaning of patterns in rules. */
import { writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type PermissionOptions, permissions } from '../../src/node.ts';
import { hiddenPaths } from '../../src/permissions/hiding/hiddenPaths.ts';
import { pathPattern, surroundingsOf } from '../../src/permissions/pathRules.ts';
import { proves, volume } from '../support/tier.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
const read = async (file_path: string, options: PermissionOptions = {}): Promise<string> =>
  (await explain(options, 'Read', { file_path }, ws)).outcome;
const write = async (file_path: string, options: PermissionOptions = {}): Promise<string> =>
  (await explain(options, 'Write', { file_path, content: '' }, ws)).outcome;

describe('files that patterns hide below a directory', () => {
  const max = volume.hiddenFiles;
  it.each([
    [max, 1, max],
    [max, 40, max],
    // The length of a command line is limited.
    [max + 1, 1, undefined],
    [max + 1, 3, undefined],
    [max + 100, 40, undefined],
  ])('they are listed for %i files in %i directories: %j', async (files, directories, hiddenCount) => {
    const root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-hidden-')));
    onTestFinished(() => rm(root, { recursive: true, force: true }));
    for (let at = 0; at < directories; at++) await mkdir(join(root, `${at}`));
    for (let at = 0; at < files; at++) writeFileSync(join(root, `${at % directories}`, `${at}.key`), '');
    const pattern = pathPattern('*.key');
    if (typeof pattern === 'string') throw new Error(pattern);
    const hidden = await hiddenPaths(
      [pattern],
      await surroundingsOf(root),
      ...(proves ? [] : [{ entries: 200_000, hidden: max }]),
    );
    expect(hidden?.hide.length).toBe(hiddenCount);
  });
});

describe('a rule with accented letters', () => {
  const forms = ['NFC', 'NFD'] as const;
  it.each(forms.flatMap((rule) => forms.map((path) => [rule, path] as const)))(
    'protects its file whichever way both are written: the rule as %s, the path as %s',
    async (rule, path) => {
      const deny = [`read(${'schl\u00fcssel/**'.normalize(rule)})`, `edit(${'\u00e9t\u00e9.txt'.normalize(rule)})`];
      const file = 'schl\u00fcssel/caf\u00e9.pem'.normalize(path);
      expect([await read(file, { deny }), await read(file.toUpperCase(), { deny })]).toEqual(['deny', 'deny']);
      expect(await write('\u00e9t\u00e9.txt'.normalize(path), { deny })).toBe('deny');
      expect(await read('schlussel/cafe.pem', { deny })).toBe('allow');
    },
  );
});

describe('a file that a command names', () => {
  it.each([
    'tool .env',
    'tool ./.env',
    'tool sub/../.env',
    'tool --file=.env',
    'tool -f.env',
    'tool -xf.env',
    'tool if=.env',
    'tool @.env',
    'tool -d @.env',
    'tool -d@.env',
    'tool --data=@.env',
    'tool -F key=@.env',
    'tool host:.env',
    'tool a:b:.env',
    'tool -v ./.env:/x',
    'tool -v .env:/x:ro',
    'tool --mount type=bind,src=.env,dst=/x',
    'tool --from-file=key=.env',
    'tool a,.env',
    'git show HEAD:.env',
    'timeout 5 tool @.env',
    'tool < .env',
    'tool {a,.env}',
    'tool "$PWD/.env"',
  ])('in the words of %s it is denied as for Read', async (command) => {
    const rules = { allow: ['bash'], deny: ['read(.env)'] };
    expect((await explain(rules, 'Bash', { command }, ws)).outcome).toBe('deny');
    const others = { allow: ['bash'], deny: ['read(other)'] };
    expect((await explain(others, 'Bash', { command }, ws)).outcome).not.toBe('deny');
  });

  it.each(['git commit -m ".env: leave it out"', 'tool "a, .env"', 'tool https://host/x,.env'])(
    'a text with blanks and an address name no file: %s',
    async (command) => {
      expect((await explain({ allow: ['bash'], deny: ['read(.env)'] }, 'Bash', { command }, ws)).outcome).toBe('allow');
    },
  );
});

describe('hostile paths', () => {
  const OPEN: PermissionOptions = { allow: ['read(./**)', 'edit(./**)'], deny: ['read(**/.env)'] };

  it.each([
    ['H-260', '../ws-evil/s'],
    ['H-261', 'd/s'],
    ['H-262', 'dangling'],
    ['H-267', 'a\u0000.txt'],
    ['H-273', '/proc/self/environ'],
    ['H-273', '/dev/stdin'],
    ['H-273', '/dev/zero'],
    ['H-267', 'a'.repeat(5_000)],
  ])('%s %j is neither read nor written without approval', async (_, path) => {
    expect([await read(path, OPEN), await write(path, OPEN)]).toEqual(['ask', 'ask']);
  });

  it.each(['..foo', '...', 'a/..b/c', 'file:///etc/passwd', '%2e%2e/f', '~/x', '$HOME/x', 'CON'])(
    'H-265 H-268 H-269 H-270 %s is a plain name inside',
    async (path) => {
      expect([await read(path), await write(path, OPEN)]).toEqual(['allow', 'allow']);
    },
  );

  it('H-275 a chain of links to a denied file is denied, whatever rule allows its spelling', async () => {
    expect(await read('first', OPEN)).toBe('deny');
    expect(await read('second', { ...OPEN, allow: ['read(second)'] })).toBe('deny');
  });

  it.each([
    ...['.git/hooks/x', '.git/config', 'sub/.git/config', '.runchart/settings.json', '.bashrc', '.husky/pre-push'],
    // The same places by names that file systems of other machines treat as equal.
    ...[
      '.GIT/config',
      '.g\u200cit/config',
      '.git./hooks/x',
      '.git /hooks/x',
      '.git::$INDEX_ALLOCATION/x',
      'GIT~1/config',
    ],
  ])('H-277 a write to %s requires approval in every mode and under every rule, or is denied', async (path) => {
    for (const mode of ['default', 'acceptEdits', 'bypass'] as const) {
      expect(await write(path, { mode, allow: ['edit(./**)', 'edit'] })).toBe('ask');
    }
    expect(await write(path, { mode: 'dontAsk', allow: ['edit(./**)'] })).toBe('deny');
    expect(await write(path, { mode: 'plan' })).toBe('deny');
  });

  it('H-277 the log of a session is protected in every place that the host names', async () => {
    const options: PermissionOptions = { mode: 'bypass', protect: ['./sessions/'] };
    expect(await write('sessions/a.jsonl', options)).toBe('ask');
    expect(await write('other/a.jsonl', options)).toBe('allow');
    const usual = join(homedir(), '.local/state/runchart/a.jsonl');
    expect(await write(usual, { mode: 'bypass' })).toBe('ask');
    expect(await write('/etc/elsewhere/runchart/config.json', { mode: 'bypass' })).toBe('allow');
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const name of ['XDG_CONFIG_HOME', 'XDG_STATE_HOME']) {
      vi.unstubAllEnvs();
      vi.stubEnv(name, '/etc/elsewhere');
      expect(await write('/etc/elsewhere/runchart/trusted.json', { mode: 'bypass' })).toBe('ask');
    }
  });
});

describe('patterns', () => {
  it('a name without a slash matches at any depth, one with a slash below the working directory only', async () => {
    const options: PermissionOptions = { mode: 'bypass', deny: ['read(a.ts)', 'read(docs/b.md)'] };
    expect(await read('src/a.ts', options)).toBe('deny');
    expect(await read('docs/b.md', options)).toBe('deny');
    expect(await read('sub/docs/b.md', options)).toBe('allow');
  });

  it('`./x` starts in the working directory, `//x` is absolute, `~/x` is at home', async () => {
    const deny = ['read(./src)', `read(/${ws}/docs/**)`, 'read(~/.netrc)'];
    expect(await read('src/a.ts', { deny })).toBe('deny');
    expect(await read('sub/src/a.ts', { deny })).toBe('allow');
    expect(await read('docs/x', { deny })).toBe('deny');
    expect(await read(join(homedir(), '.netrc'), { deny })).toBe('deny');
  });

  it('a denied name is denied outside the working directory too, and in upper or lower case', async () => {
    expect(await read('../ws-evil/.env', { deny: ['read(.env)'] })).toBe('deny');
    expect(await read('.ENV', { deny: ['read(.env)'] })).toBe('deny');
    expect(await read('a.MD', { allow: ['read(*.md)'], deny: [], mode: 'dontAsk' })).toBe('allow');
    expect(await write('a.MD', { allow: ['edit(*.md)'], mode: 'dontAsk' })).toBe('deny');
  });

  it('an allow rule opens a place outside only if both its spelling and its target match', async () => {
    const outside = await realpath(await mkdtemp(join(tmpdir(), 'runchart-outside-')));
    afterAll(() => rm(outside, { recursive: true, force: true }));
    await symlink(join(ws, '..', 'ws-evil'), join(outside, 'link'));
    const options: PermissionOptions = { allow: [`read(/${outside}/**)`] };
    expect(await read(join(outside, 'a'), options)).toBe('allow');
    expect(await read(join(outside, 'link/s'), options)).toBe('ask');
  });

  it('`write` rules mean `edit`, `read` rules apply to all tools that read, and names ignore case', async () => {
    const edit = { file_path: 'a', old_string: '', new_string: '' };
    expect((await explain({ allow: ['Write(./a)'] }, 'Edit', edit, ws)).outcome).toBe('allow');
    expect((await explain({ deny: ['READ(src)'] }, 'Grep', { pattern: 'a', path: 'src' }, ws)).outcome).toBe('deny');
    expect((await explain({ deny: ['grep(src)'] }, 'Ls', { path: 'src' }, ws)).outcome).toBe('allow');
  });

  it('a search below a directory requires approval if a rule hides a file that the search would show', async () => {
    const grep = async (deny: string[], path = '.') =>
      (await explain({ deny }, 'Grep', { pattern: 'a', path }, ws)).outcome;
    expect(await grep(['read(secrets.yml)'])).toBe('ask');
    expect(await grep(['read(secrets.yml)'], 'src/a.ts')).toBe('allow');
    const asked = await explain({ ask: ['read(secrets.yml)'] }, 'Grep', { pattern: 'a', path: '.' }, ws);
    expect(asked.outcome).toBe('ask');
    // Hidden files are skipped.
    expect(await grep(['read(**/.env)'])).toBe('allow');
  });

  it('H-342 outcomes do not depend on the language of the machine', async () => {
    const { LANG } = process.env;
    process.env.LANG = 'tr_TR.UTF-8';
    expect((await explain({ deny: ['LIST'] }, 'list', {}, ws)).outcome).toBe('deny');
    process.env.LANG = LANG;
  });

  it('tools without paths or commands are allowed if they are read-only, by name, by server, or by sub-agent', async () => {
    const outcome = async (options: PermissionOptions, tool: string, args: object = {}) =>
      (await explain(options, tool, args as never, ws)).outcome;
    expect(await outcome({}, 'mcp__github__search')).toBe('ask');
    expect(await outcome({ allow: ['mcp__github__*'] }, 'mcp__github__search')).toBe('allow');
    expect(await outcome({ allow: ['mcp__github'] }, 'mcp__github__search')).toBe('allow');
    expect(await outcome({ allow: ['mcp__git'] }, 'mcp__github__search')).toBe('ask');
    expect(await outcome({ disabledTools: ['Deploy'], allow: ['deploy'] }, 'deploy')).toBe('deny');
    const tasks = { tasks: [{ id: 'search', task: 'x' }] };
    expect(await outcome({ allow: ['agent(search)'] }, 'spawn_agents', tasks)).toBe('allow');
    expect(await outcome({ deny: ['agent(sea*)'] }, 'spawn_agents', tasks)).toBe('deny');
    // Every sub-agent must be allowed, and one denied sub-agent denies the call.
    const two = { tasks: [...tasks.tasks, { id: 'deploy', task: 'y' }] };
    expect(await outcome({ allow: ['agent(search)'] }, 'spawn_agents', two)).toBe('ask');
    expect(await outcome({ allow: ['agent(*)'], deny: ['agent(deploy)'] }, 'spawn_agents', two)).toBe('deny');
  });
});

it('a search with Grep asks if a rule hides a part of the directory, whatever allows it', async () => {
  const deny = ['read(./src/**)'];
  for (const options of [
    { deny, mode: 'bypass' as const },
    { deny, allow: ['grep'] },
    { deny, allow: ['read(./**)'] },
  ]) {
    expect((await explain(options, 'Grep', { pattern: 'x', path: '.' }, ws)).outcome).toBe('ask');
    expect((await explain(options, 'Grep', { pattern: 'x', path: 'package.json' }, ws)).outcome).toBe('allow');
  }
});

it('a verdict shows the beginning of a path that is too long to exist, without half of a character', async () => {
  const { parts } = await explain({}, 'Read', { file_path: `/${'😀'.repeat(300)}` }, ws);
  const shown = `/${'😀'.repeat(249)}`;
  expect(parts).toEqual([
    { text: `read ${shown}`, outcome: 'ask', by: 'mode default', why: `${shown} leads to an unknown place` },
  ]);
});

describe('a pattern that gitignore would skip', () => {
  it.each([
    ['#secret', '#secret'],
    ['#*', '#secret'],
    ['a//b', 'a/b'],
    ['a/./b', 'a/b'],
    ['././a/.//./b', 'a/b/c'],
    ['.//a', 'a'],
    ['a/.', 'a/b'],
    ['///nowhere/./x', '/nowhere/x'],
    ['~//x/./y', join(homedir(), 'x/y')],
  ])('fits the path that it names: %s', async (pattern, path) => {
    const denied = await explain({ deny: [`read(${pattern})`] }, 'Read', { file_path: path }, ws);
    const allowed = await explain({ allow: [`edit(${pattern})`] }, 'Write', { file_path: path }, ws);
    expect([denied.outcome, allowed.outcome]).toEqual(['deny', 'allow']);
  });

  it.each([
    ['a\\', 'ends with \\: write \\\\ for a backslash'],
    ['a/b\\\\\\', 'ends with \\: write \\\\ for a backslash'],
    ['[abc', 'has [ without ]: write \\[ for the bracket itself'],
    ['a[!]b', 'has [ without ]: write \\[ for the bracket itself'],
    ['a[]', 'has [ without ]: write \\[ for the bracket itself'],
    ['a[b\\]', 'has [ without ]: write \\[ for the bracket itself'],
    ['a[/]b', 'has [ without ]: write \\[ for the bracket itself'],
  ])('is refused, because it names nothing: %s', (pattern, why) => {
    const text = `read(${pattern})`;
    expect(() => permissions({ deny: [text] })).toThrow(`the permission rule ${JSON.stringify(text)} ${why}`);
    expect(() => permissions({ protect: [pattern] })).toThrow(`protect: ${JSON.stringify(pattern)} ${why}`);
  });

  it.each([
    ['a\\\\', 'a\\'],
    ['\\[abc', '[abc'],
    ['[]]', ']'],
    ['[!]a]', 'b'],
    ['[^]a]', 'b'],
    ['[a\\]]x', ']x'],
    ['[[:digit:]]', '1'],
    ['[abc]', 'c'],
  ])('is none of these: %s', async (pattern, path) => {
    expect((await explain({ deny: [`read(${pattern})`] }, 'Read', { file_path: path }, ws)).outcome).toBe('deny');
  });
});
