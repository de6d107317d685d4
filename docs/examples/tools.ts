/** Tools: a schema, the context, an approval, an effect that may run again, progress, errors and an image. */
import { createAgent, defineTool, toolResult } from 'runchart';
import { scriptedModel } from 'runchart/testing';
import * as z from 'zod';

const orders = new Map([['o1', { euros: 140, paid: true }]]);
/** A payment service that acts once for each key. */
const refunds = new Map<string, number>();
const payments = {
  refund: async (euros: number, options: { key: string; signal: AbortSignal }): Promise<void> => {
    options.signal.throwIfAborted();
    refunds.set(options.key, euros);
  },
};
const picture = Uint8Array.from(
  atob('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='),
  (character) => character.charCodeAt(0),
);

const readOrder = defineTool({
  name: 'read_order',
  description: 'Returns an order by its id.',
  parameters: z.object({ id: z.string().describe('The id of the order, for example o1.') }),
  readOnly: true,
  execute: ({ id }) => orders.get(id) ?? toolResult.error(`There is no order ${id}.`, 'no_order'),
});

// #region effect
const refund = defineTool({
  name: 'refund',
  description: 'Refunds a part of an order.',
  parameters: z.object({ id: z.string(), euros: z.number().positive() }),
  needsApproval: ({ euros }) => euros > 100,
  idempotent: true,
  timeoutMs: 10_000,
  async execute({ id, euros }, { idempotencyKey, signal }) {
    await payments.refund(euros, { key: idempotencyKey, signal });
    return { id, refunded: euros };
  },
});
// #endregion

// #region progress
const makeReport = defineTool({
  name: 'make_report',
  description: 'Makes the report of a month.',
  parameters: z.object({ month: z.string() }),
  async *execute({ month }, { sleep }) {
    for (const step of ['reading', 'adding']) {
      yield { step };
      await sleep(1);
    }
    return `The report of ${month} is ready.`;
  },
});
// #endregion

// #region image
const drawSales = defineTool({
  name: 'draw_sales',
  description: 'Draws the sales of a month.',
  parameters: z.object({ month: z.string() }),
  execute: ({ month }) => [
    { type: 'text', text: `The sales of ${month}:` },
    { type: 'image', mediaType: 'image/png', data: picture },
  ],
});
// #endregion

const calls = [
  ['read_order', { id: 'o7' }],
  ['refund', { id: 'o1', euros: 40 }],
  ['make_report', { month: 'May' }],
  ['draw_sales', { month: 'May' }],
] as const;
const model = scriptedModel([
  {
    parts: [
      ...calls.map(([name, args], index) => ({
        type: 'tool-call' as const,
        callId: `c${index}`,
        name,
        args: JSON.stringify(args),
      })),
      { type: 'finish', reason: 'tool-calls' },
    ],
  },
  'All is done.',
]);

// #region use
const agent = createAgent({ model, tools: [readOrder, refund, makeReport, drawSales] });
const conversation = await agent.open();
conversation.live$.subscribe((signal) => {
  if (signal.type === 'tool-progress' && typeof signal.update === 'object') console.log('progress', signal.update);
});
const result = await conversation.send('Refund 40 euros of o1.').result;
for (const { name, outcome, code } of result.calls) console.log(name, code ?? outcome);
console.log(refunds.size); // one refund under one key
await agent.close();
// #endregion
