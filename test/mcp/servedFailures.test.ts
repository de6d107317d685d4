/** The results of a served agent for its client at each end without an answer, and a transport that cannot start. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAgent, type DeepPartial, memoryStore, type Policies } from '../../src/index.ts';
import { mcpServer } from '../../src/mcp/mcpTools.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, lines, type Reply, scripted } from '../support/scriptedReplies.ts';
import { clientOf } from './servedBench.ts';

/** The answer to one request, of an agent with these replies and policies. */
async function answered(replies: readonly Reply[], policies: DeepPartial<Policies> = {}) {
  const agent = createAgent({ model: scripted(replies), tools: [echoTool('act').tool], policies });
  const server = mcpServer(agent, { name: 'house' });
  onTestFinished(async () => {
    await server.close();
    await agent.close();
  });
  const { ask } = await clientOf(server);
  return { agent, server, ask, answer: await ask({ message: 'go' }) };
}

describe('a request that ends without an answer', () => {
  const acts = Array.from({ length: 5 }, (_, at) => [call(`c${at}`, 'act', { m: 'x' })]);
  it.each<[string, readonly Reply[], DeepPartial<Policies>, RegExp]>([
    ['at a limit names the limit', acts, { limits: { turns: 2 } }, /^The request ended as Stopped: max_turns$/],
    ['by an error names the error', [new Error('down')], {}, /^The request ended as Error: ./],
  ])('%s, with the conversation that can be continued', async (_, replies, policies, text) => {
    const { agent, answer } = await answered(replies, policies);
    expect(answer).toEqual({ text: expect.stringMatching(text), conversation: expect.any(String), isError: true });
    expect((await agent.list()).map(({ id }) => id)).toEqual([answer.conversation]);
  });

  it('because its conversation does not exist names the reason and that conversation', async () => {
    const { ask } = await answered(['one']);
    expect(await ask({ message: 'go', conversation: 'nowhere' })).toEqual({
      text: expect.stringMatching(/^not_found: /),
      conversation: 'nowhere',
      isError: true,
    });
  });

  it('because the agent is closed is an error, and the server answers on', async () => {
    const { agent, ask } = await answered(['one']);
    await agent.close();
    expect(await ask({ message: 'go' })).toMatchObject({ text: expect.stringMatching(/^closed: /), isError: true });
    expect(await ask({ message: 'go' })).toMatchObject({ isError: true });
  });
});

it('a connection that cannot be closed leaves no other one open, and its error is the one of the close', async () => {
  const agent = createAgent({ model: scripted([]) });
  onTestFinished(() => agent.close());
  const server = mcpServer(agent, { name: 'house' });
  const closed: string[] = [];
  const transport = (close: () => Promise<void>) => ({ start: async () => {}, send: async () => {}, close });
  await server.connect(transport(() => Promise.reject(new Error('stuck'))));
  await server.connect(
    transport(async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      closed.push('second');
    }),
  );
  await expect(server.close()).rejects.toThrow('stuck');
  expect(closed).toEqual(['second']);
});

it('a conversation is closed after each request, so another part of the program may open it', async () => {
  const { agent, answer } = await answered(['one', 'two']);
  const conversation = await agent.open(answer.conversation, { existing: true, owner: 'mcp:house' });
  expect((await conversation.send('go on').result).text).toBe('two');
  await conversation.close();
});

it('a message to a conversation whose call still waits, as after a crash, denies that call and is answered', async () => {
  const act = echoTool('act', { needsApproval: true });
  const model = scripted([[call('c1', 'act', { m: 'x' })], 'two']);
  const agent = createAgent({ model, tools: [act.tool], store: memoryStore() });
  const server = mcpServer(agent, { name: 'house' });
  onTestFinished(async () => {
    await server.close();
    await agent.close();
  });
  const conversation = await agent.open('left', { owner: 'mcp:house' });
  expect((await conversation.send('one').result).termination).toBe('Suspended');
  await conversation.close();
  const { ask } = await clientOf(server);
  const answer = await ask({ message: 'go on', conversation: 'left' });
  expect(answer).toEqual({ text: 'two', conversation: 'left', isError: false });
  expect(act.ran).toEqual([]);
  expect(lines(model.calls[1]?.messages ?? []).slice(-2)).toEqual([expect.stringMatching(/denied/), 'user go on']);
});

it('a transport that does not start is an error of its own, and the others stay', async () => {
  const agent = createAgent({ model: scripted(['one']) });
  const server = mcpServer(agent, { name: 'house' });
  onTestFinished(async () => {
    await server.close();
    await agent.close();
  });
  const { ask } = await clientOf(server);
  const broken = {
    start: () => Promise.reject(new Error('no pipe')),
    send: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  await expect(server.connect(broken)).rejects.toMatchObject({
    ...{ code: 'mcp', message: 'the MCP server could not start: no pipe' },
  });
  expect(await ask({ message: 'go' })).toMatchObject({ text: 'one', isError: false });
});
