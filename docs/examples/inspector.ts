/** A run that is watched: the page has an address of its own, and a conversation can be shown at any time. */
// #region setup
import { createServer } from 'node:http';
import { createAgent, type Model } from 'runchart';
import { inspectorHandler, startInspector } from 'runchart/inspect';
import { nodeHandler } from 'runchart/transports';

// A script in place of a real model.
const model: Model = {
  id: 'scripted',
  async *stream() {
    yield { type: 'text-delta', text: 'It is seen.' };
    yield { type: 'finish', reason: 'stop' };
  },
};
// #endregion

// #region start
const inspector = await startInspector({ control: true }); // without control the page can only look
const agent = createAgent({ model, inspect: inspector.observe });
const conversation = await agent.open('shown');
console.log(new URL(inspector.url).hostname, await conversation.send('Can you be seen?').text);
// #endregion
await agent.close();

// #region attach
const other = createAgent({ model });
const living = await other.open('living');
const detach = inspector.attach(living); // a living conversation, and its sub-agents
await living.send('And you?').result;
detach();
// #endregion
await other.close();

console.log((await fetch(inspector.url)).status, (await fetch(new URL('/', inspector.url))).status);
await inspector.close();

const nameOf = (cookie: string | null): string | undefined => /^session=(\w+)$/.exec(cookie ?? '')?.[1];

// #region handler
const served = createAgent({ model });
const inspect = inspectorHandler(served, {
  basePath: '/inspector',
  // Your own check of a session: it answers the name of the caller, or false.
  authorize: (request) => nameOf(request.headers.get('cookie')) ?? false,
});
const server = createServer(nodeHandler(inspect)); // open /inspector/ in a browser
// #endregion
const listening = new Promise((resolve) => server.once('listening', resolve));
server.listen(0, '127.0.0.1');
await listening;
const address = server.address() as { port: number };
const ask = (headers: Record<string, string>) => fetch(`http://127.0.0.1:${address.port}/inspector/`, { headers });
console.log((await ask({})).status, (await ask({ cookie: 'session=ada' })).status);
await served.close();
server.closeAllConnections();
server.close();
