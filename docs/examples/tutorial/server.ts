/** Steps 5, 7 and 8 of the tutorial: the agent as an HTTP server, with an inspector, which ends in order. */
// #region serve
import { createServer } from 'node:http';
import { startInspector } from 'runchart/inspect';
import { createHandlers, nodeHandler } from 'runchart/transports';
import { makeAgent } from './agent.ts';

/** Replace this with your own check of a session. With { by, owner } each user has conversations of their own. */
const authorize = (request: Request) =>
  request.headers.get('authorization') === `Bearer ${process.env.TOKEN ?? 'secret'}` && { by: 'ann', owner: 'ann' };

const inspector = await startInspector({ control: true });
console.log('inspector', inspector.url);
const agent = makeAgent({ inspect: inspector.observe });
const handler = createHandlers(agent, { authorize, basePath: '/api' });
const server = createServer(nodeHandler(handler)).listen(Number(process.env.PORT ?? 3000), '127.0.0.1');
// #endregion

// #region close
export async function close(): Promise<void> {
  server.close();
  server.closeAllConnections();
  await agent.close(); // ends runs as interrupted, so that they can be resumed
  await inspector.close();
}
process.once('SIGTERM', close);
process.once('SIGINT', close);
// #endregion
