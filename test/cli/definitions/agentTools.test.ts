/** Agents of files as sub-agents that run: their instructions, their tools with those of servers, and skills. */
import { expect, onTestFinished, test } from 'vitest';
import { agentTools, skillTool } from '../../../src/cli/definitions/agentTools.ts';
import { ServerConnections } from '../../../src/cli/servers/serverConnections.ts';
import { codingTools } from '../../../src/node.ts';
import { stdioServer } from '../../mcp/stdioServer.ts';
import { bench } from '../../support/agentBench.ts';
import { call, scripted } from '../../support/scriptedReplies.ts';

const definition = { name: 'reviewer', description: 'Reviews changes.', path: '/w/.claude/agents/reviewer.md' };
const agent = { ...definition, tools: undefined, withoutTools: [], model: undefined, instructions: 'You review.' };
const skill = {
  name: 'pdf',
  description: 'Reads PDF files.',
  path: '/w/.runchart/skills/pdf/SKILL.md',
  body: 'Use pdftotext.',
};

async function partsWith(servers = new ServerConnections([])) {
  onTestFinished(() => servers.close());
  await servers.settled;
  return {
    servers,
    programTools: () => [...codingTools(), skillTool([skill])],
    modelOf: async () => scripted(['other']),
  };
}
const task = { tasks: [{ id: 'a', task: 'Review main.go' }] };

test('an agent works with its instructions and its tools, those of servers included, and the model reads what it is for', async () => {
  const server = stdioServer({ tools: ['echo', 'pid'] });
  const parts = await partsWith(
    new ServerConnections([{ name: 's', path: '/p', about: 'x', options: server.options }]),
  );
  const own = { ...agent, tools: ['read', 'Grep', 'mcp__s__e*'], withoutTools: ['Grep'] };
  const { tools, problems } = await agentTools([own], parts);
  expect(problems).toEqual([]);
  const { conversation, model } = await bench({
    tools: [...codingTools(), ...tools],
    replies: [[call('c1', 'agent_reviewer', task)], 'looks good', 'done'],
  });
  expect(await conversation.send('go').text).toBe('done');
  const offered = model.calls[0]?.tools.find(({ name }) => name === 'agent_reviewer');
  expect(offered?.description).toMatch(/^Reviews changes\./);
  expect(model.calls[1]?.tools.map(({ name }) => name)).toEqual(['Read', 'submit_result', 'mcp__s__echo']);
  expect(model.calls[1]?.system).toContain('You review.');
  expect(JSON.stringify(model.calls[2]?.messages.at(-1))).toContain('looks good');
});

test('the model of an agent is its own, all tools are its by default, and a model that cannot be used is a problem', async () => {
  const parts = await partsWith();
  const { tools } = await agentTools([{ ...agent, model: 'small' }], parts);
  const { conversation, model } = await bench({ tools, replies: [[call('c1', 'agent_reviewer', task)], 'done'] });
  expect(await conversation.send('go').text).toBe('done');
  expect(model.calls).toHaveLength(2);
  expect(JSON.stringify(model.calls[1]?.messages.at(-1))).toContain('other');
  const broken = { ...parts, modelOf: () => Promise.reject(new Error('no API key')) };
  expect(await agentTools([{ ...agent, model: 'small' }], broken)).toEqual({
    tools: [],
    problems: ['/w/.claude/agents/reviewer.md is not used: no API key'],
  });
});

test('the model sees names and descriptions of skills, and reads one by its name', async () => {
  const { conversation, model } = await bench({
    tools: [skillTool([skill, { ...skill, name: 'big', description: 'x'.repeat(17_000) }])],
    replies: [[call('c1', 'Skill', { name: 'pdf' }), call('c2', 'Skill', { name: 'nothing' })], 'done'],
  });
  expect(await conversation.send('go').text).toBe('done');
  const { description = '' } = model.calls[0]?.tools[0] ?? {};
  expect(description).toContain('- pdf: Reads PDF files.');
  expect(description).not.toContain('- big');
  const results = JSON.stringify(model.calls[1]?.messages);
  expect(results).toContain('Use pdftotext.');
  expect(results).toContain('/w/.runchart/skills/pdf');
  expect(results).toContain('There is no skill');
});
