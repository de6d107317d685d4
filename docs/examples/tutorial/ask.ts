/** Step 2 of the tutorial: a question that a tool answers. */
// #region ask
import { makeAgent } from './agent.ts';

const agent = makeAgent();
const conversation = await agent.open('account');
console.log(await conversation.send('How much is there?').text);
await agent.close();
// #endregion
