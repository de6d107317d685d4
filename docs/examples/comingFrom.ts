/** One task in the words of runchart, for the pages that compare it with other libraries. It needs no key. */
import { createAgent, defineTool, type Plugin } from 'runchart';
import { scriptedModel } from 'runchart/testing';
import * as z from 'zod';

const asksFor = (name: string, args: object) => ({
  parts: [
    { type: 'tool-call' as const, callId: name, name, args: JSON.stringify(args) },
    { type: 'finish' as const, reason: 'tool-calls' as const },
  ],
});
const model = scriptedModel([
  asksFor('weather', { city: 'Lisbon' }),
  'A light one.',
  'One, two, three.',
  asksFor('remove', { path: 'notes.txt' }),
  'The file is gone.',
  '{"jacket":"light"}',
  asksFor('weather', { city: 'Porto' }),
  'None.',
]);

// #region loop
const weather = defineTool({
  name: 'weather',
  description: 'Returns the weather in a city.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => `18 °C and dry in ${city}`,
});
const agent = createAgent({ model, tools: [weather], policies: { limits: { turns: 5 } } });
const { text } = await agent.run('Do I need a jacket in Lisbon?');
console.log(text);
// #endregion

// #region stream
const conversation = await agent.open('chat');
const run = conversation.send('Count to three.');
for await (const signal of run) {
  if (signal.type === 'text-delta') console.log(signal.text);
}
// #endregion

// #region approval
const remove = defineTool({
  name: 'remove',
  description: 'Removes a file.',
  parameters: z.object({ path: z.string() }),
  needsApproval: true,
  execute: ({ path }) => `removed ${path}`,
});
const careful = createAgent({ model, tools: [remove] });
const files = await careful.open('files');
const { pending } = await files.send('Remove notes.txt.').result;
for (const { callId } of pending) await files.decide({ callId, action: 'approve' });
console.log(await files.resume().text);
// #endregion

// #region output
const advice = z.object({ jacket: z.enum(['none', 'light', 'warm']) });
const { output } = await agent.run('Which jacket?', { output: advice });
console.log(output);
// #endregion

// #region node
const audit: Plugin = {
  name: 'audit',
  afterToolExecute: ({ call, outcome }) => console.log(call.name, outcome),
};
const audited = createAgent({ model, tools: [weather], plugins: [audit] });
console.log((await audited.run('And in Porto?')).text);
// #endregion
for (const each of [agent, careful, audited]) await each.close();
