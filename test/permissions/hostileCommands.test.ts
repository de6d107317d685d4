/** Commands that try to evade the permission rules, each with its outcome. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import { permissions } from '../../src/node.ts';
import { explain, HOSTILE_RULES, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
type Outcome = 'allow' | 'ask' | 'deny';
const NOT_ALLOWED = ['ask', 'deny'] as const;

const outcomeOf = async (command: string, options = HOSTILE_RULES): Promise<Outcome> =>
  (await explain(options, 'Bash', { command }, ws)).outcome;

const ROWS: readonly [id: string, command: string, expected: Outcome | readonly Outcome[]][] = [
  ['H-200', 'git status; rm -rf x', 'deny'],
  ['H-201', 'git status && make', 'ask'],
  ['H-201', 'git status || make', 'ask'],
  ['H-201', 'git status | tee f', 'ask'],
  ['H-201', 'git status & make', 'ask'],
  ['H-201', 'git status\nmake', 'ask'],
  ['H-202', 'git log $(touch p)', 'ask'],
  ['H-202', 'git log `touch p`', 'ask'],
  ['H-203', 'echo "$(rm x)"', 'deny'],
  ['H-205', 'cat <<EOF\n$(rm x)\nEOF', 'deny'],
  ['H-205', "cat <<'EOF'\n$(rm x)\nEOF", 'allow'],
  ['H-206', 'echo hi > ~/.bashrc', 'ask'],
  ['H-206', 'echo hi >> .git/hooks/pre-commit', 'ask'],
  ['H-208', 'git log --output=../../x', 'ask'],
  ['H-208', "git -c core.pager='sh -c id' log", 'ask'],
  ['H-208', 'git log --ext-diff', 'ask'],
  ['H-208', 'git log --outp=x', 'ask'],
  ['H-209', 'git -C /other push', 'ask'],
  ['H-209', 'FOO=1 git push', 'ask'],
  ['H-209', 'git  push', 'ask'],
  ['H-209', '/usr/bin/git push', 'ask'],
  ['H-209', '"g"it pu\\sh', 'ask'],
  ['H-210', 'LD_PRELOAD=./x.so git status', 'ask'],
  ['H-210', 'PATH=.:$PATH git status', 'ask'],
  ['H-210', 'GIT_SSH_COMMAND=x git status', 'ask'],
  ['H-210', 'PATH=.; git status', 'ask'],
  ['H-210', 'for PATH in .; do git status; done', 'ask'],
  ['H-210', 'export PATH=. && git status', 'ask'],
  ['H-211', 'NODE_ENV=test npm test a', 'allow'],
  ['H-212', 'timeout 5 rm x', 'deny'],
  ['H-212', 'nice -n 1 rm x', 'deny'],
  ['H-212', 'command rm x', 'deny'],
  ['H-212', '\\rm x', 'deny'],
  ['H-212', 'env rm x', 'deny'],
  ['H-212', 'env -i A=1 rm x', 'deny'],
  ['H-212', 'sudo -u root rm x', 'deny'],
  ['H-212', 'time rm x', 'deny'],
  ['H-212', 'flock lock rm x', 'deny'],
  ['H-212', 'ssh host rm x', 'deny'],
  ['H-212', 'direnv exec . rm x', 'deny'],
  ['H-212', 'uv run rm x', 'deny'],
  ['H-212', 'RM x', 'deny'],
  ['H-213', "git -c core.editor='rm x' commit", 'deny'],
  ['H-213', "git config alias.z '!rm x'", 'deny'],
  ['H-213', "git rebase --exec='rm x' main", 'deny'],
  ['H-213', 'git bisect run rm x', 'deny'],
  ['H-212', "env --split-string='rm x'", 'deny'],
  ['H-213', 'bash -c "rm x"', 'deny'],
  ['H-213', 'eval "rm x"', 'deny'],
  ['H-213', "sh <<< 'rm x'", 'deny'],
  ['H-213', 'xargs -n1 rm', 'deny'],
  ['H-213', 'bash -c "ls"', 'ask'],
  ['H-213', 'echo ls | sh', 'ask'],
  ['H-213', 'bash <<EOF\nrm x\nEOF', 'deny'],
  ['H-214', 'find . -exec rm {} \\;', 'deny'],
  ['H-214', 'find . -delete', 'ask'],
  ['H-214', 'find . -fprint x', 'ask'],
  ['H-214', 'find . $X', 'ask'],
  ['H-214', 'find . -d*', 'ask'],
  ['H-211', 'npm test --script-sh=./x', 'ask'],
  ['H-211', 'npm test --prefix ../ws-evil', 'ask'],
  ['H-216', 'git status\rrm -rf x', 'ask'],
  ['H-219', `${'true && '.repeat(60)}rm x`, 'deny'],
  ['H-219', `${'true && '.repeat(300)}rm x`, 'deny'],
  ['H-219', `${'true && '.repeat(300)}true`, 'ask'],
  ['H-220', 'echo a;'.repeat(1_572), 'ask'],
  ['H-221', 'npm test &&', 'ask'],
  ['H-221', 'npm test "a', 'ask'],
  ['H-221', 'if true; then', 'ask'],
  ['H-222', 'git(){ rm x; }; git status a', 'deny'],
  ['H-222', 'git(){ make; }; git status a', 'ask'],
  ['H-222', 'alias git=rm; git status a', 'deny'],
  ['H-224', 'cd /other && git status a', 'ask'],
  ['H-224', 'cd src && git status a', 'ask'],
  ['H-225', 'cat .env', 'deny'],
  ['H-225', 'head ./sub/.env', 'deny'],
  ['H-225', 'cat .e*v', 'ask'],
  ['H-225', 'cat < .env', 'deny'],
  ['H-225', 'cat first', 'deny'],
  ['H-225', 'git show HEAD:.env', 'deny'],
  ['H-225', 'grep --file=.env x', 'deny'],
  ['H-225', 'git log -p -- .env', 'deny'],
  ['H-225', 'git log -p .env', 'deny'],
  ['H-225', 'git diff HEAD~1 -- README.md sub/.env', 'deny'],
  ['H-225', "git log -p -- '*.env'", 'ask'],
  ['H-225', "git log -p -- ':(icase).ENV'", 'deny'],
  ['H-225', 'for f in .env; do cat $f; done', 'deny'],
  ['H-225', 'cat "$PWD/.env"', 'deny'],
  ['H-226', "node -e \"require('fs').readFileSync('.env')\"", 'ask'],
  ['H-234', 'gitx', 'ask'],
  ['(arithmetic runs what a variable holds)', "x='a[$(touch p)]'; echo $((x))", 'ask'],
  ['(a test runs what a text holds)', "[[ 'a[$(touch p)]' -eq 0 ]]", 'ask'],
  ['(printf sets a variable)', "printf -v 'a[$(touch p)]' x", 'ask'],
  ['(a prompt is expanded)', `echo ${'$'}{x@P}`, 'ask'],
  ['(a network device)', 'cat < /dev/tcp/127.0.0.1/80', 'ask'],
  ['(a second word of uniq is an output)', 'uniq README.md out', 'ask'],
  ['(sort writes a file)', 'sort -o out README.md', 'ask'],
  ['(sed edits in place)', 'sed -i s/a/b/ README.md', 'ask'],
  ['(sed runs commands)', "sed -n '1e touch p' README.md", 'ask'],
  ['(a link out of the workspace)', 'cat d/s', 'ask'],
  ['(a glob over a link)', 'cat d*/s', 'ask'],
  ['(a parent directory)', 'cat ../ws-evil/s', 'ask'],
  ['(the home directory)', 'cat ~/.ssh/id_rsa', 'ask'],
  ['(a tilde of somebody else)', 'cat ~root/x', 'ask'],
  ['(leaving, then reading)', 'cd .. && cat ws-evil/s', 'ask'],
  ['(an unquoted variable)', 'head $X', 'ask'],
  ['(a computed name)', '$CMD x', 'ask'],
  ['(a process substitution)', 'cat <(touch p)', 'ask'],
  ['(a coprocess)', 'coproc echo a', 'ask'],
  ['(a pager by option)', 'rg --pre=sh x', 'ask'],
  ['(a directional override)', 'echo \u202e', 'ask'],
  ['(a git alias for a shell)', "git -c alias.x='!rm x' x", 'deny'],
  ['(docker)', 'docker exec c rm x', 'deny'],
  ['(npx)', 'npx rm x', 'deny'],
  ['(a redirection of a group)', '{ echo a; } > out', 'ask'],
  ['(a computed target)', 'echo a > $OUT', 'ask'],
  ['(a descriptor variable)', 'echo a {PATH}>&2', 'ask'],
];

describe('a rule for every command of an interpreter', () => {
  const rules = {
    allow: ['node', 'perl', 'ruby', 'python3', 'php', 'bun', 'deno', 'sh', 'bash'].map((name) => `bash(${name} *)`),
  };

  it.each([
    ...['node -e x', 'node -p x', 'node -pe x', 'node --eval x', 'node --print=x', 'node -r ./x main.js'],
    ...['node --import ./x main.js', 'perl -e x', 'perl -pe x', 'perl -ne x', 'perl -E x', 'ruby -e x'],
    ...['python3 -c x', 'python3 -Ic x', 'php -r x', 'bun -e x', 'bun --print x', 'deno --eval=x'],
    ...['node -', 'python3 -', 'node', 'sh -c x', 'bash -lc x', 'bash -', 'timeout 5 node -p x'],
  ])('H-226 it does not allow %s, whose program is in its words or its input', async (command) => {
    expect(await outcomeOf(command, rules)).toBe('ask');
  });

  it.each(['node main.js', 'perl x.pl -e', 'python3 -m http.server', 'node --test', 'bash run.sh'])(
    'it allows %s',
    async (command) => {
      expect(await outcomeOf(command, rules)).toBe('allow');
    },
  );
});

describe('hostile commands', () => {
  it.each(ROWS)('%s %j', async (_, command, expected) => {
    const outcome = await outcomeOf(command);
    expect([expected].flat()).toContain(outcome);
  });

  it("H-209 the user's rule asks about all five forms", async () => {
    for (const command of ['git -C /other push', 'FOO=1 git push', 'git  push', '/usr/bin/git push', '"g"it pu\\sh']) {
      expect((await explain(HOSTILE_RULES, 'Bash', { command }, ws)).by).toBe('ask bash(git push *)');
    }
  });

  it('H-234 `bash(git *)` matches git and its arguments, not other names that start like it', async () => {
    const options = { allow: ['bash(git *)'] };
    const outcomes = await Promise.all(
      ['git', 'git fetch', 'gitx', 'git-shell'].map((each) => outcomeOf(each, options)),
    );
    expect(outcomes).toEqual(['allow', 'allow', 'ask', 'ask']);
  });

  it.each(['bash(', 'bash()', 'Bash(git *', 'read(***)', 'foo(bar)', 'a b', '', 'read(!x)', 'bash(a\u0000)'])(
    'H-235 the rule %j is refused at the start, and named',
    (rule) => {
      const withRule = (): unknown => permissions({ allow: [rule] });
      expect(withRule).toThrow(ConfigurationError);
      expect(withRule).toThrow(JSON.stringify(rule));
    },
  );

  it('H-237 a denial applies, however specific the allow rule is', async () => {
    const options = { allow: ['bash(aws s3 ls)'], deny: ['bash(aws *)'] };
    expect(await outcomeOf('aws s3 ls', options)).toBe('deny');
  });

  it("H-239 bypass skips neither denials, nor protected places, nor the user's ask rules", async () => {
    const options = { ...HOSTILE_RULES, mode: 'bypass' as const };
    expect(await outcomeOf('rm x', options)).toBe('deny');
    expect((await explain(options, 'Write', { file_path: '.git/config', content: '' }, ws)).outcome).toBe('ask');
    expect(await outcomeOf('cp a .git/config', options)).toBe('ask');
    expect(await outcomeOf('git push', options)).toBe('ask');
    expect(await outcomeOf('make', options)).toBe('allow');
    expect(await outcomeOf('make &&', options)).toBe('ask');
  });

  it('H-241 acceptEdits applies to files inside, and to no command', async () => {
    const mode = 'acceptEdits' as const;
    const edit = (file_path: string) => explain({ mode }, 'Edit', { file_path, old_string: 'a', new_string: 'b' }, ws);
    expect((await edit('src/a.ts')).outcome).toBe('allow');
    expect((await edit('../ws-evil/s')).outcome).toBe('ask');
    expect(await outcomeOf('touch a', { mode })).toBe('ask');
    expect(await outcomeOf('echo a > a', { mode })).toBe('ask');
  });

  it('H-242 an untrusted layer only makes the rules stricter, and its ignored settings are listed', async () => {
    const project = { name: 'project', allow: ['bash(*)'], deny: ['bash(make *)'] };
    const plugin = permissions({ layers: [project] });
    expect(plugin.ignored).toEqual(['project: bash(*)']);
    expect((await plugin.explain('Bash', { command: 'touch a' }, ws)).outcome).toBe('ask');
    expect((await plugin.explain('Bash', { command: 'make a' }, ws)).outcome).toBe('deny');
    const trusted = permissions({ layers: [{ ...project, trusted: true }] });
    expect((await trusted.explain('Bash', { command: 'touch a' }, ws)).outcome).toBe('allow');
  });

  it('in plan mode read-only calls are allowed and all others denied, with allow rules or without', async () => {
    const options = { ...HOSTILE_RULES, mode: 'plan' as const };
    expect(await outcomeOf('git status', options)).toBe('allow');
    expect(await outcomeOf('npm test', options)).toBe('deny');
    expect((await explain(options, 'Read', { file_path: 'src/a.ts' }, ws)).outcome).toBe('allow');
    expect((await explain(options, 'Write', { file_path: 'a', content: '' }, ws)).outcome).toBe('deny');
  });

  it('in dontAsk mode every question is a denial', async () => {
    const options = { ...HOSTILE_RULES, mode: 'dontAsk' as const };
    expect(await outcomeOf('git push', options)).toBe('deny');
    expect(await outcomeOf('make', options)).toBe('deny');
    expect(await outcomeOf('git status', options)).toBe('allow');
  });

  it('no hostile row is allowed, except two that contain nothing hostile', () => {
    const allowed = ROWS.filter(
      ([, , expected]) => ![expected].flat().every((each) => NOT_ALLOWED.includes(each as 'ask')),
    );
    expect(allowed.map(([id]) => id)).toEqual(['H-205', 'H-211']);
  });

  it('a pathspec that git excludes is not shown, and a revision is not a path outside', async () => {
    for (const command of [
      "git log -p -- . ':!.env'",
      'git log main..HEAD~3 ^dev',
      'git diff --stat origin/main...HEAD',
    ])
      expect(await outcomeOf(command), command).toBe('allow');
  });

  it('H-225 git shows the files of a commit without approval only if no rule hides one, or if the named files are none of them', async () => {
    const hiding = { deny: ['read(**/.env)'] };
    const whole = `git diff|git diff HEAD~1|git diff --cached|git diff -- .|git diff sub|git diff -- README.md sub|git diff HEAD~1:. HEAD:.
      |git diff -- gone.txt|git diff --stat -p|git diff --check|git show|git show HEAD|git show HEAD:|git show --stat --patch
      |git show HEAD HEAD:README.md|git log -p|git log --pat|git log --cc|git log -L1,5:README.md|git log --full-diff -p README.md`;
    const some = `git diff --stat|git diff --name-only HEAD~1|git diff README.md|git diff HEAD~1 -- src/a.ts|git show --stat HEAD
      |git show HEAD:README.md|git log --oneline -5|git log --author=me --since=yesterday|git log -p -- src/a.ts|git log -p HEAD README.md`;
    const linesOf = (text: string): string[] => text.split('|').map((line) => line.trim());
    for (const command of linesOf(whole)) expect(await outcomeOf(command, hiding), command).toBe('ask');
    for (const command of linesOf(some)) expect(await outcomeOf(command, hiding), command).toBe('allow');
    for (const command of ['git log -L1,5:.env', 'git log -L :main:.env', 'git show HEAD:sub/.env'])
      expect(await outcomeOf(command, hiding), command).toBe('deny');
    for (const command of ['git diff', 'git show HEAD', 'git log -p'])
      expect(await outcomeOf(command, {}), command).toBe('allow');
    expect(await outcomeOf('npm test -- --prefix x')).toBe('allow');
    expect(await outcomeOf('git diff', { ...hiding, allow: ['bash(git diff *)'] })).toBe('allow');
  });

  it('a command that follows links, or reads more than its named files, is not read-only', async () => {
    const leaving = `grep -R x .|grep --deref x .|rg -L x|rg --follow x|rg --file=d/s x|rg --ignore-file=d/s x|find -L .|tree -l|ls -LR|diff -r . docs
      |jq -n env|jq -n '$ENV'|jq -n 'import "s" as $x {search: "./d"}; $x'`;
    for (const command of leaving.split('|')) expect(await outcomeOf(command.trim(), {}), command).toBe('ask');
    for (const command of ['grep -rn x .', 'rg --files', 'ls -lR', 'jq .a package.json'])
      expect(await outcomeOf(command, {}), command).toBe('allow');
    expect(await outcomeOf('grep -d recurse KEY .', { deny: ['read(**/.env)'] })).toBe('ask');
  });

  it('H-214 a glob that may become an option requires approval, whatever allows the command', async () => {
    const place = await workspace();
    const explainHostile = (command: string) => explain(HOSTILE_RULES, 'Bash', { command }, place);
    expect((await explainHostile('find *')).outcome).toBe('allow');
    await writeFile(join(place, '-delete'), '');
    for (const command of ['find *', 'find . -d*', 'git log *', 'wc *'])
      expect((await explainHostile(command)).outcome, command).toBe('ask');
    for (const command of ['find src/*', 'wc -l src/*.ts'])
      expect((await explainHostile(command)).outcome, command).toBe('allow');
  });

  it('a line that changes its directory too often requires approval', async () => {
    const line = (times: number): string => [...Array(times).fill('cd src'), 'ls'].join(' && ');
    expect(await outcomeOf(line(3), {})).toBe('allow');
    expect(await outcomeOf(line(20), {})).toBe('ask');
  });

  it('the parts of a line are listed one by one', async () => {
    const { parts } = await explain(HOSTILE_RULES, 'Bash', { command: 'git status && make > out; rm x' }, ws);
    expect(parts.map(({ text, outcome }) => [text, outcome])).toEqual([
      ['git status', 'allow'],
      ['make > out', 'ask'],
      ['> out', 'ask'],
      ['rm x', 'deny'],
    ]);
  });
});
