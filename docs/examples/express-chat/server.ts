/** The chat of `react-chat` with Express as its server: `npm run build`, then `npm start`. */
import express from 'express';
import { createAgent } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { createHandlers, nodeHandler } from 'runchart/transports';
import { model, transfer } from '../react-chat/model.ts';

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
app.use(express.static('page'));
// #endregion
app.listen(Number(process.env.PORT ?? 8787), '127.0.0.1');
