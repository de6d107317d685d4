/** One question to an agent that has a tool: `npm start`, or `npm start -- "your question"`. */
import { createAgent, defineTool } from 'runchart';
import { jsonlStore } from 'runchart/node';
import * as z from 'zod';
import { model } from './model.js';

const weather = defineTool({
  name: 'weather',
  description: 'Returns the weather in a city.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => `18 °C and dry in ${city}`,
});

// The conversation is a file in `.conversations`: the next start sends the earlier messages too.
const agent = createAgent({ model, tools: [weather], store: jsonlStore('.conversations') });
const conversation = await agent.open('trip');
console.log(await conversation.send(process.argv[2] ?? 'Do I need a jacket in Lisbon?').text);
await agent.close();
