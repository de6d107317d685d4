/** An agent over HTTP. It ends in order: no new requests, then the runs. */
// #region serve
import { createServer } from 'node:http';
import { createAgent } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { createHandlers, nodeHandler } from 'runchart/transports';
import { model } from './model.js';

const { warn, error } = console;
const agent = createAgent({ model, store: jsonlStore('.conversations'), logger: { warn, error } });

const token = process.env.TOKEN ?? 'secret';
/**
 * Replace this with your own check of a session. With { by, owner } each user has conversations of their own.
 * @param {Request} request
 */
const authorize = (request) =>
  request.headers.get('authorization') === `Bearer ${token}` && { by: 'ada', owner: 'ada' };

const port = Number(process.env.PORT ?? 8787);
const server = createServer(nodeHandler(createHandlers(agent, { authorize })));
server.listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}`));

const close = async () => {
  server.close();
  server.closeAllConnections();
  await agent.close(); // ends runs as interrupted, so that they can be resumed
};
process.once('SIGTERM', close);
process.once('SIGINT', close);
// #endregion
