/**
 * A stub for the child charts of a chart under test. Invariant: it requests nothing, accepts every input and event,
 * and ends when a test requests it, with the output that the test gives.
 */
import { type AnyStateMachine, setup } from 'xstate';

export type StubEvent = { type: 'stub.done'; output: unknown };

const stub = setup({ types: {} as { events: StubEvent } }).createMachine({
  id: 'STUB',
  initial: 'Waiting',
  output: ({ event }) => (event as { output?: unknown }).output,
  states: {
    Waiting: { on: { 'stub.done': { target: 'Done' } } },
    Done: { type: 'final', output: ({ event }) => event.output },
  },
});

/** Returns the chart with a stub for each of its children. */
export function withStubs(machine: AnyStateMachine): AnyStateMachine {
  const names = Object.keys(machine.implementations.actors);
  return machine.provide({ actors: Object.fromEntries(names.map((name) => [name, stub])) } as never);
}
