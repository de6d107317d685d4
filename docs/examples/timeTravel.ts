/** Goes back to an earlier entry of a log, and continues a copy from there. Nothing that happened is done again. */
// #region setup
import { createAgent, defineTool, forkConversation, type Model, memoryStore, pastOf } from 'runchart';
import * as z from 'zod';

/** A script in place of a real model: it calls the tool, then repeats the result. */
const model: Model = {
  id: 'scripted',
  async *stream({ messages }) {
    const last = messages.at(-1);
    if (last?.role === 'user' && messages.length === 1) {
      yield { type: 'tool-call', callId: 'call_1', name: 'roll', args: '{}' };
      yield { type: 'finish', reason: 'tool-calls' };
      return;
    }
    const [result] = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []));
    yield { type: 'text-delta', text: `You rolled ${result?.type === 'text' ? result.text : 'nothing'}.` };
    yield { type: 'finish', reason: 'stop' };
  },
};
const roll = defineTool({
  name: 'roll',
  description: 'Rolls a die.',
  parameters: z.object({}),
  execute: () => {
    console.log('a die is rolled');
    return 4;
  },
});
const store = memoryStore();
const start = () => createAgent({ model, tools: [roll], store });
// #endregion

// #region travel
const agent = start();
const game = await agent.open('game');
await game.send('Roll').result;
const log = game.log();
await agent.close();

const rolled = log.findIndex(({ type }) => type === 'tool-result') + 1;
const then = pastOf(log, rolled);
console.log(then.cycle, ...then.messages.map(({ role }) => role));

await forkConversation(store, 'game', 'what if', rolled);
const later = start();
const whatIf = await later.open('what if');
console.log(await whatIf.resume().text);
await later.close();
// #endregion
