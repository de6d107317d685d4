/** The first example of the README. It needs OPENAI_API_KEY, or the address of another server in OPENAI_BASE_URL. */
// #region first
import { createAgent, defineTool } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { openai } from 'runchart/openai';
import * as z from 'zod';

const weather = defineTool({
  name: 'weather',
  description: 'Returns the weather in a city.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => `18 °C and dry in ${city}`,
});

const agent = createAgent({
  model: openai(process.env.OPENAI_MODEL ?? 'gpt-5.2'),
  tools: [weather],
  store: jsonlStore('.runchart'),
});
const conversation = await agent.open('trip');
console.log(await conversation.send('Do I need a jacket in Lisbon?').text);
await agent.close();
// #endregion
