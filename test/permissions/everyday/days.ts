/**
 * Typical workspaces of coding agents, and the commands of the agents there. Invariant: each of `commands` is
 * read-only, or named by a rule of the settings. Each of `questions` must be asked about or denied.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll } from 'vitest';
import type { PermissionOptions } from '../../../src/node.ts';

export interface Day {
  rules: PermissionOptions;
  files: { readonly [path: string]: string };
  /** `{root}` is replaced by the working directory. */
  commands: readonly string[];
  questions: readonly string[];
}

/** Creates the files of a day in a repository with two commits. Removed at the end of the test file. */
export function workspaceOf({ files }: Day): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'runchart-day-')));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const git = (...args: string[]): void => {
    execFileSync('git', ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.com', ...args], {
      cwd: root,
      stdio: 'ignore',
      env: { PATH: process.env.PATH, HOME: root, GIT_CONFIG_NOSYSTEM: '1' },
    });
  };
  git('init', '-b', 'main');
  git('add', '.');
  git('commit', '-m', 'Begin');
  git('remote', 'add', 'origin', 'https://example.com/shop.git');
  git('commit', '--allow-empty', '-m', 'Go on');
  return root;
}
