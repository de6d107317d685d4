/**
 * The scenarios of the simulated engine on a real Restate server: each leads to the log of the embedded agent. Node 24 runs the file:
 * `node --test test/restate/scenarioChecks.ts`.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { restateAgent, type ServedAgent, serveAgent } from '../../src/restate/index.ts';
import { comparable, embedded, followed, ID, OPEN } from '../simulation/engine/scenarioHosts.ts';
import { SCENARIOS, type Scenario } from '../simulation/engine/scenarios.ts';
import { SUB_AGENT_SCENARIOS } from '../simulation/engine/subAgentScenarios.ts';
import { RestateServer, serverBinary, until } from './restateServer.ts';

const binary = serverBinary();
const reason = 'the server is not installed: run npm ci in test/restate';

describe('a scenario has the same log embedded and on Restate', {
  skip: binary ? false : reason,
  timeout: 900_000,
}, () => {
  let server: RestateServer;
  before(async () => {
    server = await RestateServer.start(binary as string);
  });
  after(() => server?.remove());

  /** No conversation is held, and the entries for the logs of sub-agents are stored: waiting conversations are state. */
  const atRest = (service: string): Promise<void> =>
    until('nothing is under way', async () => {
      const own = ['hold', 'append'].map((method) => `target like '${service}%/${method}'`).join(' or ');
      const query = `select id from sys_invocation where status <> 'completed' and (${own})`;
      const response = await fetch(`${server.admin}/query`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify({ query }),
      });
      return ((await response.json()) as { rows: unknown[] }).rows.length === 0;
    });

  /** Each scenario has objects of its own in the engine, and a worker that is replaced at each restart. */
  async function onRestate(scenario: Scenario, service: string) {
    const agent = restateAgent({ ingress: server.ingress, service });
    const logs = await followed(scenario, agent.profile.store, async (agentOf) => {
      const held = agentOf();
      let worker: ServedAgent = await serveAgent(held, { service, admin: server.admin });
      await agent.open(ID, OPEN);
      return {
        restart: async () => {
          await atRest(service);
          await worker.close();
          worker = await serveAgent(held, { service, admin: server.admin, port: Number(new URL(worker.url).port) });
        },
        atRest: () => atRest(service),
        close: async () => {
          await held.close();
          await worker.close();
        },
      };
    });
    await agent.close();
    return logs;
  }

  for (const [index, scenario] of [...SCENARIOS, ...SUB_AGENT_SCENARIOS].entries())
    it(scenario.name, async () => {
      const [logs, expected] = [await onRestate(scenario, `scenario-${index}-`), await embedded(scenario)];
      assert.deepEqual(comparable(logs), comparable(expected));
    });
});
