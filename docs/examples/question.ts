/** A tool that asks a person a question while it runs, and continues with the answer. */
// #region question
import { createAgent, defineTool, toolResult } from 'runchart';
import { scriptedModel } from 'runchart/testing';
import * as z from 'zod';

const chooseSeat = defineTool({
  name: 'choose_seat',
  description: 'Lets the person choose one of the free seats.',
  parameters: z.object({ seats: z.array(z.string()) }),
  execute({ seats }, { decision }) {
    if (decision?.action === 'answer') return `The person chose ${decision.payload}.`;
    return toolResult.pending({ reason: 'question', payload: { seats } });
  },
});
const model = scriptedModel([
  {
    parts: [
      { type: 'tool-call', callId: 'call_1', name: 'choose_seat', args: '{"seats":["3A","7C"]}' },
      { type: 'finish', reason: 'tool-calls' },
    ],
  },
  'Seat 7C is yours.',
]);
const agent = createAgent({ model, tools: [chooseSeat] });
const conversation = await agent.open();
const { pending } = await conversation.send('Book me a seat.').result;
for (const { callId, suspension, reason, payload } of pending) {
  console.log(reason, payload);
  await conversation.decide({ callId, suspension, action: 'answer', payload: '7C', by: 'ada' });
}
console.log(await conversation.resume().text);
await agent.close();
// #endregion
