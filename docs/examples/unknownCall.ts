/** A process ends while a tool runs: the next one cannot know what happened, and settles the call. */
import { createAgent, defineTool, forkConversation, type Model, memoryStore } from 'runchart';
import * as z from 'zod';

/** Calls the tool, then answers. */
const model: Model = {
  id: 'scripted',
  async *stream({ messages }) {
    const hasResult = messages.at(-1)?.role === 'tool';
    if (hasResult) yield { type: 'text-delta', text: 'The rent is paid.' };
    else yield { type: 'tool-call', callId: 'c1', name: 'pay', args: '{"euros":900}' };
    yield { type: 'finish', reason: hasResult ? 'stop' : 'tool-calls' };
  },
};
const payments: number[] = [];
const pay = defineTool({
  name: 'pay',
  description: 'Pays the rent.',
  parameters: z.object({ euros: z.number() }),
  execute({ euros }) {
    payments.push(euros);
    return `paid ${euros} euros`;
  },
});
const store = memoryStore();
const before = createAgent({ model, tools: [pay], store });
const rent = await before.open('rent');
await rent.send('Pay the rent').result;
const started = rent.log().findIndex(({ type }) => type === 'tool-started') + 1;
await before.close();
// The log as it is after a crash between `tool-started` and `tool-result`.
await forkConversation(store, 'rent', 'rent after a crash', started);

// #region settle
const agent = createAgent({ model, tools: [pay], store });
const conversation = await agent.open('rent after a crash');
for (const { callId, name } of conversation.unsettled) {
  const wasPaid = payments.includes(900); // ask the bank
  console.log(`${name} is unknown, paid: ${wasPaid}`);
  await conversation.settle(callId, wasPaid ? { ran: 'paid 900 euros' } : { retry: true });
}
console.log(await conversation.resume().text);
// #endregion
await agent.close();
