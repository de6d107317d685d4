/** The wider rules that "always allow" offers. */
import { expect, it } from 'vitest';
import { permissions } from '../../src/permissions/permissions.ts';
import { widerRule } from '../../src/permissions/readings/widerRules.ts';

const HOME = '/home/u';

it('a wider rule keeps the program with what it does, the directory of a file, or the server of a tool', () => {
  const rules = {
    'bash(cat ../notes)': 'bash(cat *)',
    'bash(git log --all)': 'bash(git log *)',
    'bash(npm test)': 'bash(npm test *)',
    'bash(npm run build --fast)': 'bash(npm run build *)',
    'edit(./src/cli/main.ts)': 'edit(./src/cli/**)',
    'edit(./src/main.ts)': 'edit(./src/**)',
    'read(//home/u/notes/todo/x.md)': 'read(//home/u/notes/todo/**)',
    mcp__files__write_file: 'mcp__files__*',
  };
  expect(Object.fromEntries(Object.keys(rules).map((rule) => [rule, widerRule(rule, HOME)]))).toEqual(rules);
});

const commands =
  'rm -r build|/bin/rm x|./cat x|git|git -C x log|git push origin main|git commit -m x|git clean -fd|git rm x|git branch -D x' +
  '|git fetch x|python3 x.py|python3.11 x.py|awk -f a.awk x|gawk -f a x|sed -i s/a/b/ x|tee x|truncate -s 0 x|unlink x|find . -name x' +
  '|rg x|sort x|touch x|mkdir x|cp a b|make all|tsx x.ts|npx tsc -p .|uv run x|docker rm x|curl x|npm install x|npm run|npm run ../x' +
  '|npm run --x|bun run x.ts|\\* x';
it.each([
  ...commands.split('|').map((command) => `bash(${command})`),
  'edit(./main.ts)',
  'read(//etc/passwd)',
  'read(//etc/app/x.conf)',
  'read(//home/u/x)',
  'read(//home/u/.ssh/id)',
  'read(//home/other/a/b/c)',
  'read(//home/user/a/b/c)',
  'deploy',
])('%s has no wider rule', (rule) => {
  expect(widerRule(rule, HOME)).toBeUndefined();
});

it('"always allow" saves the wider rules where they would be enough, and the literal ones otherwise', async () => {
  const cwd = process.cwd();
  const rules = permissions({ deny: ['bash(git add secret)'] });
  const line = { command: 'git add a && rm b' };
  expect(await rules.widened('Bash', line, cwd)).toEqual(['bash(git add *)', 'bash(rm b)']);
  for (const command of ['rm b', 'ls', 'docker exec x ls', 'git add secret', 'git add "$X"', 'git add x > .git/config'])
    expect(await rules.widened('Bash', { command }, cwd)).toEqual([]);
  expect(await rules.remember('Bash', line, cwd, ['bash(*)'])).toEqual(['bash(git add a)', 'bash(rm b)']);
  const outcome = async (command: string) => (await rules.explain('Bash', { command }, cwd)).outcome;
  expect([await outcome('git add a'), await outcome('git add c')]).toEqual(['allow', 'ask']);
  const wider = await rules.widened('Bash', { command: 'git add c' }, cwd);
  expect(await rules.remember('Bash', { command: 'git add c' }, cwd, wider)).toEqual(['bash(git add *)']);
  expect([await outcome('git add d'), await outcome('git add secret')]).toEqual(['allow', 'deny']);
  expect(await rules.widened('Write', { file_path: 'src/cli/x.ts', content: '' }, cwd)).toEqual(['edit(./src/cli/**)']);
});
