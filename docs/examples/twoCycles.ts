/** A message that is sent during a run waits in the queue, and begins a request cycle of its own. */
import { createAgent } from 'runchart';
import { scriptedModel } from 'runchart/testing';

const agent = createAgent({
  model: scriptedModel(['It is green again.', 'It is committed.']),
  policies: { whileActive: 'followUp' },
});
const conversation = await agent.open();

// #region cycles
conversation.send('Mend the test');
const second = conversation.send('Then commit it'); // waits until the first request has ended
console.log((await second.result).text);

for (const { steps, stop } of conversation.view().cycles) {
  console.log(steps.map(({ type }) => type).join(', '), stop?.reason);
}
// #endregion
await agent.close();
