/**
 * The server of the chat and of its page, at one address: `npm start`. Vite serves the page and reloads it after a change.
 * Conversations are files in `.conversations`, so they survive a restart.
 */
import { createServer } from 'node:http';
import { createAgent } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { createHandlers, nodeHandler } from 'runchart/transports';
import { createServer as createPageServer } from 'vite';
import { model, transfer } from './model.js';

// #region serve
const agent = createAgent({
  model,
  tools: [transfer],
  store: jsonlStore('.conversations'),
  // What a person has seen of a reply before Stop stays.
  policies: { partialReply: 'keep' },
});
// Replace this with your own check of a session or a token. With { by, owner } each user has conversations of their own.
const handler = createHandlers(agent, { authorize: () => ({ by: 'ada', owner: 'ada' }), basePath: '/api' });
const answer = nodeHandler(handler);

const server = createServer();
const page = await createPageServer({ server: { middlewareMode: true, hmr: { server } } });
server.on('request', (request, response) =>
  request.url?.startsWith('/api/') ? answer(request, response) : page.middlewares(request, response),
);
// #endregion
const port = Number(process.env.PORT ?? 8787);
server.listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}`));
