/** A tool, a scripted model, one request. It needs no key and no network. */
// #region quickstart
import { createAgent, defineTool } from 'runchart';
import * as z from 'zod';

const weather = defineTool({
  name: 'weather',
  description: 'The weather in a city now.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => `18 °C and dry in ${city}`,
});

const agent = createAgent({
  tools: [weather],
  // A model is whatever streams parts. This one is a script: it asks for the tool, then quotes what the tool said.
  model: {
    id: 'scripted',
    async *stream({ messages }) {
      const last = messages.at(-1);
      const [said] = last?.role === 'tool' ? last.content : [];
      if (said?.type === 'text') yield { type: 'text-delta', text: `A light one: ${said.text}.` };
      else yield { type: 'tool-call', callId: 'call_1', name: 'weather', args: '{"city":"Lisbon"}' };
      yield { type: 'finish', reason: said ? 'stop' : 'tool-calls' };
    },
  },
});
const conversation = await agent.open();
console.log(await conversation.send('Do I need a jacket in Lisbon?').text);
console.log(...conversation.log().map(({ type }) => type));
await agent.close();
// #endregion
