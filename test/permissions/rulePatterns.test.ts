/** What the patterns of rules mean, and which patterns are refused because they would match nothing. */
import { describe, expect, it } from 'vitest';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
const bash = async (list: 'allow' | 'ask' | 'deny', rule: string, command: string): Promise<string> => {
  const { outcome, by } = await explain({ [list]: [rule] }, 'Bash', { command }, ws);
  return by === `${list} ${rule}` ? outcome : `${outcome} by ${by}`;
};

describe('blanks in the command of a rule', () => {
  it.each(['deny', 'ask', 'allow'] as const)(
    'any run of them in an %s rule matches any run in a command',
    async (list) => {
      for (const rule of [
        'bash(tool  run *)',
        'bash(tool\t run  *)',
        'bash(tool   run   :*)',
        'bash(tool  run x)',
        'bash(tool  *n x)',
      ])
        for (const command of ['tool run x', 'tool  run  x', 'tool\trun x'])
          expect([rule, command, await bash(list, rule, command)]).toEqual([rule, command, list]);
    },
  );

  it('a run beside quotes or a substitution matches too', async () => {
    expect(await bash('deny', 'bash(tool "a  b")', 'tool   "a  b"')).toBe('deny');
    expect(await bash('deny', 'bash(tool  $(x  y) *)', 'tool $(x  y)  z')).toBe('deny');
    expect(await bash('deny', "bash(echo it's  *)", `echo "it's" here`)).toBe('deny');
  });

  it('blanks in quotes, and a blank behind a backslash, count as they are', async () => {
    const rules = [`bash(tool 'a  b')`, `bash(tool  'a  b')`];
    for (const list of ['deny', 'allow'] as const)
      for (const rule of rules) {
        expect([rule, await bash(list, rule, `tool 'a  b'`)]).toEqual([rule, list]);
        expect([rule, await bash(list, rule, `tool  'a  b'`)]).toEqual([rule, list]);
        expect([rule, await bash(list, rule, `tool 'a b'`)]).toEqual([rule, 'ask by mode default']);
      }
    expect(await bash('deny', 'bash(tool "a  b" *)', 'tool "a b" c')).toBe('ask by mode default');
    expect(await bash('deny', String.raw`bash(tool a\\  b)`, String.raw`tool a\  b`)).toBe('deny');
    expect(await bash('deny', String.raw`bash(tool a\  b)`, 'tool a b')).toBe('ask by mode default');
  });
});
