/** Acts during a run: a steer joins it, a message waits until it has ended, and a cancel stops one. */
// #region setup
import { createAgent, type Model } from 'runchart';

/** A script in place of a real model: it repeats the messages that it has received, and never answers a novel. */
const model: Model = {
  id: 'scripted',
  async *stream({ messages }, { signal }) {
    const parts = messages.flatMap(({ role, content }) => (role === 'user' ? content : []));
    const texts = parts.map((part) => (part.type === 'text' ? part.text : ''));
    if (texts.includes('Write a novel')) await new Promise((_, reject) => signal.addEventListener('abort', reject));
    yield { type: 'text-delta', text: `You asked: ${texts.join(', ')}.` };
    yield { type: 'finish', reason: 'stop' };
  },
};
const agent = createAgent({ model, policies: { whileActive: 'followUp' } });
const conversation = await agent.open();
// #endregion

// #region act
const run = conversation.send('Find a flat');
conversation.steer('with a balcony'); // joins this run, before its next model call
const next = conversation.send('Write a novel'); // waits until this run has ended

console.log((await run.result).text);
await conversation.cancel(); // stops the novel
console.log((await next.result).termination, conversation.status);
await agent.close();
// #endregion
