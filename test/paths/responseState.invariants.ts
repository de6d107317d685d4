/** The rules of RESPONSE_STATE (docs/internals/contracts.md, ResponseState). */

import type { ChartInvariant, Trace } from './edgeTrace.ts';
import { hold } from './invariants.ts';

const ORDER = ['USER_INPUT', 'ASSISTANT', 'TOOL_EXECUTION', 'RESPONSE'];
const nameOf = ({ state }: Trace): string =>
  typeof state.value === 'string' ? state.value : (Object.keys(state.value)[0] ?? '');
const isCompleted = ({ state }: Trace): boolean => state.matches({ RESPONSE: 'Completed' } as never);

export const responseStateInvariants: readonly ChartInvariant[] = [
  {
    says: 'ResponseState: USER_INPUT, ASSISTANT, TOOL_EXECUTION, RESPONSE, one after the other; the model’s next turn leads back to ASSISTANT, and only the end of the request skips states',
    holds: (trace) => {
      if (!trace.before) return hold(nameOf(trace) === 'USER_INPUT', `it begins in ${nameOf(trace)}`);
      const [from, to] = [nameOf(trace.before), nameOf(trace)];
      if (from === to || trace.event?.type === 'request.completed') return;
      const next = ORDER[ORDER.indexOf(from) + 1];
      hold(to === next || (from === 'RESPONSE' && to === 'ASSISTANT'), `${from} leads to ${to}`);
    },
  },
  {
    says: '2.5: only the end of the request completes the task, and it stays completed',
    holds: (trace) => {
      const wasReported = trace.steps.some(({ event }) => event?.type === 'request.completed');
      hold(
        isCompleted(trace) === wasReported,
        `completed is ${isCompleted(trace)}, and it was ${wasReported ? '' : 'not '}reported`,
      );
    },
  },
  {
    says: 'it follows a request and acts on nothing',
    holds: ({ log, asked, sentEvents, spawned }) => {
      hold(log.length + asked.length + sentEvents.length + spawned.length === 0, 'it acts');
    },
  },
];
