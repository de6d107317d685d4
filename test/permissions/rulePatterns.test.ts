/** The meaning of patterns in rules, and the patterns that are refused because they would match nothing. */
import { describe, expect, it } from 'vitest';
import { permissions } from '../../src/node.ts';
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

  it('blanks in quotes, and a blank after a backslash, count as they are', async () => {
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

describe('a path rule with braces', () => {
  const outcome = async (rule: string, file_path: string, list: 'allow' | 'deny' = 'deny'): Promise<string> => {
    const { outcome, by } = await explain({ [list]: [rule] }, 'Read', { file_path }, ws);
    return by === `${list} ${rule}` ? outcome : `other: ${outcome}`;
  };

  it('matches each alternative, as in bash', async () => {
    for (const [rule, files, others] of [
      ['read(*.{pem,key})', ['a.pem', 'sub/a.key'], ['a.{pem,key}', 'a.txt']],
      ['read({./src,//etc/ssl}/**)', ['src/a.ts', '/etc/ssl/x'], ['docs/a.ts']],
      ['read(./{a,b{c,d},}x)', ['ax', 'bcx', 'bdx', 'x'], ['bx']],
      [String.raw`read(x\{a,b\})`, ['x{a,b}'], ['xa']],
      ['read({name})', ['{name}'], ['name']],
      ['read({{name}}/*.{a,b})', ['{{name}}/x.a', '{{name}}/x.b'], ['name/x.a']],
    ] as const) {
      for (const file of files) expect([rule, file, await outcome(rule, file)]).toEqual([rule, file, 'deny']);
      for (const file of others) expect([rule, file, await outcome(rule, file)]).toEqual([rule, file, 'other: allow']);
    }
    expect(await outcome(`read(/${ws}-{evil,x}/**)`, '../ws-evil/s', 'allow')).toBe('allow');
  });

  it('hides the files of each alternative from commands, and protects them', async () => {
    const { outcome } = await explain({ deny: ['read(./s{x,ub}/**)'] }, 'Bash', { command: 'cat sub/.env' }, ws);
    expect(outcome).toBe('deny');
    const options = { allow: ['edit(./**)'], protect: ['*.{lock,sum}'] };
    expect((await explain(options, 'Write', { file_path: 'go.sum', content: '' }, ws)).by).toBe('protected go.sum');
  });

  it('is one rule in the verdict', async () => {
    const { matched } = await explain({ deny: ['read({sub,sub/.env,.env})'] }, 'Read', { file_path: 'sub/.env' }, ws);
    expect(matched).toEqual(['read({sub,sub/.env,.env})']);
  });
});

describe('a path rule that would match nothing', () => {
  it.each([
    ['read(!(x))', 'begins with !'],
    ['read(src/!(x))', 'has !( … )'],
    ['read(@(a|b).key)', 'has @( … )'],
    ['read(a+(b))', 'has +( … )'],
    ['read(?(a)b)', 'has ?( … )'],
    ['read(*(a)b)', 'has *( … )'],
    ['read(a{1..3})', 'has a range in braces'],
    ['read(a{x..z..2})', 'has a range in braces'],
    ['read(a{b,c)', 'has { without }'],
    ['read([z-a].key)', 'has the range z-a'],
    ['read(~)', 'begins with ~'],
    ['read(~root/x)', 'begins with ~'],
    ['edit($HOME/x)', 'begins with a variable'],
    [`edit(${'$'}{HOME}/x)`, 'begins with a variable'],
    ['read({a,../b})', 'holds a .. part'],
    [`read(${'{a,b}'.repeat(9)})`, 'has more than 100 alternatives'],
  ])('%s is refused with its text and the reason', (rule, why) => {
    for (const options of [{ deny: [rule] }, { layers: [{ name: 'l', deny: [rule] }] }])
      expect(() => permissions(options)).toThrow(`the permission rule ${JSON.stringify(rule)} ${why}`);
  });

  it.each([
    [String.raw`read(src/\!(x))`, 'src/!(x)'],
    [String.raw`read(\$HOME)`, '$HOME'],
    [String.raw`read(\~root)`, '~root'],
    ['read(./$HOME)', '$HOME'],
    ['read(./~)', '~'],
    ['read(app/(shop)/[[]id].ts)', 'app/(shop)/[id].ts'],
    ['read([!(].key)', 'a.key'],
  ])('%s names %s', async (rule, file_path) => {
    expect((await explain({ deny: [rule] }, 'Read', { file_path }, ws)).outcome).toBe('deny');
  });

  it.each(['a{b,c}', 'x@(y)', '{{a,b}', 'q+(r'])('"always allow" of %s saves a rule for it', async (file_path) => {
    const rules = permissions({});
    const args = { file_path, content: '' };
    expect(await rules.remember('Write', args, ws)).toHaveLength(1);
    expect((await rules.explain('Write', args, ws)).outcome).toBe('allow');
  });
});
