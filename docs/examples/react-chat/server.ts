/** The server of the chat: `node server.ts`. It keeps conversations in `.conversations`, so they survive a restart. */
import { createServer } from 'node:http';
import { createAgent } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { createHandlers, nodeHandler } from 'runchart/transports';
import { model, transfer } from './model.ts';

const agent = createAgent({
  model,
  tools: [transfer],
  store: jsonlStore('.conversations'),
  // What a person has seen of a reply before Stop stays.
  policies: { partialReply: 'keep' },
});
// Replace this with your own check of a session or a token. With { by, owner } each user has conversations of their own.
const handler = createHandlers(agent, { authorize: () => ({ by: 'ada', owner: 'ada' }), basePath: '/api' });
createServer(nodeHandler(handler)).listen(8787, '127.0.0.1');
