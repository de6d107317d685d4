/** Sends a message. The call of its run waits for a decision, and this process ends. */
import { makeAgent } from './agent.js';

const agent = makeAgent();
const conversation = await agent.open('rent');
// While a call waits, a new message would be queued.
if (conversation.pending.length === 0) await conversation.send('Pay the rent.').result;
for (const { name, args } of conversation.pending) console.log(`waits: ${name} ${JSON.stringify(args)}`);
await agent.close();
