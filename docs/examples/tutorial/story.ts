/** Step 6 of the tutorial: a test of the agent, with a crash. */
// #region story
import { runScript } from 'runchart/testing';
import { makeAgent } from './agent.ts';

const { result, log } = await runScript(
  (world) => makeAgent(world),
  [
    { do: 'send', text: 'Pay the rent.' },
    { do: 'reply', calls: [{ name: 'transfer', args: { to: 'the landlord', euros: 900 } }] },
    { do: 'crash' },
    { do: 'decide', call: 1, action: 'deny' },
    { do: 'resume' },
    { do: 'reply', text: 'The rent was not paid.' },
  ],
);
console.log(result.reason, log.filter(({ type }) => type === 'tool-started').length);
// #endregion
