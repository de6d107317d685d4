/** Steps 1 to 4 of the tutorial: a question, an approval, and the rest in another process. */
import { makeAgent } from './agent.ts';

export async function ask(): Promise<void> {
  // #region ask
  const agent = makeAgent();
  const conversation = await agent.open('account');
  console.log(await conversation.send('How much is there?').text);
  // #endregion

  // #region suspend
  const { termination, pending } = await conversation.send('Pay the rent.').result;
  console.log(termination, pending[0]?.name, pending[0]?.args);
  await agent.close();
  // #endregion
}

export async function resume(): Promise<void> {
  // #region resume
  const agent = makeAgent();
  const conversation = await agent.open('account');
  for (const { callId, suspension } of conversation.pending)
    await conversation.decide({ callId, suspension, action: 'approve', by: 'ann' });
  console.log(await conversation.resume().text);
  await agent.close();
  // #endregion
}
