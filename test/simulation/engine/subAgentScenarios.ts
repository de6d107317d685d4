/** Scenarios of conversations with sub-agents. One sub-agent works at a time, so that the order of the entries is the same everywhere. */
import { subAgents } from '../../../src/index.ts';
import { call, spawn, submit } from '../../support/replyParts.ts';
import { type Host, has, type Scenario, say, tool, until, waits } from './scenarios.ts';

const oneByOne = subAgents({ maxSubAgents: 1 });

/** The call of a sub-agent that waits, as the log of the parent names it. */
function innerCall(host: Host): string {
  const waiting = host
    .log()
    .filter(({ type }) => type === 'tool-suspended')
    .at(-1);
  const found = /"calls":\["([^"]+)"/.exec(JSON.stringify(waiting));
  if (!found?.[1]) throw new Error('no call of a sub-agent waits');
  return found[1];
}

const decides = (host: Host, action: 'approve' | 'deny'): Promise<unknown> =>
  host.ask({ type: 'decide', decision: { callId: innerCall(host), suspension: 1, action, by: 'somebody' } });
const ends = (host: Host, times: number): Promise<void> =>
  until(
    'the sub-agents have ended',
    () => host.log().filter((entry) => entry.type === 'sub-agent' && entry.phase === 'ended').length >= times,
  );

export const SUB_AGENT_SCENARIOS: readonly Scenario[] = [
  {
    name: 'two sub-agents work one after the other, and the parent receives their results and their usage',
    replies: [[spawn('p', 'alpha', 'beta')], 'done'],
    tasks: {
      alpha: [[call('a1', 'one')], [call('a2', 'one')], [submit('a3', 'A')]],
      beta: ['a reply without a result'],
    },
    window: { prices: { input: 1, output: 2 } },
    options: { tools: [tool('one'), oneByOne], policies: { limits: { costUsd: 5 } } },
    expected: ['sub-agent', 'extension', 'tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  {
    name: 'the usage of the first sub-agent leaves the second a single turn of the budget',
    replies: [[spawn('p', 'alpha', 'beta')], 'beyond the budget'],
    tasks: {
      alpha: [[call('a1', 'one')], [submit('a2', 'A')]],
      beta: [[call('b1', 'one')], [submit('b2', 'B')]],
    },
    tokens: 10,
    options: { tools: [tool('one'), oneByOne], policies: { limits: { tokens: 80 } } },
    expected: ['sub-agent', 'extension', 'tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  {
    name: 'the calls of a sub-agent have other ids than those of its parent, and a limit ends its turns',
    replies: [[call('c1', 'one')], [spawn('c2', 'alpha')], [spawn('c3', 'beta')], 'done'],
    tasks: {
      alpha: [[call('c1', 'one')], [call('c2', 'one')], [submit('c3', 'A')]],
      beta: [[call('c1', 'boom')], [call('c1', 'one')], [call('c1', 'one')]],
    },
    options: {
      tools: [
        tool('one'),
        tool('boom', {}, () => {
          throw new Error('boom');
        }),
        subAgents({ limits: { turns: 2 } }),
      ],
    },
    deaths: 0,
    expected: ['sub-agent', 'diagnostic', 'tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  ...(['approve', 'deny'] as const).map(
    (action): Scenario => ({
      name: `a call of a sub-agent waits for a decision over a restart: ${action}`,
      replies: [[spawn('p', 'alpha')], 'done'],
      tasks: { alpha: [[call('a1', 'one')], [call('a2', 'ask')], [submit('a3', 'A')]] },
      options: { tools: [tool('one'), tool('ask', { needsApproval: true }), oneByOne] },
      expected: ['tool-suspended', 'run-suspended', 'decision', 'run-resumed', 'sub-agent', 'run-stop'],
      play: async (host) => {
        await say(host, 'hi');
        await has(host, 'run-suspended');
        await host.restart();
        await decides(host, action);
        await host.restart();
        await host.ask({ type: 'resume', resumptionId: 'again' });
        await has(host, 'run-stop');
      },
    }),
  ),
  {
    name: 'two calls of one sub-agent wait one after the other',
    replies: [[spawn('p', 'alpha')], 'done'],
    tasks: { alpha: [[call('a1', 'ask')], [call('a2', 'ask')], [submit('a3', 'A')]] },
    options: { tools: [tool('ask', { needsApproval: true }), oneByOne] },
    expected: ['tool-suspended', 'run-suspended', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      for (const round of [1, 2]) {
        await has(host, 'run-suspended', round);
        await host.restart();
        await decides(host, 'approve');
        await host.ask({ type: 'resume', resumptionId: `again-${round}` });
      }
      await has(host, 'run-stop');
    },
  },
  {
    name: 'a cancel ends a sub-agent and its tool',
    replies: [[spawn('p', 'alpha')], 'done'],
    tasks: { alpha: [[call('a1', 'wait')]] },
    options: { tools: [tool('wait', {}, waits), oneByOne] },
    expected: ['sub-agent', 'tool-started', 'tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await host.started('wait');
      await host.ask({ type: 'cancel' });
      await ends(host, 1);
    },
  },
  {
    name: 'a cancel ends a call of a sub-agent that waits',
    replies: [[spawn('p', 'alpha')], 'done'],
    tasks: { alpha: [[call('a1', 'ask')]] },
    options: { tools: [tool('ask', { needsApproval: true }), oneByOne] },
    expected: ['run-suspended', 'sub-agent', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-suspended');
      await host.restart();
      await host.ask({ type: 'cancel' });
      await ends(host, 1);
    },
  },
];
