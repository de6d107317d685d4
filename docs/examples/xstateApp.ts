/** An agent in a machine of one's own: a state invokes it, and leaving the state cancels it. */
import { createAgent, type RunResult } from 'runchart';
import { scriptedModel } from 'runchart/testing';
import { assign, createActor, fromPromise, setup, waitFor } from 'xstate';

const agent = createAgent({ model: scriptedModel(['Three commits, one fix.']) });

// #region machine
const summarize = fromPromise<RunResult, { text: string }>(({ input, signal }) => agent.run(input.text, { signal }));

const review = setup({
  types: { context: {} as { summary: string } },
  actors: { summarize },
}).createMachine({
  initial: 'summarizing',
  context: { summary: '' },
  states: {
    summarizing: {
      invoke: {
        src: 'summarize',
        input: { text: 'Summarize the changes of today.' },
        onDone: { target: 'reading', actions: assign({ summary: ({ event }) => event.output.text }) },
      },
      on: { SKIP: 'reading' },
    },
    reading: {},
  },
});

const actor = createActor(review).start();
const { context } = await waitFor(actor, (state) => state.matches('reading'));
console.log(context.summary);
// #endregion
await agent.close();
