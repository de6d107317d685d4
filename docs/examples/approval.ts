/** A call that waits for a person: the run suspends, the process may end, another one takes the decision and goes on. */
// #region setup
import { createAgent, defineTool } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { scriptedModel } from 'runchart/testing';
import * as z from 'zod';

/** A script in place of a real model: it asks for the transfer, then answers. Replace it by openai('gpt-5.2'). */
const model = scriptedModel([
  {
    parts: [
      { type: 'tool-call', callId: 'call_1', name: 'transfer', args: '{"to":"landlord","euros":900}' },
      { type: 'finish', reason: 'tool-calls' },
    ],
  },
  'Done: sent 900 euros to landlord.',
]);
// #endregion

// #region suspend
const transfer = defineTool({
  name: 'transfer',
  description: 'Sends money.',
  parameters: z.object({ to: z.string(), euros: z.number().positive() }),
  needsApproval: ({ euros }) => euros > 100,
  execute: ({ to, euros }) => `sent ${euros} euros to ${to}`,
});
const start = () => createAgent({ model, tools: [transfer], store: jsonlStore('.conversations') });

const today = start();
const conversation = await today.open('rent');
const result = await conversation.send('Pay the rent').result;
console.log(result.termination, result.pending[0]?.args);
await today.close();
// #endregion

// #region resume
const later = start(); // days later, in another process
const again = await later.open('rent');
console.log(again.status);
for (const { callId, suspension } of again.pending) {
  console.log(await again.decide({ callId, suspension, action: 'approve', by: 'ada' }));
}
console.log(await again.resume().text);
await later.close();
// #endregion
