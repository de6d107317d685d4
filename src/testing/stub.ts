/**
 * A stand-in for the child charts of a chart under test. Rule: it asks nothing, takes any input and any event, and is
 * done when a test says so, with the output that the test gives.
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

/** The chart with a stub for each of its children. */
export function withStubs(machine: AnyStateMachine): AnyStateMachine {
  const names = Object.keys(machine.implementations.actors);
  return machine.provide({ actors: Object.fromEntries(names.map((name) => [name, stub])) } as never);
}
