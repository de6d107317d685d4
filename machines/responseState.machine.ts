/**
 * RESPONSE_STATE: the progress of a request, as an interface shows it (docs/internals/contracts.md, ResponseState): the
 * user's input, the model's turn, its tools, their results or the answer. Invariant: the chart only follows. It asks
 * for nothing, and its events are read from the log of the request.
 */
import { setup } from 'xstate';
import type { LogEntry } from './vocabulary.ts';

/** The events of `responseStateMachine`. */
export type ResponseStateEvent =
  | { type: 'model.begins' }
  | { type: 'tools.begin' }
  | { type: 'tools.end' }
  | { type: 'request.completed' };

/** The progress that an entry shows; undefined for other entries. */
export function responseEventOf(entry: LogEntry): ResponseStateEvent | undefined {
  switch (entry.type) {
    case 'agent-output':
      return { type: 'model.begins' };
    case 'tool-started':
      return { type: 'tools.begin' };
    case 'checkpoint':
      if (entry.boundary === 'UserMessage') return { type: 'model.begins' };
      return entry.boundary === 'ToolResultsCommitted' ? { type: 'tools.end' } : undefined;
    case 'run-stop':
      return entry.reason === 'completed' ? { type: 'request.completed' } : undefined;
    default:
      return undefined;
  }
}

/** The chart RESPONSE_STATE: the progress of a request, as an interface shows it. */
export const responseStateMachine = setup({
  types: {} as { events: ResponseStateEvent },
}).createMachine({
  id: 'RESPONSE_STATE',
  initial: 'USER_INPUT',
  on: { 'request.completed': '.RESPONSE.Completed' },
  states: {
    USER_INPUT: { on: { 'model.begins': 'ASSISTANT' } },
    ASSISTANT: { on: { 'tools.begin': 'TOOL_EXECUTION' } },
    TOOL_EXECUTION: { on: { 'tools.end': 'RESPONSE' } },
    RESPONSE: {
      initial: 'Open',
      states: {
        Open: { on: { 'model.begins': '#RESPONSE_STATE.ASSISTANT' } },
        // A completed request has no successor state; the next request starts again.
        Completed: {},
      },
    },
  },
});
