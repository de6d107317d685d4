/** The agent of both programs: its tool acts only after an approval. */
import { createAgent, defineTool } from 'runchart';
import { jsonlStore } from 'runchart/node';
import * as z from 'zod';

const transfer = defineTool({
  name: 'transfer',
  description: 'Sends money.',
  parameters: z.object({ to: z.string(), euros: z.number() }),
  needsApproval: true,
  execute: ({ to, euros }) => `sent ${euros} euros to ${to}`,
});

/**
 * Asks for the transfer, then repeats its result. Replace it by openai('gpt-5.2') of `runchart/openai`.
 * @type {import('runchart').Model}
 */
const model = {
  id: 'script',
  async *stream({ messages }) {
    const last = messages.at(-1);
    const [part] = last?.role === 'tool' ? last.content : [];
    if (part?.type === 'text') yield { type: 'text-delta', text: `The bank says: ${part.text}` };
    else yield { type: 'tool-call', callId: 'call', name: 'transfer', args: '{"to":"the landlord","euros":900}' };
    yield { type: 'finish', reason: part ? 'stop' : 'tool-calls' };
  },
};

export const makeAgent = () => createAgent({ model, tools: [transfer], store: jsonlStore('.conversations') });
