/** Repositories of a foreign author: settings, hooks and files that make git run programs, or read elsewhere. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, cpSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chance } from '../../support/seededChance.ts';
import type { OraclePlace } from './oracleDirectory.ts';

export interface HostileRepository {
  name: string;
  /** Changes the workspace. */
  change(): void;
  /** The working directory is below the top. */
  below?: string;
}

export function hostileRepositories({ ws, out, ran }: OraclePlace): HostileRepository[] {
  const config = (text: string) => (): void => appendFileSync(join(ws, '.git/config'), `${text}\n`);
  const file = (path: string, text: string): void => {
    mkdirSync(join(ws, path, '..'), { recursive: true });
    writeFileSync(join(ws, path), text);
  };
  const program = (path: string): void => {
    file(path, `#!/bin/sh\necho ran > ${ran}\ncat ${out}/secret\n`);
    chmodSync(join(ws, path), 0o755);
  };
  const attributes = (text: string): void => file('.gitattributes', `${text}\n`);
  return [
    { name: 'a file system monitor', change: config('[core]\n\tfsmonitor = ./run') },
    { name: 'an external diff', change: config('[diff]\n\texternal = ./run') },
    { name: 'a hook at a write of the index', change: () => program('.git/hooks/post-index-change') },
    {
      name: 'hooks elsewhere',
      change: () => {
        program('h/post-index-change');
        config('[core]\n\thooksPath = h')();
      },
    },
    ...['h # x', 'h ; x', '"h"""', '~/../ws/h', '%(prefix)/../ws/h'].map((value) => ({
      name: `hooks at ${value}`,
      change: () => {
        program('h/post-index-change');
        config(`[core]\n\thooksPath = ${value}`)();
      },
    })),
    ...['packed-refs', 'info/exclude', 'refs/heads/x', 'logs/HEAD'].map((path) => ({
      name: `the link ${path} in it`,
      change: () => {
        rmSync(join(ws, '.git', path), { force: true });
        mkdirSync(join(ws, '.git', path, '..'), { recursive: true });
        symlinkSync(join(out, 'secret'), join(ws, '.git', path));
      },
    })),
    {
      name: 'a part missing, and a bare one around it',
      change: () => {
        for (const name of ['HEAD', 'objects', 'refs'])
          cpSync(join(ws, '.git', name), join(ws, name), { recursive: true });
        file('config', '[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = ./run\n');
        rmSync(join(ws, '.git/HEAD'));
      },
    },
    {
      name: 'the history of another one',
      change: () => {
        rmSync(join(out, 'git'), { recursive: true, force: true });
        cpSync(join(ws, '.git'), join(out, 'git'), { recursive: true });
        renameSync(join(ws, '.git'), join(ws, 'g'));
        file('.git', 'gitdir: ./g\n');
        file('g/commondir', `${out}/git\n`);
      },
    },
    {
      name: 'settings of an invalid working tree',
      change: () => {
        renameSync(join(ws, '.git'), join(ws, 'c'));
        file('.git', 'gitdir: ./c/worktrees/w\n');
        file('c/worktrees/w/HEAD', 'ref: refs/heads/master\n');
        file('c/worktrees/w/commondir', '../..\n');
        file('c/worktrees/w/gitdir', `${ws}/.git\n`);
        file('c/worktrees/w/config.worktree', '[core]\n\tfsmonitor = ./run\n');
        appendFileSync(join(ws, 'c/config'), '[extensions]\n\tworktreeConfig = true\n');
      },
    },
    { name: 'settings from outside', change: config(`[include]\n\tpath = ${out}/gitconfig`) },
    {
      name: 'settings from below',
      change: () => {
        file('more', '[core]\n\tfsmonitor = ./run\n');
        config('[include]\n\tpath = ../more')();
      },
    },
    { name: 'signatures that are shown', change: config('[log]\n\tshowSignature = true\n[gpg]\n\tprogram = ./run') },
    {
      name: 'a filter',
      change: () => {
        attributes('* filter=f');
        config('[filter "f"]\n\tclean = ./run\n\tsmudge = ./run\n\trequired')();
      },
    },
    {
      name: 'a text form of files',
      change: () => {
        attributes('* diff=f');
        config('[diff "f"]\n\ttextconv = ./run\n\tcommand = ./run')();
      },
    },
    { name: 'a working tree elsewhere', change: config(`[core]\n\tworktree = ${out}`) },
    { name: 'a pager', change: config('[core]\n\tpager = ./run\n[pager]\n\tlog = ./run\n\tstatus = true') },
    {
      name: 'aliases of other commands',
      change: config('[alias]\n\tstatus = !./run\n\tlog = !./run\n\tst = !./run'),
    },
    {
      name: 'files of attributes and exceptions outside',
      change: config(`[core]\n\tattributesFile = ${out}/secret\n\texcludesFile = ${out}/secret`),
    },
    { name: 'submodules', change: () => file('.gitmodules', `[submodule "s"]\n\tpath = src\n\turl = ${out}\n`) },
    {
      name: 'another repository in its index',
      change: () => {
        cpSync(join(ws, '.git'), join(ws, 'nested/.git'), { recursive: true });
        appendFileSync(join(ws, 'nested/.git/config'), '[core]\n\tfsmonitor = ../run\n');
        const entry = `160000,${'1'.repeat(40)},nested`;
        execFileSync('git', ['update-index', '--add', '--cacheinfo', entry], { cwd: ws, stdio: 'ignore' });
      },
    },
    { name: 'objects of another repository', change: () => file('.git/objects/info/alternates', `${out}\n`) },
    { name: 'settings of another repository', change: () => file('.git/commondir', `${out}\n`) },
    {
      name: 'all of it elsewhere',
      change: () => {
        rmSync(join(out, 'git'), { recursive: true, force: true });
        renameSync(join(ws, '.git'), join(out, 'git'));
        writeFileSync(join(ws, '.git'), `gitdir: ${out}/git\n`);
      },
    },
    {
      name: 'a link in place of it',
      change: () => {
        rmSync(join(out, 'git'), { recursive: true, force: true });
        renameSync(join(ws, '.git'), join(out, 'git'));
        symlinkSync(join(out, 'git'), join(ws, '.git'));
      },
    },
    { name: 'a section in capital letters', change: config('[CORE]\n\tFSMonitor = ./run') },
    { name: 'settings of a subsection', change: config('[core "x"]\n\tfsmonitor = y\n[diff "x"]\n\tcommand = ./run') },
    { name: 'its top above the working directory', below: 'docs', change: () => undefined },
  ];
}

const LINES = [
  ...[
    'git status',
    'git status -s',
    'git status --porcelain --ignored',
    'git diff',
    'git diff --stat',
    'git diff --cached',
    'git diff HEAD',
  ],
  ...[
    'git log',
    'git log --oneline',
    'git log -p -1',
    'git log --stat -1',
    'git log -1 --format=%H',
    'git log --follow README.md',
    'git show',
  ],
  ...[
    'git show HEAD:README.md',
    'git show --stat',
    'git show HEAD:secrets/key',
    'git branch',
    'git branch -a',
    'git diff src',
    'git diff -- README.md',
  ],
  ...[
    'git log -S KEY --oneline',
    'git log -L1,1:README.md',
    'cd src && git status',
    'git diff --no-ext-diff',
    'git log --no-textconv -p -1 README.md',
  ],
  ...[
    'git st',
    'git status; git log -1',
    'git diff | cat',
    'git show HEAD -- src/.env',
    'git log --all -- secrets/key',
    'git diff --name-only',
  ],
  ...['git describe --dirty --always', 'git check-ignore -v KEY=canary-from-outside', 'git reflog', 'git show -s HEAD'],
] as const;

/** A part of the lines, different for each volume. */
export function repositoryLines(count: number): string[] {
  const by = chance(count);
  return count >= LINES.length ? [...LINES] : Array.from({ length: count }, () => by.one(LINES));
}
