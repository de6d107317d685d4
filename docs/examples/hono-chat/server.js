/** A chat with Hono as its server: `npm start` builds the page of `page` into `dist`, and serves it. */
import { serve } from '@hono/node-server';
import { serveStatic } from '@hono/node-server/serve-static';
import { Hono } from 'hono';
import { createAgent } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { createHandlers } from 'runchart/transports';
import { model, transfer } from './model.js';

// #region serve
const agent = createAgent({
  model,
  tools: [transfer],
  store: jsonlStore('.conversations'),
  policies: { partialReply: 'keep' },
});
// Replace this with your own check of a session or a token. With { by, owner } each user has conversations of their own.
const handler = createHandlers(agent, { authorize: () => ({ by: 'ada', owner: 'ada' }), basePath: '/api' });

const app = new Hono();
app.all('/api/*', ({ req }) => handler(req.raw));
app.use(serveStatic({ root: './dist' }));
// #endregion
const port = Number(process.env.PORT ?? 8787);
serve({ fetch: app.fetch, hostname: '127.0.0.1', port }, () => console.log(`http://127.0.0.1:${port}`));
