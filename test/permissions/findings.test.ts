/** The verdict on one act: every combination of rules, places, modes, hooks and kinds of acts, by the documented order. */
import { expect, test } from 'vitest';
import { permissions } from '../../src/node.ts';
import { parseRules, type Rule } from '../../src/permissions/rules.ts';
import { type Facts, findingOf, PERMISSION_MODES, type RuleSet, strictest } from '../../src/permissions/verdict.ts';
import { workspace } from './permissionWorkspace.ts';

const [denyRule, askRule, allowRule] = ['bash(a)', 'bash(b)', 'bash(c)'].flatMap((text) =>
  parseRules('rules', [text], `layer of ${text}`),
);

interface Case {
  readonly deny: boolean;
  readonly ask: boolean;
  readonly allow: boolean;
  readonly guarded: boolean;
  readonly reads: boolean;
  readonly edits: boolean;
  readonly needsApproval: boolean;
  readonly mode: RuleSet['mode'];
  readonly hook: RuleSet['hook'];
}

/** The order of docs/permissions.md: the first row that fits decides. */
const ORDER: readonly (readonly [fits: (combination: Case) => boolean, outcome: string, by: string])[] = [
  [({ deny }) => deny, 'deny', 'deny bash(a)'],
  [({ mode, reads }) => mode === 'plan' && !reads, 'deny', 'mode plan'],
  [({ guarded }) => guarded, 'ask', 'protected .git'],
  [({ ask }) => ask, 'ask', 'ask bash(b)'],
  [({ hook }) => hook === 'ask', 'ask', 'hook'],
  [({ needsApproval }) => needsApproval, 'ask', 'needsApproval'],
  [({ allow }) => allow, 'allow', 'allow bash(c)'],
  [({ hook }) => hook === 'allow', 'allow', 'hook'],
  [({ mode }) => mode === 'bypass', 'allow', 'mode bypass'],
  [({ reads }) => reads, 'allow', 'read-only'],
  [({ mode, edits }) => mode === 'acceptEdits' && edits, 'allow', 'mode acceptEdits'],
];

const FLAGS = ['deny', 'ask', 'allow', 'guarded', 'reads', 'edits', 'needsApproval'] as const;
function* cases(): Generator<Case> {
  for (let bits = 0; bits < 2 ** FLAGS.length; bits += 1) {
    const flags = Object.fromEntries(FLAGS.map((name, at) => [name, (bits >> at) % 2 === 1])) as unknown as Case;
    for (const mode of PERMISSION_MODES)
      for (const hook of ['allow', 'ask', undefined] as const) yield { ...flags, mode, hook };
  }
}

const listed = (isListed: boolean, rule: Rule | undefined): Rule[] => (isListed && rule ? [rule] : []);

test('in every combination the first of the documented steps decides, and names its rule with its layer', () => {
  const wrong: unknown[] = [];
  for (const combination of cases()) {
    const facts: Facts = {
      deny: listed(combination.deny, denyRule),
      ask: listed(combination.ask, askRule),
      allow: listed(combination.allow, allowRule),
      guarded: combination.guarded ? '.git' : undefined,
      reads: combination.reads,
      edits: combination.edits,
      save: 'bash(x)',
    };
    const { mode, hook, needsApproval } = combination;
    const finding = findingOf(facts, { mode, hook, needsApproval, deny: [], ask: [], allow: [], protect: [] });
    const [, outcome, by] = ORDER.find(([fits]) => fits(combination)) ?? [undefined, 'ask', `mode ${mode}`];
    const rule = /^(?:deny|ask|allow) (.*)$/.exec(by)?.[1];
    const layer = rule === undefined ? undefined : `layer of ${rule}`;
    const isLast = by === `mode ${mode}` && outcome === 'ask';
    const isRight =
      finding.outcome === outcome &&
      finding.by === by &&
      finding.layer === layer &&
      // "Always" is offered where a rule would have been sufficient, and nowhere else.
      (finding.save === 'bash(x)') === isLast;
    if (!isRight) wrong.push({ combination, finding });
  }
  expect(wrong).toEqual([]);
});

test('every rule that fits is listed once, those that deny first', () => {
  const rules = { mode: 'default' as const, deny: [], ask: [], allow: [], protect: [] };
  const facts = {
    deny: listed(true, denyRule),
    ask: listed(true, askRule),
    allow: listed(true, allowRule),
    reads: false,
  };
  expect(findingOf(facts, rules).matched).toEqual(['bash(a)', 'bash(b)', 'bash(c)']);
  expect(findingOf({ ...facts, ask: facts.deny, allow: facts.deny }, rules).matched).toEqual(['bash(a)']);
});

test('of several findings the first of the strictest counts', () => {
  const finding = (outcome: 'allow' | 'ask' | 'deny', by: string) => ({ outcome, by, matched: [] });
  const [allow, ask, deny] = (['allow', 'ask', 'deny'] as const).map((outcome) => finding(outcome, 'first'));
  const later = (['allow', 'ask', 'deny'] as const).map((outcome) => finding(outcome, 'later'));
  if (!allow || !ask || !deny) throw new Error('three findings are made');
  expect(strictest([allow, ...later.slice(0, 1)])).toBe(allow);
  expect(strictest([allow, ask, ...later.slice(0, 2)])).toBe(ask);
  expect(strictest([allow, deny, ask, ...later])).toBe(deny);
  expect(() => strictest([])).toThrow(TypeError);
});

test.each([
  ['ls; make', { allow: ['bash(make *)'] }, 'allow bash(make *)'],
  ['cat README.md > src/new.ts', { allow: ['edit(./src/**)'] }, 'allow edit(./src/**)'],
  ['ls > src/new.ts; make', { allow: ['edit(./src/**)', 'bash(make *)'] }, 'allow edit(./src/**)'],
  ['ls > src/new.ts', { mode: 'bypass' }, 'mode bypass'],
  ['ls; cat README.md', { allow: ['bash(make *)'] }, 'read-only'],
] as const)('the verdict on %s names what allowed more than reading, if anything did', async (command, options, by) => {
  const { allow = [], ...mode }: { allow?: readonly string[]; mode?: 'bypass' } = options;
  const verdict = await permissions({ ...mode, allow: [...allow] }).explain('Bash', { command }, await workspace());
  expect(verdict).toMatchObject({ outcome: 'allow', by });
});

/** For each mode: a read, an edit inside, an edit outside, a command that reads, one that changes, and an unknown tool. */
const BY_MODE: { readonly [mode in RuleSet['mode']]: readonly string[] } = {
  default: ['allow', 'ask', 'ask', 'allow', 'ask', 'ask'],
  acceptEdits: ['allow', 'allow', 'ask', 'allow', 'ask', 'ask'],
  plan: ['allow', 'deny', 'deny', 'allow', 'deny', 'deny'],
  dontAsk: ['allow', 'deny', 'deny', 'allow', 'deny', 'deny'],
  bypass: ['allow', 'allow', 'allow', 'allow', 'allow', 'allow'],
};

test.each(PERMISSION_MODES)('in mode %s each kind of call has the documented outcome', async (mode) => {
  const cwd = await workspace();
  const calls = [
    ['Read', { file_path: 'README.md' }],
    ['Edit', { file_path: 'README.md' }],
    ['Write', { file_path: '../other.txt' }],
    ['Bash', { command: 'git status' }],
    ['Bash', { command: 'npm install' }],
    ['Deploy', {}],
  ] as const;
  const rules = permissions({ mode });
  const outcomes = [];
  for (const [name, args] of calls) outcomes.push((await rules.explain(name, args, cwd)).outcome);
  expect(outcomes).toEqual(BY_MODE[mode]);
});
