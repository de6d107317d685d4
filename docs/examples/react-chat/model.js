/** The model and the tool of the chat. */
import { defineTool } from 'runchart';
import * as z from 'zod';

export const transfer = defineTool({
  name: 'transfer',
  description: 'Sends money.',
  parameters: z.object({ to: z.string(), euros: z.number() }),
  needsApproval: true,
  execute: ({ to, euros }) => `sent ${euros} euros to ${to}`,
});

/** @type {(ms: number) => Promise<void>} */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Replace it by openai('gpt-5.2'), for example. This one pays the rent, and repeats every other message slowly.
 * @type {import('runchart').Model}
 */
export const model = {
  id: 'example',
  async *stream({ messages }) {
    const last = messages.at(-1);
    const [part] = last?.content ?? [];
    const text = part?.type === 'text' ? part.text : '';
    if (last?.role === 'user' && /rent/i.test(text)) {
      yield { type: 'text-delta', text: 'I will pay the rent.' };
      yield { type: 'tool-call', callId: 'call', name: 'transfer', args: '{"to":"the landlord","euros":900}' };
      yield { type: 'finish', reason: 'tool-calls' };
      return;
    }
    const reply =
      last?.role === 'tool' ? `Done: ${text}.` : `You wrote “${text}”. ${'I am still talking. '.repeat(40)}`;
    for (const word of reply.split(/(?<= )/)) {
      await pause(60);
      yield { type: 'text-delta', text: word };
    }
    yield { type: 'finish', reason: 'stop' };
  },
};
