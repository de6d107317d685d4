/** Tests every policy: its accepted values, and the refusal of all others at the start with a helpful message. */
import { describe, expect, it } from 'vitest';
import { defaultPolicies } from '../machines/index.ts';
import { defaults, mergedPolicies, policiesValidator, policyRows } from '../src/agentPolicies.ts';
import { ConfigurationError, createAgent, type DeepPartial, type Policies, presets } from '../src/index.ts';
import type { Validator } from '../src/validation.ts';
import { scripted } from './support/scriptedReplies.ts';

const model = scripted([]);
const start = (policies: unknown) => createAgent({ model, policies: policies as DeepPartial<Policies> });

/** Returns the text of the refusal. Undefined if the policies are accepted. */
function refusal(policies: unknown): string | undefined {
  try {
    start(policies);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as Error).message;
  }
}
/** `a.b` set to a value, as a caller would write it. */
const having = (path: string, value: unknown): unknown =>
  path.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);

const WRONG = { null: null, text: 'x', empty: '', object: {}, list: [1], none: [], NaN, negative: -1, half: 0.5 };
const values: Record<string, unknown> = {
  ...WRONG,
  infinite: Number.POSITIVE_INFINITY,
  zero: 0,
  one: 1,
  true: true,
  false: false,
  function: () => true,
  symbol: Symbol('s'),
  big: 1n,
};
const all = Object.keys(values);
const except = (...taken: string[]): string[] => all.filter((name) => !taken.includes(name));

/** The values of the table that a policy refuses, by the check that its row declares. */
function refusedBy({ check, isOff }: CheckedRow): string[] {
  const taken = (): string[] => {
    switch (check.kind) {
      case 'choice':
        return [];
      case 'some':
        return ['none'];
      case 'flag':
        return ['true', 'false'];
      case 'whole':
        return check.least === 0 ? ['one', 'zero'] : ['one'];
      case 'number':
        return check.least === 0 ? ['one', 'zero', 'half'] : ['one'];
      default:
        return HOST_TAKEN[String(check.expected)] ?? [];
    }
  };
  return except(...taken(), ...(isOff ? ['false'] : []));
}
interface CheckedRow {
  readonly check: { readonly kind?: string; readonly least?: number; readonly expected?: string };
  readonly isOff?: true;
}
/** The values that checks of the host take, by their words. */
const HOST_TAKEN: Record<string, string[]> = {
  'a function': ['function'],
  'a list of models': ['none'],
  [policyRows.context.check.expected]: ['none'],
  [policyRows.textToolCalls.check.expected]: ['false', 'none'],
};
type CheckedRows = { readonly [name: string]: CheckedRow | { readonly rows: CheckedRows } };
const rowsOf = (rows: CheckedRows, path = ''): [string, CheckedRow][] =>
  Object.entries(rows).flatMap(([key, cell]) =>
    'rows' in cell ? rowsOf(cell.rows, `${path}${key}.`) : [[`${path}${key}`, cell] as [string, CheckedRow]],
  );

// Only models with prices take a budget, so it is refused for another reason too.
const budget = 'limits.costUsd';
const refused: Record<string, string[]> = Object.fromEntries(
  rowsOf(policyRows as unknown as CheckedRows)
    .filter(([path]) => path !== budget)
    .map(([path, row]) => [path, refusedBy(row)]),
);

/** Every policy by its path; groups of policies are not one. */
function pathsOf(value: object, path = ''): string[] {
  return Object.entries(value).flatMap(([key, child]): string[] => {
    const at = path === '' ? key : `${path}.${key}`;
    return typeof child === 'object' && child !== null && !Array.isArray(child) ? pathsOf(child, at) : [at];
  });
}

/** Validators of single policies by their paths; a group has none of its own. */
const validatorsOf = ({ fields = {} }: Validator, path = ''): [string, Validator][] =>
  Object.entries(fields).flatMap(([key, validator]) =>
    validator.fields ? validatorsOf(validator, `${path}${key}.`) : [[`${path}${key}`, validator]],
  );
const policyValidators = new Map(validatorsOf(policiesValidator));

describe('the table of policies', () => {
  const own = Object.keys(refused).filter((path) => !path.startsWith('toolRetry.'));

  it('has a row for every policy, and every policy has its validator', () => {
    expect([...own, budget, 'toolRetry'].sort()).toEqual(pathsOf(defaults).sort());
    expect([...Object.keys(refused), budget].sort()).toEqual([...policyValidators.keys()].sort());
  });

  it.each(Object.entries(refused))('%s refuses what cannot work, and takes the rest', (path, wrong) => {
    const refusedNames = all.filter((name) => refusal(having(path, values[name])) !== undefined);
    expect(refusedNames).toEqual(wrong);
  });

  it.each(Object.entries(refused))('the refusal of %s names it, what it takes and what came', (path, wrong) => {
    for (const name of wrong) {
      const message = refusal(having(path, values[name])) ?? '';
      expect(message).toContain(`policies.${path} must be ${policyValidators.get(path)?.expected}, got `);
      expect(message.length).toBeLessThan(500);
    }
    expect(refusal(having(path, Number.NaN))).toContain('got NaN');
  });

  it('limits.costUsd takes a number or false', () => {
    const validator = policyValidators.get(budget);
    expect(all.filter((name) => !validator?.test(values[name]))).toEqual(except('one', 'zero', 'half', 'false'));
  });
});

describe('lists', () => {
  const wrong: [string, unknown][] = [
    ['promoteFollowUpOn', ['completed', 'completed']],
    ['promoteFollowUpOn', ['completed', 'aborted']],
    ['promoteFollowUpOn', 'completed'],
    ['textToolCalls', ['json', 'json']],
    ['textToolCalls', ['xml']],
    ['modelRetry.fallbackModels', [model, {}]],
    ['modelRetry.fallbackModels', model],
    ['context', [{ kind: 'warn', at: 2 }]],
    ['context', [{ kind: 'shrink', at: 0.5 }]],
    ['context', [{ kind: 'warn', at: 0.5, until: 0.4 }]],
    [
      'context',
      [
        { kind: 'warn', at: 0.5 },
        { kind: 'warn', at: 0.6 },
      ],
    ],
  ];
  it.each(wrong)('%s refuses %j', (path, value) => {
    expect(refusal(having(path, value))).toMatch(new RegExp(`^policies\\.${path} must be `));
  });

  const right: [string, unknown][] = [
    ['promoteFollowUpOn', ['error', 'completed']],
    ['textToolCalls', ['json', 'tool_call']],
    ['modelRetry.fallbackModels', [model]],
    ['context', [{ kind: 'warn', at: 0.5 }]],
  ];
  it.each(right)('%s takes %j', (path, value) => {
    expect(refusal(having(path, value))).toBeUndefined();
  });

  it('a list is taken as it is at start, whatever becomes of it later', () => {
    const promoteFollowUpOn: ('completed' | 'error')[] = ['completed'];
    const policies = mergedPolicies({ promoteFollowUpOn });
    promoteFollowUpOn.push('error');
    expect(policies.promoteFollowUpOn).toEqual(['completed']);
  });
});

describe('names', () => {
  const unknown: [string, unknown, string][] = [
    ['retries', { retries: 3 }, 'whileActive'],
    ['limits.maxTurns', { limits: { maxTurns: 3 } }, 'turns'],
    ['modelRetry.tries', { modelRetry: { tries: 3 } }, 'attempts'],
    ['modelTimeout.ms', { modelTimeout: { ms: 3 } }, 'idleMs'],
    ['toolRetry.tries', { toolRetry: { tries: 3 } }, 'attempts'],
    ['__proto__', JSON.parse('{"__proto__": {"whileActive": "steer"}}'), 'whileActive'],
    ['limits.__proto__', JSON.parse('{"limits": {"__proto__": {"turns": 1}}}'), 'turns'],
    ['constructor', { constructor: 1 }, 'whileActive'],
  ];
  it.each(unknown)(
    'policies.%s is unknown, and the refusal lists the names there are',
    (path, policies, listedName) => {
      expect(refusal(policies)).toMatch(new RegExp(`^policies\\.${path} is unknown; known are .*\\b${listedName}\\b`));
    },
  );

  it.each(['limits', 'modelRetry', 'modelTimeout', 'toolRetry'])('%s must be an object', (group) => {
    for (const value of [null, 'x', 3, [], true]) {
      const wanted = group === 'toolRetry' ? 'false or an object' : 'an object';
      expect(refusal({ [group]: value })).toContain(`policies.${group} must be ${wanted}, got `);
    }
  });

  it('the policies themselves must be an object', () => {
    for (const value of [null, 'coding', 3, []]) expect(refusal(value)).toMatch(/^policies must be an object, got /);
  });

  it('an unknown option of the agent is refused with the options that there are', () => {
    const options = { model, policy: {} } as unknown as Parameters<typeof createAgent>[0];
    expect(() => createAgent(options)).toThrow(/the option policy is unknown; known are .*policies/);
  });
});

describe('merged policies', () => {
  it('no policies are the defaults, and an undefined value is ignored', () => {
    expect(mergedPolicies(undefined)).toEqual(defaults);
    expect(mergedPolicies({ limits: { turns: undefined } } as never)).toEqual(defaults);
  });

  it('each policy that the charts read has the same default in the charts and in the agent', () => {
    expect(defaults).toMatchObject(defaultPolicies);
    expect(defaultPolicies.toolRetry).toBe(false);
  });

  it('nested values are merged key by key', () => {
    const merged = mergedPolicies({ limits: { turns: 3 }, modelRetry: { attempts: 1 }, toolRetry: { attempts: 2 } });
    expect(merged.limits).toEqual({ ...defaults.limits, turns: 3 });
    expect(merged.modelRetry).toEqual({ ...defaults.modelRetry, attempts: 1 });
    expect(merged.toolRetry).toMatchObject({ attempts: 2, baseMs: 500, factor: 2, capMs: 5000, jitter: 0.1 });
  });

  it.each(Object.entries(presets))('the preset %s works as it is', (_, preset) => {
    expect(refusal(preset)).toBeUndefined();
  });
});
