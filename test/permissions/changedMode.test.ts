/** A mode that is changed while the rules are in use. */
import { expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { permissions } from '../../src/permissions/permissions.ts';

test('setMode changes the mode for the calls that are judged from then on, and refuses an unknown mode', async () => {
  const rules = permissions({ deny: ['bash(rm *)'] });
  const outcomeOf = async (command: string) => (await rules.explain('Bash', { command }, process.cwd())).outcome;
  expect([rules.mode, await outcomeOf('make')]).toEqual(['default', 'ask']);
  rules.setMode('bypass');
  expect([rules.mode, await outcomeOf('make'), await outcomeOf('rm x')]).toEqual(['bypass', 'allow', 'deny']);
  rules.setMode('plan');
  expect([rules.mode, await outcomeOf('make')]).toEqual(['plan', 'deny']);
  expect(() => rules.setMode('root' as never)).toThrow(ConfigurationError);
  expect(rules.mode).toBe('plan');
});

test('setMode to plan mode also holds in a conversation whose plan was approved before', () => {
  const rules = permissions({ mode: 'plan' });
  rules.endPlan('c');
  expect(rules.modeOf('c')).toBe('default');
  rules.setMode('plan');
  expect(rules.modeOf('c')).toBe('plan');
});
