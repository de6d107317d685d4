/** Steps 5, 7 and 8 of the tutorial: the agent behind HTTP, with an inspector, ended in order. */
import { createServer } from 'node:http';
import { startInspector } from 'runchart/inspect';
import { createHandlers, nodeHandler } from 'runchart/transports';
import { makeAgent } from './agent.ts';

// #region authorize
/** Replace this with your own check of a session. With { by, owner } each user has conversations of their own. */
const authorize = (request: Request) =>
  request.headers.get('authorization') === `Bearer ${process.env.TOKEN ?? 'secret'}` && { by: 'ann', owner: 'ann' };
// #endregion

export async function serve(port: number) {
  // #region inspect
  const inspector = await startInspector({ control: true });
  console.log('inspector', new URL(inspector.url).hostname);
  const agent = makeAgent({ inspect: inspector.observe });
  // #endregion

  // #region serve
  const handler = createHandlers(agent, { authorize, basePath: '/api' });
  const server = createServer(nodeHandler(handler)).listen(port, '127.0.0.1');
  // #endregion

  // #region close
  const close = async () => {
    server.close();
    server.closeAllConnections();
    await agent.close(); // ends runs as interrupted, so that they can be resumed
    await inspector.close();
  };
  process.once('SIGTERM', close);
  // #endregion
  return { server, close };
}
