/** One request chooses its model, its settings and its tools, and says who asks. */
import { createAgent, defineTool } from 'runchart';
import { scriptedModel } from 'runchart/testing';
import * as z from 'zod';

const readInvoice = defineTool({
  name: 'read_invoice',
  description: 'Reads an invoice.',
  parameters: z.object({}),
  execute(_, { origin }) {
    const { plan } = origin.context as { plan: string };
    console.log(`read_invoice was called for ${origin.by}, who has the plan ${plan}`);
    return '120 euros';
  },
});
const small = scriptedModel([
  {
    parts: [
      { type: 'tool-call', callId: 'c1', name: 'read_invoice', args: '{}' },
      { type: 'finish', reason: 'tool-calls' },
    ],
  },
  'It is 120 euros, said the small model.',
]);
const agent = createAgent({ model: scriptedModel([]), models: { small }, tools: [readInvoice] });
const conversation = await agent.open();

// #region options
const run = conversation.send('Sum up the invoice', {
  by: 'ann@example.com',
  context: { plan: 'pro' },
  model: 'small',
  settings: { temperature: 0, reasoningEffort: 'low' },
  tools: ['read_invoice'],
});
console.log((await run.result).text);
// #endregion
await agent.close();
