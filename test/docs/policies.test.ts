/** docs/policies.md: every policy has its row, with its default first, and the row says whether it does something yet. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaults } from '../../src/policies.ts';
import { proseOf, read, root } from './documents.ts';

interface Row {
  values: string;
  effect: string;
}
const rows = new Map<string, Row>(
  [...proseOf('docs/policies.md').matchAll(/^\| `([\w.]+)` *\| (.*?) *\| .* \| (.*?) *\|$/gm)].map(
    ([, name = '', values = '', effect = '']) => [name, { values, effect }],
  ),
);

/** Every policy by its path; lists and what may be switched off are one policy. */
function policiesOf(value: object, path = ''): [string, unknown][] {
  return Object.entries(value).flatMap(([key, child]): [string, unknown][] => {
    const at = path === '' ? key : `${path}.${key}`;
    return typeof child === 'object' && child !== null && !Array.isArray(child) ? policiesOf(child, at) : [[at, child]];
  });
}
const policies = policiesOf(defaults);

/** The default as a reader would write it. */
const literal = (value: unknown): string => JSON.stringify(value).replaceAll('"', "'").replaceAll("','", "', '");

/** What uses policies: not their definition, nor the cases that tests are made from. */
const users = ['machines', 'src']
  .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, String(name))))
  .filter((file) => file.endsWith('.ts') && !/\.(cases|inputs|surroundings)\.ts$/.test(file))
  .filter((file) => !/(policies|policyForms|options|presets)\.ts$/.test(file))
  .map((file) => read(file).replace(/^\s*(\/\*\*|\*|\/\/).*$/gm, ''));

describe('docs/policies.md', () => {
  it('has one row for each policy and no other', () => {
    expect([...rows.keys()].sort()).toEqual(policies.map(([name]) => name).sort());
  });

  it.each(policies.filter(([name]) => name !== 'context'))('%s stands with its default %j', (name, value) => {
    expect(rows.get(name)?.values).toMatch(new RegExp(`^\`${literal(value).replace(/[[\].]/g, '\\$&')}\``));
  });

  it.each(policies.map(([name]) => name).filter((name) => rows.get(name)?.effect.startsWith('not yet')))(
    '%s is not in effect yet: nothing reads it',
    (name) => {
      const read = new RegExp(name === 'context' ? 'policies\\.context\\b' : `\\b${name.split('.').at(-1)}\\b`);
      expect(users.filter((code) => read.test(code))).toEqual([]);
    },
  );

  it.each(policies.map(([name]) => name).filter((name) => rows.get(name)?.effect.startsWith('yes')))(
    '%s is in effect: something reads it',
    (name) => {
      const key = name === 'modelRetry.fallbackModels' ? 'modelsOf' : (name.split('.').at(-1) ?? name);
      expect(users.some((code) => new RegExp(`\\b${key}\\b`).test(code))).toBe(true);
    },
  );
});
