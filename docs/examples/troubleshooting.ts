/** An error with its code, its message and what to do about it. */
import { createAgent, RunchartError } from 'runchart';
import { scriptedModel } from 'runchart/testing';

const agent = createAgent({ model: scriptedModel(['Hello.']) });
const conversation = await agent.open('chat');

// #region print
const run = conversation.send('Hello.');
try {
  conversation.send('Are you there?');
} catch (error) {
  if (!RunchartError.isRunchartError(error)) throw error;
  console.log(error.code, error.message);
}
console.log(await run.text);
// #endregion
await agent.close();
