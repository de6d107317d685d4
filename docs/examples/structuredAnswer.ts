/** A final answer that is held to a schema: the first reply does not fit, the second one does. */
// #region answer
import { createAgent } from 'runchart';
import { scriptedModel } from 'runchart/testing';
import * as z from 'zod';

// A script in place of a real model: its first reply does not fit the schema.
const model = scriptedModel(['About 18 degrees.', '{"city":"Lisbon","degrees":18}']);

const agent = createAgent({ model, output: z.object({ city: z.string(), degrees: z.number() }) });
const conversation = await agent.open();
const result = await conversation.send('How warm is it in Lisbon?').result;
console.log(result.output, `after ${result.turns} replies`);
await agent.close();
// #endregion
