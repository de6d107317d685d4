/** runchart with its own adapter on the same fetch; the run is iterated to its end, as a user interface would. */
import * as z from 'zod';
import { createAgent, defineTool } from '../../dist/src/index.js';
import { openai } from '../../dist/src/models/openai.js';
import { scriptedFetch } from './scripts.mjs';

const echo = defineTool({
  name: 'echo',
  description: 'Returns its text.',
  parameters: z.object({ text: z.string() }),
  execute: async ({ text }) => `echo: ${text}`,
});

export function makeContender(replies) {
  const model = openai('bench', { apiKey: 'bench', baseURL: 'http://bench.local/v1', fetch: scriptedFetch(replies) });
  const limits = { turns: 1000, identicalCalls: 1000 };
  const agent = createAgent({ model, tools: [echo], policies: { limits } });
  return async function run() {
    const conversation = await agent.open();
    const handle = conversation.send('Go.');
    let text = '';
    for await (const item of handle) if (item.type === 'text-delta') text += item.text;
    const result = await handle.result;
    if (result.termination !== 'NaturalEnd') throw new Error(JSON.stringify(result));
    await conversation.close();
    return text;
  };
}
