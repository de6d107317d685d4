/** Reads the log of one request, and what is computed from it. */
import { costOf, createAgent } from 'runchart';
import { scriptedModel } from 'runchart/testing';

const usage = { inputTokens: 900, outputTokens: 20 };
const parts = [
  { type: 'text-delta', text: '18 degrees.' },
  { type: 'finish', reason: 'stop', usage },
] as const;
const model = scriptedModel([{ parts }], { prices: { input: 3, output: 15 } });
const agent = createAgent({ model });

// #region read
const conversation = await agent.open('trip');
await conversation.send('How warm is it in Lisbon?').result;

const log = conversation.log();
for (const { seq, type } of log) console.log(seq, type);

console.log(conversation.messages().map(({ role }) => role));
console.log(costOf(log).total.costUsd);
// #endregion
await agent.close();
