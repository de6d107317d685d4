/** The cost of a conversation, and a budget that stops it. */
// #region costs
import { costOf, createAgent } from 'runchart';
import { scriptedModel } from 'runchart/testing';

// A script in place of a real model. Each reply reports its tokens.
const usage = { inputTokens: 1_000, outputTokens: 100 };
const reply = (text: string) =>
  ({
    parts: [
      { type: 'text-delta', text },
      { type: 'finish', reason: 'stop', usage },
    ],
  }) as const;
const model = scriptedModel([reply('Good morning.'), reply('Good night.')], { prices: { input: 3, output: 15 } });

const agent = createAgent({ model, policies: { limits: { costUsd: 0.005 } } });
const conversation = await agent.open();
for (const text of ['Morning!', 'Night!', 'Noon!']) {
  const { cause, costUsd } = await conversation.send(text).result;
  console.log(cause, costUsd);
}
console.log(costOf(conversation.log()).total.costUsd);
await agent.close();
// #endregion
