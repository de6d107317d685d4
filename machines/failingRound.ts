/**
 * A round with a tool whose failure ends the run (policy `onToolFailure`). Rule: what the round left is durable, and
 * what runs at a gate beside it is through, before the run's end is written.
 */
import { askCommit, checkpoint } from './runSteps.ts';

export const failingStates = {
  failing: {
    entry: [
      { type: 'log', params: checkpoint('ToolResultsCommitted') },
      { type: 'ask', params: askCommit('ToolResultsCommitted') },
    ],
    on: { 'effect.done': { target: 'failed' } },
  },
  failed: { always: { guard: 'gateIdle', target: '#RUN.Error', actions: 'endFailed' } },
} as const;
