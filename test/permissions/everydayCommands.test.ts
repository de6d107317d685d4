/** A working day under a sensible set of rules: everyday commands run without approval. */
import { expect, it } from 'vitest';
import { EVERYDAY, NOT_EVERYDAY, TEAM_RULES } from './everydayCommands.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
const outcomeOf = async (command: string): Promise<string> => {
  const { outcome, by } = await explain(TEAM_RULES, 'Bash', { command }, ws);
  return outcome === 'allow' ? outcome : `${outcome} (${by})`;
};

it('of sixty everyday commands at least 57 run without approval under a sensible set of rules', async () => {
  const outcomes = await Promise.all(EVERYDAY.map(async ([command]) => [command, await outcomeOf(command)] as const));
  const asked = outcomes.filter(([, outcome]) => outcome !== 'allow');
  expect(EVERYDAY).toHaveLength(60);
  expect(EVERYDAY.every(([, expected]) => expected === 'allow')).toBe(true);
  expect(asked).toEqual([]);
});

it.each(NOT_EVERYDAY)('%s: %s, under the same rules', async (command, expected) => {
  expect(await outcomeOf(command)).toMatch(new RegExp(`^${expected} `));
});
