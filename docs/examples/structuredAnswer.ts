/** A final answer that is held to a schema: the first reply does not fit, the second one does. */
import { createAgent } from 'runchart';
import { scriptedModel } from 'runchart/testing';
import * as z from 'zod';

const model = scriptedModel(['About 18 degrees.', '{"city":"Lisbon","degrees":18}']);

// #region answer
const agent = createAgent({ model, output: z.object({ city: z.string(), degrees: z.number() }) });
const conversation = await agent.open();
const result = await conversation.send('How warm is it in Lisbon?').result;
console.log(result.output, `after ${result.turns} replies`);
// #endregion
await agent.close();
