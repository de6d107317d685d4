/**
 * Three hundred commands of coding agents that are read-only, or that the settings name: the number that still needs
 * approval.
 */
import { describe, expect, it } from 'vitest';
import { permissions, sandboxStatus } from '../../src/node.ts';
import { workspaceOf } from './everyday/days.ts';
import { go } from './everyday/go.ts';
import { python } from './everyday/python.ts';
import { typescript } from './everyday/typescript.ts';

const works = sandboxStatus().kind !== 'none';
const DAYS = { typescript, go, python };
const COMMANDS = 300;

interface Asked {
  command: string;
  plain: string;
  inside: string;
}

const judged = await Promise.all(
  Object.values(DAYS).map(async (day) => {
    const root = workspaceOf(day);
    const rules = permissions(day.rules);
    const of = async (template: string): Promise<Asked> => {
      const command = template.replaceAll('{root}', root);
      const { outcome, by, sandboxed } = await rules.explain('Bash', { command }, root);
      return {
        command: template,
        plain: `${outcome} ${by}`,
        inside: sandboxed ? `${sandboxed.outcome} ${sandboxed.by}` : '',
      };
    };
    return {
      commands: await Promise.all(day.commands.map(of)),
      questions: await Promise.all(day.questions.map(of)),
    };
  }),
);
const commands = judged.flatMap((day) => day.commands);
const questions = judged.flatMap((day) => day.questions);
const isAsked = (verdict: string): boolean => !verdict.startsWith('allow ');

describe('false questions', () => {
  it('they are counted over three hundred different commands', () => {
    expect(new Set(Object.values(DAYS).flatMap((day) => day.commands)).size).toBeGreaterThanOrEqual(COMMANDS * 0.9);
    expect(commands).toHaveLength(COMMANDS);
  });

  it('they are at most 19 % without a sandbox', () => {
    const asked = commands.filter(({ plain }) => isAsked(plain));
    expect(
      asked.length / COMMANDS,
      asked.map(({ command, plain }) => `${command}: ${plain}`).join('\n'),
    ).toBeLessThanOrEqual(0.19);
  });

  it.runIf(works)('they are at most 8 % with the sandbox', () => {
    const asked = commands.filter(({ inside }) => isAsked(inside));
    expect(
      asked.length / COMMANDS,
      asked.map(({ command, inside }) => `${command}: ${inside}`).join('\n'),
    ).toBeLessThanOrEqual(0.08);
  });
});

describe('true questions', () => {
  it('they are asked or denied, without a sandbox and in it', () => {
    expect(questions.filter(({ plain }) => !isAsked(plain))).toEqual([]);
    expect(questions.filter(({ inside }) => works && !isAsked(inside))).toEqual([]);
  });
});
