/** A run that is watched: the page has an address of its own, and a conversation can be shown at any time. */
import { createAgent, type Model } from 'runchart';
import { startInspector } from 'runchart/inspect';

const model: Model = {
  id: 'scripted',
  async *stream() {
    yield { type: 'text-delta', text: 'It is seen.' };
    yield { type: 'finish', reason: 'stop' };
  },
};

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
