/**
 * The effect of a restart on the open calls of a reply, for each state of each of three calls (docs/internals/lifecycle.md, Resume Gate).
 */
import { describe, expect, it } from 'vitest';
import { applyEntry, dueReplays, emptyLogState, type LogEntry, openCalls } from '../../machines/internal.ts';

const IDS = ['c1', 'c2', 'c3'] as const;
const STATES = ['ended', 'waits', 'is decided', 'keeps its turn'] as const;
type State = (typeof STATES)[number];

function entriesOf(callId: string, state: State): object[] {
  const suspended = { type: 'tool-suspended', callId, suspension: 1, reason: 'permission' };
  const decision = { type: 'decision', callId, suspension: 1, decision: { callId, action: 'approve' } };
  switch (state) {
    case 'ended':
      return [{ type: 'tool-result', callId, outcome: 'succeeded', content: [] }];
    case 'waits':
      return [suspended];
    case 'is decided':
      return [suspended, decision];
    case 'keeps its turn':
      return [];
  }
}

/** The calls that start after a restart, before any of them is settled or decided. */
function dueCalls(states: readonly State[]): string[] {
  const called = IDS.map((callId) => ({
    type: 'agent-output',
    item: { type: 'tool-call', callId, name: 'write', args: {} },
  }));
  const ofCalls = IDS.flatMap((callId, index) => entriesOf(callId, states[index] ?? 'ended'));
  const suspended = { type: 'run-suspended', waiting: IDS.filter((_, index) => states[index] !== 'ended') };
  const logState = emptyLogState();
  for (const [seq, entry] of [{ type: 'run-started' }, ...called, ...ofCalls, suspended].entries())
    applyEntry(logState, { seq, at: seq, conversationId: 'c', runId: 'r', ...entry } as unknown as LogEntry);
  return dueReplays(openCalls(logState)).map(({ call }) => call.callId);
}

const rows = STATES.flatMap((first) =>
  STATES.flatMap((second) => STATES.map((third) => [first, second, third] as const)),
);

describe('after a restart', () => {
  it.each(rows)(
    'where c1 %s, c2 %s, c3 %s, each call that may start comes once, after the call before it',
    (...states) => {
      // A call that keeps its turn is due with the open call before it, and the first open call has none before it.
      let isDue = true;
      const expected = IDS.filter((_, index) => {
        const state = states[index];
        if (state === 'ended') return false;
        if (state !== 'keeps its turn') isDue = state === 'is decided';
        return isDue;
      });
      const due = dueCalls(states);
      expect([...due].sort()).toEqual(expected);
      for (const [index, callId] of IDS.entries()) {
        const before = IDS.filter((_, at) => at < index && states[at] !== 'ended').at(-1);
        if (states[index] === 'keeps its turn' && before !== undefined && due.includes(callId))
          expect(due[due.indexOf(callId) - 1]).toBe(before);
      }
    },
  );
});
