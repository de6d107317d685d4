/** Tools of MCP servers: one that is started here, one that is reached over HTTP. The second needs a server and a model. */
// #region mcp
import { createAgent } from 'runchart';
import { mcpTools } from 'runchart/mcp';
import { permissions } from 'runchart/node';
import { scriptedModel } from 'runchart/testing';

const mcp = await mcpTools({
  files: { command: 'npx', args: ['mcp-server-filesystem', process.cwd()] },
});
console.log(mcp.tools.map(({ name }) => name));

// A script in place of a real model: it lists the directory, then answers.
const model = scriptedModel([
  {
    parts: [
      { type: 'tool-call', callId: 'c1', name: 'mcp__files__list_directory', args: '{"path":"."}' },
      { type: 'finish', reason: 'tool-calls' },
    ],
  },
  'These are the files.',
]);
const rules = permissions({ allow: ['mcp__files__*'], deny: ['mcp__files__move_file'] });
const agent = createAgent({ model, tools: mcp.tools, plugins: [rules] });
const conversation = await agent.open();
const { calls, text } = await conversation.send('Which files are here?').result;
console.log(calls[0]?.name, calls[0]?.outcome, text);

await agent.close();
await mcp.close();
// #endregion

declare const token: string;
declare const authProvider: import('@modelcontextprotocol/client').OAuthClientProvider;
declare const code: string;

// #region http
const remote = await mcpTools({
  search: { url: 'https://search.example/mcp', headers: { authorization: `Bearer ${token}` } },
});
// #endregion
await remote.close();

// #region oauth
import { auth } from '@modelcontextprotocol/client';

const search = { url: 'https://search.example/mcp', authProvider };
// On the page that the user returns to, with the code of its address:
await auth(authProvider, { serverUrl: search.url, authorizationCode: code });
const authorized = await mcpTools({ search });
// #endregion
await authorized.close();
