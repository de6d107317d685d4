/** Two runs of one conversation: the first one ends by itself, and the second one is cancelled. */
import { createAgent, type Model } from 'runchart';

/** Answers the first request. It never answers the second one. */
const model: Model = {
  id: 'scripted',
  async *stream({ messages }, { signal }) {
    if (messages.length > 1) await new Promise((_, reject) => signal.addEventListener('abort', reject));
    yield { type: 'text-delta', text: 'Hello.' };
    yield { type: 'finish', reason: 'stop' };
  },
};
const agent = createAgent({ model });
const conversation = await agent.open();

// #region ends
const first = await conversation.send('Hello').result;
console.log(first.termination, first.turns, first.text);

const run = conversation.send('Write a novel');
await conversation.cancel();
const second = await run.result;
console.log(second.termination, conversation.status);
// #endregion
await agent.close();
