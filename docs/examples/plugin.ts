/** A plugin: an object of phases. This one tells the model the time, forbids a tool at night and tells what ran. */
import { createAgent, defineTool, type Model, type Plugin } from 'runchart';
import * as z from 'zod';

// #region plugin
const officeHours = (hour: () => number): Plugin => ({
  name: 'office-hours',
  beforeInference: () => ({ context: `It is ${hour()} o'clock.` }),
  beforeToolExecute({ call }) {
    if (call.name === 'deploy' && hour() >= 18) return { block: 'nothing is deployed after 18 h' };
  },
  afterToolExecute({ call, outcome }) {
    console.log(`${call.name}: ${outcome}`);
  },
});
// #endregion

const deploy = defineTool({
  name: 'deploy',
  description: 'Deploys a service.',
  parameters: z.object({ service: z.string() }),
  execute: ({ service }) => `${service} is live`,
});

/** Asks for the deployment, then quotes the clock it was told and what came of the call. */
const model: Model = {
  id: 'scripted',
  async *stream({ messages, system }) {
    const last = messages.at(-1);
    if (last?.role === 'tool') {
      const [said] = last.content;
      yield { type: 'text-delta', text: `${system} ${said?.type === 'text' ? said.text : ''}` };
      yield { type: 'finish', reason: 'stop' };
    } else {
      yield { type: 'tool-call', callId: 'call_1', name: 'deploy', args: '{"service":"shop"}' };
      yield { type: 'finish', reason: 'tool-calls' };
    }
  },
};

// #region use
for (const hour of [11, 19]) {
  const agent = createAgent({ model, tools: [deploy], plugins: [officeHours(() => hour)] });
  const { text } = await agent.run('Deploy the shop');
  console.log(text);
  await agent.close();
}
// #endregion
