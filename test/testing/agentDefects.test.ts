/** Mistakes that users make in tools, approvals, plugins, hooks, rules and policies: generated cases find them. */
import { describe, expect, it } from 'vitest';
import { type AgentPaths, agentPaths } from '../../src/testing/index.ts';
import { sampled, volume } from '../support/tier.ts';
import { DEFECTS, HEALTHY } from './agentDefects.ts';
import type { DefectiveAgent, Oracle } from './defectiveAgent.ts';

const WORDS: Readonly<Record<Exclude<Oracle, 'snapshot'>, RegExp>> = {
  rule: /where (runs|asks|blocked|refused) is expected/,
  declaration: /^(abort|readOnly|idempotent): /m,
  schema: /its schema admits|its result is no JSON|its result was cut/,
  suspension: /no decision ends it/,
  charts: /the charts say|its schema admits/,
  check: /^check: /,
};

async function failuresOf({ cases }: AgentPaths): Promise<string[]> {
  const failures: string[] = [];
  for (const path of cases) await path.run().catch((error: Error) => failures.push(error.message));
  return failures;
}

/** Returns the content of a snapshot of the agent. */
async function reviewed({ make }: DefectiveAgent): Promise<string> {
  const { agent, options } = make();
  const { cases, verdicts } = await agentPaths(agent, options);
  return JSON.stringify([cases.map(({ name }) => name), verdicts]);
}

const healthyLike = ({ name }: DefectiveAgent): DefectiveAgent | undefined => {
  const [pays, searches, deploys] = HEALTHY;
  if (/plugin/.test(name)) return deploys;
  return /turn only|failure of a tool/.test(name) ? searches : pays;
};

describe('a defect that its oracle finds', () => {
  it.each(sampled(DEFECTS, volume.agentDefects).map((each) => [each.name, each.oracle, each] as const))(
    '%s: %s',
    async (_, oracle, defective) => {
      if (oracle === 'snapshot') {
        const healthy = healthyLike(defective);
        expect(await reviewed(defective)).not.toBe(healthy && (await reviewed(healthy)));
        return;
      }
      const { agent, options } = defective.make();
      const failures = await failuresOf(await agentPaths(agent, options));
      expect(failures.join('\n')).toMatch(WORDS[oracle]);
    },
  );
});

it.each(sampled(HEALTHY, volume.caseOf).map((each) => [each.name, each] as const))(
  'without a mistake nothing is found: %s',
  async (_, healthy) => {
    const { agent, options } = healthy.make();
    expect(await failuresOf(await agentPaths(agent, options))).toEqual([]);
  },
);
