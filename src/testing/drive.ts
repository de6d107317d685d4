/**
 * Drives a path through the real driver. Rule: after every step the chart is where the path says, by the way that the
 * path says, and has logged, asked for and told what the pure transition says.
 */
import type { AnyMachineSnapshot, AnyStateMachine, InspectionEvent } from 'xstate';
import type { LogEntry } from '../../machines/internal.ts';
import type { Interpreter } from '../runtime/interpreter/interpreter.ts';
import { loggedBy, sentBy, startedBy } from './answers.ts';
import type { PathState, TestPath } from './paths.ts';
import { type Children, Ride, type Seen } from './ride.ts';

export type Invariant = (state: AnyMachineSnapshot, seen: Seen) => void;
export interface DriveOptions {
  input: unknown;
  /** Called with the chart's snapshot after its start and after every step; a throw fails the drive. */
  invariants?: readonly Invariant[];
  /** `stubbed` where it is not given. With real children, what the chart itself logs and asks is not compared. */
  children?: Children;
  /** Also compared while the chart is active; when it is done, its output is what counts. */
  projection?(context: never): unknown;
  inspect?(event: InspectionEvent): void;
  /** What runs the chart; XState where it is not given. */
  interpreter?: Interpreter;
}
export interface Driven {
  entries: readonly LogEntry[];
  finalState: AnyMachineSnapshot;
}

/** Rejects with a message that names the step where the chart leaves the path. */
export async function drive(machine: AnyStateMachine, path: TestPath, options: DriveOptions): Promise<Driven> {
  return follow(machine, path, options);
}

/** As `drive`, at once. */
export function follow(machine: AnyStateMachine, path: TestPath, options: DriveOptions): Driven {
  const ride = new Ride(machine, options);
  const check = (expected: PathState, event: string, index: number): void => {
    try {
      compare(ride, expected, options);
      for (const invariant of options.invariants ?? []) invariant(ride.state, ride);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new Error(`path ${path.name} (${index === 0 ? event : `step ${index}, ${event}`}): ${message}`, {
        cause: error,
      });
    }
  };
  if (path.start) check(path.start, 'start', 0);
  path.steps.forEach((step, index) => {
    ride.deliver(step.event);
    check(step, step.event.type, index + 1);
  });
  const driven = { entries: ride.journal.entries, finalState: ride.state };
  ride.stop();
  return driven;
}

const json = (value: unknown): string => JSON.stringify(value) ?? 'undefined';

function same(what: string, is: unknown, said: unknown): void {
  if (json(is) !== json(said)) throw new Error(`the ${what} is ${json(is)}, the path says ${json(said)}`);
}

function compare(ride: Ride, { state: said, effects, through }: PathState, options: DriveOptions): void {
  const { state, step } = ride;
  const { projection, children } = options;
  same('state', state.value, said.value);
  same('status', state.status, said.status);
  same('output', state.output, said.output);
  if (projection && state.status === 'active') {
    same('projection', projection(state.context as never), projection(said.context as never));
  }
  if (effects && children !== 'real') {
    same('log', step.log, loggedBy(effects));
    same('asking', step.asking, startedBy(effects));
    same('telling', step.telling, sentBy(effects));
  }
  if (through) same('way', step.way, through);
}
