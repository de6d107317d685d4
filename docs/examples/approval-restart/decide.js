/** Decides about the waiting call in another process, and continues the run. */
import { makeAgent } from './agent.js';

const action = process.argv[2] === 'approve' ? 'approve' : 'deny';
const agent = makeAgent();
const conversation = await agent.open('rent');
const { pending } = conversation;
for (const { callId, suspension } of pending)
  console.log(await conversation.decide({ callId, suspension, action, by: 'ada' }));
console.log(pending.length > 0 ? await conversation.resume().text : 'No call waits. Run `npm start` first.');
await agent.close();
