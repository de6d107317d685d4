/** Step 4 of the tutorial: another process decides, and continues the run. */
// #region resume
import { makeAgent } from './agent.ts';

const agent = makeAgent();
const conversation = await agent.open('account');
for (const { callId, suspension } of conversation.pending)
  await conversation.decide({ callId, suspension, action: 'approve', by: 'ann' });
console.log(await conversation.resume().text);
await agent.close();
// #endregion
