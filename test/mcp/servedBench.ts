/** An agent that an MCP server in memory serves, and a client from the protocol's package. */
import { Client, type ElicitResult } from '@modelcontextprotocol/client';
import { InMemoryTransport } from '@modelcontextprotocol/server';
import { onTestFinished } from 'vitest';
import { createAgent, memoryStore, type Tool } from '../../src/index.ts';
import { type AgentServer, mcpServer } from '../../src/mcp/mcpTools.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { type Reply, scripted } from '../support/scriptedReplies.ts';

export const ALLOWED: ElicitResult = { action: 'accept', content: { allow: true } };

type Form = ElicitResult | ((message: string) => ElicitResult | Promise<ElicitResult>);

/** A client of the server. `form`: the answer of its person; without one it cannot ask. */
export async function clientOf(server: AgentServer, form?: Form) {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await server.connect(theirs);
  const client = new Client({ name: 'c', version: '1' }, { capabilities: form ? { elicitation: {} } : {} });
  const questions: string[] = [];
  if (form) {
    client.setRequestHandler('elicitation/create', ({ params }) => {
      questions.push(params.message);
      return typeof form === 'function' ? form(params.message) : form;
    });
  }
  await client.connect(ours as never);
  onTestFinished(() => client.close());
  const ask = async (args: object, options = {}) => {
    const { content, isError } = await client.callTool({ name: 'house', arguments: args as never }, options);
    const texts = (content as { text: string }[]).map(({ text }) => text);
    return { text: texts[0], conversation: texts[1]?.replace('conversation: ', ''), isError: isError === true };
  };
  return { ask, client, questions };
}

export async function served(
  replies: readonly Reply[],
  { form }: { form?: Form } = {},
  tools: readonly Tool[] = [echoTool('act', { needsApproval: true }).tool],
) {
  const model = scripted(replies);
  const store = memoryStore();
  const agent = createAgent({ model, store, tools });
  const server = mcpServer(agent, { name: 'house', description: 'Keeps the house.' });
  onTestFinished(async () => {
    await server.close();
    await agent.close();
  });
  return { ...(await clientOf(server, form)), agent, model, server, store };
}
