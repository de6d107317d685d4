/** Questions of sub-agents of an agent that an MCP server serves. */
import { expect, it } from 'vitest';
import { subAgents } from '../../src/index.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call } from '../support/scriptedReplies.ts';
import { byTask, spawn, submit } from '../support/subAgentBench.ts';
import { served } from './servedBench.ts';

it('each question reaches the person of the client, and the answer reaches its own sub-agent', async () => {
  const act = echoTool('act', { needsApproval: true });
  const asking = (id: string) => [call(id, 'act', { m: `of ${id}` })];
  const model = byTask({
    alpha: [asking('x'), asking('z'), [submit('s', 'A')]],
    beta: [asking('y'), [submit('s', 'B')]],
  });
  const form = (message: string) => ({ action: 'accept' as const, content: { allow: !message.includes('of y') } });
  const replies = [[spawn('p', 'alpha', 'beta')], 'done'];
  const on = await served(replies, { form }, [act.tool, subAgents({ model })]);
  expect(await on.ask({ message: 'go' })).toMatchObject({ text: 'done', isError: false });
  const asked = on.questions.map((question) => /"m":"of (.)"/.exec(question)?.[1]);
  expect(asked.sort()).toEqual(['x', 'y', 'z']);
  expect(act.ran.sort()).toEqual(['x', 'z']);
});

it('a call of a sub-agent is denied where the client cannot ask a person', async () => {
  const act = echoTool('act', { needsApproval: true });
  const model = byTask({ alpha: [[call('x', 'act', { m: 'a' })], [submit('s', 'A')]] });
  const on = await served([[spawn('p', 'alpha')], 'done'], {}, [act.tool, subAgents({ model })]);
  expect(await on.ask({ message: 'go' })).toMatchObject({ text: 'done', isError: false });
  expect(act.ran).toEqual([]);
});
