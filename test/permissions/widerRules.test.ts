/** The wider rules that "always allow" offers. */
import { expect, it } from 'vitest';
import { permissions } from '../../src/permissions/permissions.ts';
import { widerRule } from '../../src/permissions/readings/widerRules.ts';

it('a wider rule keeps the program with what it does, the directory of a file, or the server of a tool', () => {
  const rules = {
    'bash(touch a mark)': 'bash(touch *)',
    'bash(git push origin main)': 'bash(git push *)',
    'bash(npm run build --fast)': 'bash(npm run build *)',
    'bash(npx tsc -p .)': 'bash(npx tsc *)',
    'edit(./src/cli/main.ts)': 'edit(./src/cli/**)',
    'read(//etc/app/x.conf)': 'read(//etc/app/**)',
    mcp__files__write_file: 'mcp__files__*',
  };
  expect(Object.fromEntries(Object.keys(rules).map((rule) => [rule, widerRule(rule)]))).toEqual(rules);
});

it.each([
  'bash(rm -r build)',
  'bash(/bin/rm x)',
  'bash(git)',
  'bash(git -C x push)',
  'bash(python3 x.py)',
  'bash(curl x)',
  'bash(npm run)',
  'bash(\\* x)',
  'edit(./main.ts)',
  'read(//etc/passwd)',
  'deploy',
])('%s has no wider rule', (rule) => {
  expect(widerRule(rule)).toBeUndefined();
});

it('"always allow" saves the wider rules where they would be enough, and the literal ones otherwise', async () => {
  const cwd = process.cwd();
  const rules = permissions({ deny: ['bash(touch secret)'] });
  const line = { command: 'touch a && rm b' };
  expect(await rules.widened('Bash', line, cwd)).toEqual(['bash(touch *)', 'bash(rm b)']);
  for (const command of ['rm b', 'ls', 'docker exec x ls', 'touch secret', 'touch "$X"', 'touch .git/config'])
    expect(await rules.widened('Bash', { command }, cwd)).toEqual([]);
  expect(await rules.remember('Bash', line, cwd, ['bash(*)'])).toEqual(['bash(touch a)', 'bash(rm b)']);
  const outcome = async (command: string) => (await rules.explain('Bash', { command }, cwd)).outcome;
  expect([await outcome('touch a'), await outcome('touch c')]).toEqual(['allow', 'ask']);
  const wider = await rules.widened('Bash', { command: 'touch c' }, cwd);
  expect(await rules.remember('Bash', { command: 'touch c' }, cwd, wider)).toEqual(['bash(touch *)']);
  expect([await outcome('touch d'), await outcome('touch secret')]).toEqual(['allow', 'deny']);
  expect(await rules.widened('Write', { file_path: 'src/cli/x.ts', content: '' }, cwd)).toEqual(['edit(./src/cli/**)']);
});
