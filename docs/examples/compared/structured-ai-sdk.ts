/** A final answer that is held to a schema, after a tool was called; it is shown while it streams. */
import { openai } from '@ai-sdk/openai';
import { isStepCount, Output, streamText, tool } from 'ai';
import * as z from 'zod';

const weather = tool({
  description: 'The weather in a city now.',
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => `18 degrees in ${city}`,
});

const schema = z.object({ city: z.string(), degrees: z.number() });
const result = streamText({
  model: openai('gpt-5.2'),
  tools: { weather },
  output: Output.object({ schema }),
  stopWhen: isStepCount(5),
  prompt: 'How warm is it in Lisbon?',
});
for await (const partial of result.partialOutputStream) console.log(partial);
console.log((await result.output).degrees);
