/** A tool that fails once, within limits. */
// #region tool
import { createAgent, defineTool } from 'runchart';
import { scriptedModel } from 'runchart/testing';
import * as z from 'zod';

// A script in place of a real model: it calls the tool, then answers.
const model = scriptedModel([
  {
    parts: [
      { type: 'tool-call', callId: 'c1', name: 'rate', args: '{}' },
      { type: 'finish', reason: 'tool-calls' },
    ],
  },
  'One euro is 1.08 dollars.',
]);
let attempts = 0;
const rate = defineTool({
  name: 'rate',
  description: 'Returns the exchange rate.',
  parameters: z.object({}),
  execute() {
    attempts++;
    if (attempts === 1) throw new Error('The bank does not answer.');
    return '1.08';
  },
});
// #endregion

// #region limits
const agent = createAgent({
  model,
  tools: [rate],
  policies: {
    limits: { turns: 20, runMs: 60_000, toolMs: 10_000 },
    modelRetry: { attempts: 3 },
    toolRetry: { attempts: 2, baseMs: 10 },
  },
});
const conversation = await agent.open();
const result = await conversation.send('How many dollars is a euro?').result;
console.log(result.text, `${attempts} executions`);
await agent.close();
// #endregion
