/**
 * Commands whose words need a closer check: scripts of sed and awk, git, runners, and names that only a sandbox makes
 * harmless.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type PermissionOptions, permissions, sandboxStatus } from '../../src/node.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
for (const path of ['secrets/key', '.config/key', 'src/deep/x.ts', 'Private/k.txt']) {
  mkdirSync(join(ws, path, '..'), { recursive: true });
  writeFileSync(join(ws, path), 'KEY');
}
const outcome = async (command: string, options: PermissionOptions = {}): Promise<string> =>
  (await explain(options, 'Bash', { command }, ws)).outcome;

describe('scripts', () => {
  it.each([
    "sed -n '/KEY/,/^}/p' src/a.ts",
    "sed -n '10,25p;40,60p' src/a.ts",
    "sed 's/a/b/g; s|x|y|; /^$/d' src/a.ts",
    "sed -ne 's/^a \\([a-z]*\\).*/\\1/p' src/a.ts",
    "awk 'NR>=10 && NR<=40' src/a.ts",
    'awk -F: \'$2 > 3 || /x/ {print $1 ":" $2}\' src/a.ts',
  ])('%s only prints', async (command) => {
    expect(await outcome(command)).toBe('allow');
  });

  it.each([
    "sed -i 's/a/b/' src/a.ts",
    "sed 's/a/b/w src/b.ts' src/a.ts",
    "sed 's/a/id/e' src/a.ts",
    "sed -n 'p;w src/b.ts' src/a.ts",
    "sed -n '1e id' src/a.ts",
    "sed 'r /etc/hostname' src/a.ts",
    "sed 's/[/]/w x/' src/a.ts",
    'sed -f run src/a.ts',
    'sed "$X" src/a.ts',
    "awk '{system($0)}' src/a.ts",
    'awk \'BEGIN{while((getline l < "../s")>0) print l}\'',
    'awk \'{print > "src/b.ts"}\' src/a.ts',
    'awk \'{print | "sh"}\' src/a.ts',
    'awk \'{print ||| "sh"}\' src/a.ts',
    'awk \'BEGIN{ARGV[1]="../ws-evil/s";ARGC=2}{print}\' x',
    'awk -f run src/a.ts',
    'awk \'@load "x"\' src/a.ts',
    "awk '{print}' ../ws-evil/s",
  ])('%s may do more', async (command) => {
    expect(await outcome(command)).toBe('ask');
  });
});

describe('files that a rule hides', () => {
  const deny = ['read(./secrets/**)', 'read(./.config/**)', 'read(./private/**)'];
  it.each([
    'grep -rn KEY src',
    'rg KEY src',
    'rg KEY docs sub',
    'wc -l src/*.ts',
    'cat src/deep/*.ts',
    'ls src/*',
    'diff <(cat src/a.ts) src/a.ts',
  ])('%s does not show them, and runs without approval', async (command) => {
    expect(await outcome(command, { deny })).toBe('allow');
  });
  it.each([
    'rg KEY',
    'rg KEY .config',
    'rg KEY Private',
    'grep -r KEY .',
    'grep -rn KEY secrets',
    'grep -r KEY $X',
    'rg -t src KEY',
    'rg --type src KEY',
    'cat s*/key',
    'cat ./*/key',
    'make && rg KEY',
    'cat <(ls)$(echo /../../etc/passwd)',
  ])('%s may show them, and is not allowed', async (command) => {
    expect(await outcome(command, { deny, allow: ['bash(make)'] })).not.toBe('allow');
  });

  it.each(['git -C src diff', 'find . -name "k*" -exec cat {} +', 'echo secrets/key | xargs cat'])(
    '%s may show them, and requires approval in mode bypass and under a rule for every command',
    async (command) => {
      expect(await outcome(command, { deny, mode: 'bypass' })).toBe('ask');
      expect(await outcome(command, { deny, allow: ['bash'] })).toBe('ask');
    },
  );

  it('the line itself may create them, so it requires approval', async () => {
    const options = { deny: ['read(./docs/made/**)'], allow: ['bash(make)'] };
    expect(await outcome('rg KEY docs', options)).toBe('allow');
    expect(await outcome('make && rg KEY docs', options)).toBe('ask');
  });

  it('Grep may show them in a directory with a leading dot, and not where the rule does not apply', async () => {
    const { outcome } = await explain({ deny }, 'Grep', { pattern: 'KEY', path: '.config' }, ws);
    expect(outcome).toBe('ask');
    expect((await explain({ deny }, 'Grep', { pattern: 'KEY', path: 'src' }, ws)).outcome).toBe('allow');
  });
});

describe('git', () => {
  it.each([
    'git --no-pager log --oneline',
    'git -C . status',
    `git -C ${ws} status`,
    'git blame -L 1,3 src/a.ts',
    'git rev-parse --abbrev-ref HEAD',
    'git remote -v',
    'git stash list',
    'git ls-files --others --exclude-standard',
    'git tag --list',
    'git branch --contains HEAD',
    'git grep -n KEY',
    'git cat-file -p HEAD:src/a.ts',
  ])('%s reads', async (command) => {
    expect(await outcome(command)).toBe('allow');
  });
  it.each([
    'git -C src status',
    'git -C .. status',
    'git -c core.fsmonitor=./x status',
    'git blame --contents ../ws-evil/s src/a.ts',
    'git tag v1',
    'git tag -d v1',
    'git tag --sort=refname v1',
    'git branch new',
    'git stash',
    'git stash pop',
    'git reflog expire --all',
    'git remote add x y',
    'git remote show origin',
    'git grep -O./run KEY',
    'git for-each-ref --format="%(signature)"',
    'git branch --format="%(signature)"',
    'git cat-file --batch',
    'git worktree add x',
    'git ls-files -X ../ws-evil/s',
  ])('%s may do more', async (command) => {
    expect(await outcome(command)).toBe('ask');
  });
  it('it shows hidden files by an id of their content, also if a file has that name', async () => {
    writeFileSync(join(ws, 'abc123'), 'x');
    expect(await outcome('git cat-file -p abc123', { deny: ['read(./secrets/**)'] })).toBe('ask');
  });
});

describe('a runner', () => {
  const allow = ['bash(npx tsc *)'];
  it.each(['npx tsc', 'npx tsc --noEmit -p tsconfig.json'])(
    '%s runs under a rule that names its program',
    async (line) => {
      expect(await outcome(line, { allow })).toBe('allow');
    },
  );
  it.each(['npx tsc@1.0.0', 'npx tsc-evil', 'npx -p evil tsc', 'npx --yes tsc', 'npx tsc "$X"', 'bunx tsc'])(
    '%s does not run under such a rule',
    async (line) => {
      expect(await outcome(line, { allow })).toBe('ask');
    },
  );
  it('it runs under no rule that leaves its program open', async () => {
    expect(await outcome('npx tsc', { allow: ['bash(npx *)', 'bash(npx t*)', 'bash(*)'] })).toBe('ask');
  });
});

describe.runIf(sandboxStatus().kind !== 'none')('names that only the running line determines', () => {
  const both = async (command: string, options: PermissionOptions = {}) => {
    const { outcome, sandboxed } = await permissions(options).explain('Bash', { command }, ws);
    return [outcome, sandboxed?.outcome];
  };
  it.each([
    'find . -name "*.ts" | xargs wc -l',
    'find . -print0 | xargs -0 -n1 grep -l KEY',
    'ls | xargs -I{} head -3 {}',
    'find . -name "*.ts" -exec grep -ln KEY {} +',
    'find . -type f -exec head -1 {} \\; -print',
    'while read -r f; do cat "$f"; done < <(ls)',
    'for f in $(ls); do wc -l $f; done',
  ])('%s requires approval, and runs without it if the sandbox hides unreadable files', async (command) => {
    expect(await both(command, { deny: ['read(./secrets/**)'] })).toEqual(['ask', 'allow']);
  });
  it.each([
    'find . -name "*.ts" | xargs rm',
    'find . | xargs sh -c "cat"',
    'find . | xargs',
    'xargs -a list cat',
    'find . -exec rm {} +',
    'find . -exec sed -i s/a/b/ {} +',
    'find . -exec cat {} + -delete',
    'find . -execdir cat {} +',
    'find . -exec cat {}',
    'ls | xargs git show',
    'FOO=1 xargs cat',
    'find ../ws-evil -exec cat {} +',
  ])('%s requires approval everywhere', async (command) => {
    expect(await both(command, { deny: ['read(./secrets/**)'] })).toEqual(['ask', 'ask']);
  });
});
