/** Back to any place of a log, and on from there in a conversation of its own; nothing that happened is done again. */
import { createAgent, defineTool, forkConversation, type Model, memoryStore, pastOf } from 'runchart';
import * as z from 'zod';

const model: Model = {
  id: 'scripted',
  async *stream({ messages }) {
    const last = messages.at(-1);
    if (last?.role === 'user' && messages.length === 1) {
      yield { type: 'tool-call', callId: 'call_1', name: 'roll', args: '{}' };
      yield { type: 'finish', reason: 'tool-calls' };
      return;
    }
    const [said] = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []));
    yield { type: 'text-delta', text: `You rolled ${said?.type === 'text' ? said.text : 'nothing'}.` };
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
const whatIf = await start().open('what if');
console.log(await whatIf.resume().text);
// #endregion
