/** A final answer that is held to a schema, after a tool was called; it is shown while it streams. */
import { createAgent, defineTool } from 'runchart';
import { openai } from 'runchart/openai';
import * as z from 'zod';

const weather = defineTool({
  name: 'weather',
  description: 'The weather in a city now.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => `18 degrees in ${city}`,
});

const output = z.object({ city: z.string(), degrees: z.number() });
const agent = createAgent({ model: openai('gpt-5.2'), tools: [weather], output });
const run = (await agent.open()).send('How warm is it in Lisbon?');
for await (const partial of run.partialOutput) console.log(partial);
console.log((await run.result).output?.degrees);
