/** A chat with Express as its server: `npm start` builds the page of `page` into `dist`, and serves it. */
import express from 'express';
import { createAgent } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { createHandlers, nodeHandler } from 'runchart/transports';
import { model, transfer } from './model.js';

// #region serve
const agent = createAgent({
  model,
  tools: [transfer],
  store: jsonlStore('.conversations'),
  policies: { partialReply: 'keep' },
});
// Replace this with your own check of a session or a token. With { by, owner } each user has conversations of their own.
const handler = createHandlers(agent, { authorize: () => ({ by: 'ada', owner: 'ada' }) });

const app = express();
// Express removes `/api` from the path, so the handler has no basePath.
app.use('/api', nodeHandler(handler));
app.use(express.static('dist'));
// #endregion
const port = Number(process.env.PORT ?? 8787);
app.listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}`));
