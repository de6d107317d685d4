/** Hooks: a function that looks at each command, and one that does not let the agent stop too early. */
// #region setup
import { createAgent, defineTool, type Model } from 'runchart';
import { hooks } from 'runchart/node';
import * as z from 'zod';

const deploy = defineTool({
  name: 'deploy',
  description: 'Deploys a service.',
  parameters: z.object({ service: z.string() }),
  execute: ({ service }) => `${service} is live`,
});
// #endregion

// #region hooks
let tested = false;
const watch = hooks({
  PreToolUse: [
    {
      matcher: 'deploy|release_.*',
      run({ args }) {
        console.log('about to run', JSON.stringify(args));
        if (!tested) return { decision: 'block', reason: 'run the tests first' };
      },
    },
  ],
  Stop: [
    {
      run() {
        if (tested) return;
        tested = true;
        return { continue: true, reason: 'The tests have run. Try again.' };
      },
    },
  ],
});
// #endregion

// #region agent
/** A script in place of a real model. It calls `deploy` after each message of a user or of a Stop hook. */
const model: Model = {
  id: 'scripted',
  async *stream({ messages }) {
    const last = messages.at(-1);
    const [part] = last?.content ?? [];
    const words = part?.type === 'text' ? part.text : '';
    if (last?.role === 'user') {
      yield { type: 'tool-call', callId: 'call', name: 'deploy', args: '{"service":"shop"}' };
    } else {
      console.log(words);
      yield { type: 'text-delta', text: 'That is all.' };
    }
    yield { type: 'finish', reason: last?.role === 'user' ? 'tool-calls' : 'stop' };
  },
};

const agent = createAgent({ model, tools: [deploy], plugins: [watch] });
const { termination, turns } = await agent.run('Deploy the shop');
console.log(termination, turns);
await agent.close();
// #endregion
