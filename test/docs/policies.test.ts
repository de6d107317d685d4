/** docs/policies.md has one row for each policy, with its default first, and the code reads each policy. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaults } from '../../src/policies.ts';
import { proseOf, read, root } from './documents.ts';

/** The column `values` of each policy. */
const valuesOf = new Map<string, string>(
  [...proseOf('docs/policies.md').matchAll(/^\| `([\w.]+)` *\| (.*?) *\| .* \|$/gm)].map(
    ([, name = '', values = '']) => [name, values],
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
    expect([...valuesOf.keys()].sort()).toEqual(policies.map(([name]) => name).sort());
  });

  it.each(policies.filter(([name]) => name !== 'context'))('%s stands with its default %j', (name, value) => {
    expect(valuesOf.get(name)).toMatch(new RegExp(`^\`${literal(value).replace(/[[\].]/g, '\\$&')}\``));
  });

  it.each(policies.map(([name]) => name))('%s is read by the code', (name) => {
    const key = name === 'modelRetry.fallbackModels' ? 'modelsOf' : (name.split('.').at(-1) ?? name);
    expect(users.some((code) => new RegExp(`\\b${key}\\b`).test(code))).toBe(true);
  });
});
