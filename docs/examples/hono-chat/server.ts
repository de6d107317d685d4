/** The chat of `react-chat` with Hono as its server: `npm run build`, then `npm start`. */
import { serve } from '@hono/node-server';
import { serveStatic } from '@hono/node-server/serve-static';
import { Hono } from 'hono';
import { createAgent } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { createHandlers } from 'runchart/transports';
import { model, transfer } from '../react-chat/model.ts';

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
app.use(serveStatic({ root: './page' }));
// #endregion
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT ?? 8787) });
