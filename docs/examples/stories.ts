/** Tests of one's own agent: the first scripted test, a story told in moves, and a story from a log. */
// #region setup
import { createAgent, defineTool } from 'runchart';
import { runScript, scriptedModel, testOf } from 'runchart/testing';
import * as z from 'zod';

const paid: { to: string; euros: number }[] = [];
const transfer = defineTool({
  name: 'transfer',
  description: 'Transfers money.',
  parameters: z.object({ to: z.string().min(1), euros: z.number().min(0.01) }),
  needsApproval: ({ euros }) => euros > 100,
  execute: ({ to, euros }) => {
    paid.push({ to, euros });
    return 'done';
  },
});
// #endregion

// #region scripted
const model = scriptedModel([
  {
    parts: [
      { type: 'tool-call', callId: 'c1', name: 'transfer', args: '{"to":"Ada","euros":5}' },
      { type: 'finish', reason: 'tool-calls' },
    ],
  },
  'Ada has her five euros.',
]);
const scripted = createAgent({ model, tools: [transfer] });
const { text } = await scripted.run('Send Ada five euros.');
console.log(text, model.remaining, paid);
await scripted.close();
// #endregion

// #region story
const story = await runScript(
  (world) => createAgent({ tools: [transfer], ...world }),
  [
    { do: 'send' },
    { do: 'reply', calls: [{ name: 'transfer', args: { to: 'landlord', euros: 900 } }] },
    { do: 'crash' },
    { do: 'decide', call: 1, action: 'approve' },
    { do: 'resume' },
    { do: 'tool', call: 1 },
    { do: 'reply', text: 'The rent is paid.' },
  ],
);
console.log(story.path.name);
console.log(story.result.reason, paid.length);
// #endregion

// #region log
console.log(testOf(story.log).split('\n').length > 10);
// #endregion
