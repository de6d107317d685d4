/** A tool, and a scripted model that calls it. */
// #region tool
import { createAgent, defineTool, toolResult } from 'runchart';
import { scriptedModel } from 'runchart/testing';
import * as z from 'zod';

const orders = new Map([['o1', { euros: 140, paid: true }]]);
const readOrder = defineTool({
  name: 'read_order',
  description: 'Returns an order by its id.',
  parameters: z.object({ id: z.string().describe('The id of the order, for example o1.') }),
  readOnly: true,
  execute: ({ id }) => orders.get(id) ?? toolResult.error(`There is no order ${id}.`, 'no_order'),
});

// A script in place of a real model: it calls the tool, then answers.
const model = scriptedModel([
  {
    parts: [
      { type: 'tool-call', callId: 'c1', name: 'read_order', args: '{"id":"o1"}' },
      { type: 'finish', reason: 'tool-calls' },
    ],
  },
  'It is paid.',
]);
const agent = createAgent({ model, tools: [readOrder] });
const conversation = await agent.open();
const result = await conversation.send('Is o1 paid?').result;
for (const { name, outcome } of result.calls) console.log(name, outcome);
console.log(result.text);
await agent.close();
// #endregion
