/** Tools of MCP servers: one that is started here, one that is reached over HTTP. Wants both, and a model. */
import { auth, type OAuthClientProvider } from '@modelcontextprotocol/client';
import { createAgent, type Model } from 'runchart';
import { mcpTools } from 'runchart/mcp';
import { permissions } from 'runchart/node';

declare const model: Model;
declare const token: string;
declare const authProvider: OAuthClientProvider;
declare const code: string;

// #region mcp
const mcp = await mcpTools({
  files: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/srv/notes'] },
  search: { url: 'https://search.example/mcp', headers: { authorization: `Bearer ${token}` } },
});

const agent = createAgent({
  model,
  tools: mcp.tools,
  plugins: [permissions({ allow: ['mcp__search__*'], deny: ['mcp__files__move_file'] })],
});
console.log((await agent.run('Which notes speak of charts?')).text);

await agent.close();
await mcp.close();
// #endregion

// #region oauth
const search = { url: 'https://search.example/mcp', authProvider };
// On the page that the user returns to, with the code of its address:
await auth(authProvider, { serverUrl: search.url, authorizationCode: code });
const authorized = await mcpTools({ search });
// #endregion
await authorized.close();
