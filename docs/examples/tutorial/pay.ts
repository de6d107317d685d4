/** Step 3 of the tutorial: a call that waits for a decision. */
// #region suspend
import { makeAgent } from './agent.ts';

const agent = makeAgent();
const conversation = await agent.open('account');
const { termination, pending } = await conversation.send('Pay the rent.').result;
console.log(termination, pending[0]?.name, pending[0]?.args);
await agent.close();
// #endregion
