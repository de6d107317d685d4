/** Serves the pages of two protocols, and sends the request that a page of `useChat` sends. */
// #region handlers
import { createAgent } from 'runchart';
import { scriptedModel } from 'runchart/testing';
import { agUiHandler, uiMessageHandler } from 'runchart/transports';

// A script in place of a real model.
const model = scriptedModel(['The rent is due on Monday.']);
const agent = createAgent({ model });
// Replace this with your own check of a session or a token.
const authorize = () => ({ by: 'ada', owner: 'ada' });

const forUseChat = uiMessageHandler(agent, { authorize, basePath: '/api/chat' });
export const forAgUi = agUiHandler(agent, { authorize, basePath: '/api/ag-ui' });
// #endregion

// #region request
const parts = [{ type: 'text', text: 'When is the rent due?' }];
const body = JSON.stringify({ id: 'rent', messages: [{ id: 'm1', role: 'user', parts }] });
const headers = { 'content-type': 'application/json' };
const response = await forUseChat(new Request('http://127.0.0.1/api/chat', { method: 'POST', headers, body }));
for (const line of (await response.text()).split('\n')) {
  const { type } = line.startsWith('data: {') ? JSON.parse(line.slice(6)) : {};
  if (type) console.log(type);
}
await agent.close();
// #endregion
