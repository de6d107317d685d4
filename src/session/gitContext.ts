/**
 * Describes the git state of a working directory for a prompt. Rule: the repository is not trusted. Git runs with
 * options that keep its settings, attributes and hooks from running programs, using the network or changing files. The
 * text lists the parts that are omitted for this reason.
 */
import { execFile } from 'node:child_process';
import { beginning } from '../printable.ts';
import { shownName } from '../tools/coding/search/listing.ts';

const TIME_MAX = 3_000;
const BYTES_MAX = 1_048_576;
const COMMITS = 5;
const CHANGES_MAX = 40;
const LINE_MAX = 200;

/** Repository settings that make `git status` run programs or read another place. */
const RISKY = /^(filter\..*\.(clean|smudge|process)|core\.worktree|core\.attributesfile|extensions\.worktreeconfig)$/i;
const SAFE = [
  ...['-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false', '-c', 'log.showSignature=false'],
  ...['-c', 'core.untrackedCache=false', '-c', 'submodule.recurse=false', '--no-pager', '--no-optional-locks'],
];

/** Undefined if git does not answer: it is not installed, or there is no repository of this user. */
export async function gitContext(cwd: string, signal: AbortSignal): Promise<string | undefined> {
  const git = (...args: string[]): Promise<string | undefined> => answerOf(cwd, args, signal);
  const branch = (await git('symbolic-ref', '--short', '-q', 'HEAD')) ?? (await git('rev-parse', '--short', 'HEAD'));
  if (branch === undefined) return undefined;
  const settings = await git('config', '--list', '--name-only', '--local', '--includes');
  const isRisky = settings === undefined || settings.split('\n').some((name) => RISKY.test(name.trim()));
  const [changes, commits] = await Promise.all([
    isRisky ? undefined : git('status', '--porcelain', '--ignore-submodules=all', '--untracked-files=normal'),
    git('rev-list', `--max-count=${COMMITS}`, '--format=%h %s', 'HEAD'),
  ]);
  // Each commit is printed with an extra line before its format.
  const subjects = commits?.split('\n').filter((line) => !/^commit [0-9a-f]{40,}$/.test(line));
  return [
    `Branch: ${shown(branch.trim())}`,
    isRisky
      ? 'Changes: not looked at, for settings of the repository would run programs.'
      : `Changes: ${changes === undefined ? 'not known, git did not answer in time' : listed(changes)}`,
    `Last commits: ${listed(subjects?.join('\n') ?? '')}`,
  ].join('\n');
}

const shown = (line: string): string => shownName(beginning(line, LINE_MAX));

function listed(answer: string): string {
  const lines = answer.split('\n').filter((line) => line.trim() !== '');
  if (lines.length === 0) return 'none';
  const more = lines.length > CHANGES_MAX ? [`(and ${lines.length - CHANGES_MAX} more)`] : [];
  return ['', ...lines.slice(0, CHANGES_MAX).map(shown), ...more].join('\n  ');
}

function answerOf(cwd: string, args: readonly string[], signal: AbortSignal): Promise<string | undefined> {
  const { PATH, HOME, XDG_CONFIG_HOME } = process.env;
  const env = {
    ...{ PATH, HOME, XDG_CONFIG_HOME, LC_ALL: 'C' },
    ...{ GIT_OPTIONAL_LOCKS: '0', GIT_TERMINAL_PROMPT: '0', GIT_ALLOW_PROTOCOL: 'none', GIT_NO_LAZY_FETCH: '1' },
  };
  return new Promise((resolve) => {
    const options = { cwd, env, signal, timeout: TIME_MAX, maxBuffer: BYTES_MAX, windowsHide: true };
    execFile('git', [...SAFE, ...args], options, (error, stdout) => resolve(error ? undefined : stdout));
  });
}
