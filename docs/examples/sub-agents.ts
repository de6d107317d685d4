/** Two sub-agents at the same time: one hands in its result, the other waits for a person first. */
// #region setup
import { createAgent, defineTool, type Model, type ModelPart, subAgents } from 'runchart';
import * as z from 'zod';

const asks = (callId: string, name: string, args: object): ModelPart[] => [
  { type: 'tool-call', callId, name, args: JSON.stringify(args) },
  { type: 'finish', reason: 'tool-calls' },
];

/** A script in place of a real model. It plays the parent and both sub-agents. */
const model: Model = {
  id: 'scripted',
  async *stream({ messages }) {
    const [first] = messages[0]?.content ?? [];
    const task = first?.type === 'text' ? first.text : '';
    const last = messages.at(-1);
    const [part] = last?.role === 'tool' ? last.content : [];
    const result = part?.type === 'text' ? part.text : '';
    if (task === 'Count the words') yield* asks('count_1', 'submit_result', { result: '12 words' });
    else if (task === 'Publish the page' && !result) yield* asks('publish_1', 'publish', { page: 'index' });
    else if (task === 'Publish the page') yield* asks('submit_1', 'submit_result', { result });
    else if (result) {
      yield { type: 'text-delta', text: result };
      yield { type: 'finish', reason: 'stop' };
    } else {
      const tasks = ['Count the words', 'Publish the page'].map((each, index) => ({ id: `t${index}`, task: each }));
      yield* asks('spawn_1', 'spawn_agents', { tasks });
    }
  },
};
// #endregion

// #region spawn
const publish = defineTool({
  name: 'publish',
  description: 'Publishes a page.',
  parameters: z.object({ page: z.string() }),
  needsApproval: true,
  execute: ({ page }) => `${page} is live`,
});
const agent = createAgent({ model, tools: [publish, subAgents({ limits: { turns: 20, runMs: 600_000 } })] });
const conversation = await agent.open('site');
const result = await conversation.send('Get the page out').result;
console.log(result.termination, result.pending[0]?.path);
// #endregion

// #region decide
for (const { callId, suspension } of conversation.pending) {
  await conversation.decide({ callId, suspension, action: 'approve', by: 'ada' });
}
const text = await conversation.resume().text;
for (const { id, outcome, text: answer } of JSON.parse(text)) console.log(id, outcome, answer);
console.log((await agent.list()).map(({ id }) => id));
await agent.close();
// #endregion
