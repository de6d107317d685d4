/** An agent as a tool of an MCP server, called by a client of the same process. */
import { Client } from '@modelcontextprotocol/client';
import { InMemoryTransport } from '@modelcontextprotocol/server';
// #region serve
import { createAgent } from 'runchart';
import { mcpServer } from 'runchart/mcp';
import { scriptedModel } from 'runchart/testing';

const agent = createAgent({ model: scriptedModel(['Two notes speak of charts.']) });
const server = mcpServer(agent, { name: 'librarian', description: 'Finds and sums up notes.' });
// #endregion

const [near, transport] = InMemoryTransport.createLinkedPair();
// #region connect
await server.connect(transport);
// #endregion

const client = new Client({ name: 'example', version: '1.0.0' });
await client.connect(near as Parameters<typeof client.connect>[0]);
const { content } = await client.callTool({
  name: 'librarian',
  arguments: { message: 'Which notes speak of charts?' },
});
console.log((content as { text: string }[])[0]?.text);
await client.close();
await server.close();
await agent.close();
