/**
 * A place for lines that try to bypass the rules: a workspace with links, hidden files and a repository, a home
 * directory, and a directory outside. Invariant: each hidden file, each outside file and each file that only the
 * history contains has a canary. An output therefore identifies the files that a line showed.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commandEnvironment } from '../../../src/tools/coding/shell.ts';

export const HIDDEN = 'KEY=canary-of-a-hidden-file';
export const OUTSIDE = 'KEY=canary-from-outside';
/** In the home directory. */
export const CREDENTIALS = 'KEY=canary-person';
export const HISTORY = 'KEY=canary-of-the-history';
/** Rules that hide files of the workspace. */
export const HIDING = ['read(./secrets/**)', 'read(**/.env)'];
export const isHiddenName = (name: string): boolean => /^secrets\/.|(^|\/)\.env(\/|$)/.test(name);

export interface OraclePlace {
  root: string;
  /** The working directory of every line. */
  ws: string;
  home: string;
  out: string;
  /** Exists after a program of the workspace ran. */
  ran: string;
  /** Creates the workspace in its initial state. */
  anew(): void;
  /** A shell command that does the same. */
  anewCommand: string;
  /** The environment of a command, as Bash derives it from a hostile one. */
  env(more?: NodeJS.ProcessEnv): Record<string, string>;
  /** Contents of the files that no line may change. */
  guarded(): Readonly<Record<string, string>>;
  remove(): void;
}

const FILES: Readonly<Record<string, string>> = {
  ...{ 'src/.env': `${HIDDEN}\n`, 'secrets/key': `${HIDDEN}\n`, 'secrets/sub/deep': `${HIDDEN}\n` },
  ...{ 'src/a.ts': '{"a":1}\n', 'package.json': '{"a":1}\n', 'README.md': '{"a":1}\n', 'docs/x.md': '{"a":1}\n' },
  ...{ 'old.txt': '{"a":1}\n', 'made/x': '{"a":1}\n', patterns: 'KEY\n' },
  ...{
    list0: 'secrets/key\0../out/secret\0',
    sums: `${'0'.repeat(32)}  secrets/key\n`,
    prog: 'include "secrets/key"; .\n',
  },
};

export function oraclePlace(): OraclePlace {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'runchart-oracle-')));
  const [first, ws, home, out] = [join(root, 'first'), join(root, 'ws'), join(root, 'home'), join(root, 'out')];
  const ran = join(root, 'ran');
  const put = (directory: string, path: string, text: string): void => {
    mkdirSync(join(directory, path, '..'), { recursive: true });
    writeFileSync(join(directory, path), text);
  };
  for (const [path, text] of Object.entries(FILES)) put(first, path, text.replace(HIDDEN, HISTORY));
  for (const path of ['secret', 'dir/secret', 'gitconfig']) put(out, path, `${OUTSIDE}\n`);
  put(out, 'Makefile', `all:\n\t@cat secret; echo ran > ${ran}\n`);
  put(out, 'package.json', `{"scripts":{"test":"cat secret; echo ran > ${ran}"}}\n`);
  put(home, '.ssh/id', `${CREDENTIALS}\n`);
  put(first, 'run', `#!/bin/sh\necho ran > ${ran}\ncat\n`);
  chmodSync(join(first, 'run'), 0o755);
  symlinkSync('../out/dir', join(first, 'link'));
  symlinkSync('secrets', join(first, 'inner'));
  symlinkSync('.git/hooks', join(first, 'hooks'));
  symlinkSync('../out/secret', join(first, 'outside.txt'));
  const git = (...args: string[]): void => {
    const env = { ...process.env, HOME: home, GIT_CONFIG_NOSYSTEM: '1' };
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd: first, env, stdio: 'ignore' });
  };
  git('init', '--template=');
  git('add', '.');
  git('commit', '-m', 'all');
  // Few files: the workspace is created again before each line that may write.
  git('repack', '-adq');
  mkdirSync(join(first, '.git/hooks'));
  for (const [path, text] of Object.entries(FILES)) if (text.includes(HIDDEN)) put(first, path, text);
  const anew = (): void => {
    rmSync(ws, { recursive: true, force: true });
    cpSync(first, ws, { recursive: true, verbatimSymlinks: true });
  };
  anew();
  const contents = (path: string, into: Record<string, string>): Record<string, string> => {
    if (!existsSync(path) && !lstatSync(path, { throwIfNoEntry: false })) into[path] = 'missing';
    else if (lstatSync(path).isDirectory()) {
      into[path] = 'directory';
      for (const name of readdirSync(path)) contents(join(path, name), into);
    } else
      into[path] = lstatSync(path).isSymbolicLink() ? `link to ${readlinkSync(path)}` : readFileSync(path, 'latin1');
    return into;
  };
  return {
    ...{ root, ws, home, out, ran, anew },
    anewCommand: `rm -rf '${ws}'; cp -a '${first}' '${ws}'`,
    env: (more = {}) =>
      commandEnvironment({ ...HOSTILE_ENVIRONMENT, PATH: process.env.PATH, HOME: home, ...more }, 'oracle'),
    guarded: () => {
      const found: Record<string, string> = {};
      for (const path of [out, home]) contents(path, found);
      for (const name of GUARDED) contents(join(ws, name), found);
      return found;
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** Protected places of the workspace; most of them do not exist at the start. */
export const GUARDED: readonly string[] = [
  ...['.git/config', '.git/hooks', '.git/HEAD', '.gitmodules', '.envrc', '.husky', '.vscode', '.idea', '.runchart'],
  ...['.mcp.json', '.bashrc', '.profile', '.zshrc', '.gitconfig', '.ssh', '.gnupg'],
];

/** Variables that change how bash or its programs read a line. Bash must not pass any of them on. */
const HOSTILE_ENVIRONMENT: NodeJS.ProcessEnv = {
  ...{ CDPATH: '../out', GLOBIGNORE: 'x', IFS: 'a', BASHOPTS: 'extglob:dotglob:globstar', SHELLOPTS: 'noglob' },
  ...{ BASH_ENV: './run', ENV: './run', GREP_OPTIONS: '-r', RIPGREP_CONFIG_PATH: './run', POSIXLY_CORRECT: '1' },
  ...{ GIT_DIR: '../out', GIT_EXTERNAL_DIFF: './run', GIT_PAGER: './run', PAGER: './run', LESSOPEN: '|./run %s' },
  ...{ GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'core.fsmonitor', GIT_CONFIG_VALUE_0: './run', GIT_TRACE: '/tmp/x' },
  ...{ LD_PRELOAD: '', TREE_COLORS: 'x', LS_COLORS: 'x', MAGIC: './run', PS4: '$(./run)', PROMPT_COMMAND: './run' },
};
