/**
 * Drives a path through the real driver. Invariant: after every step the chart has the state of the path, by the same
 * intermediate states. It has logged, requested and sent the effects that the pure transition returns.
 */
import type { AnyMachineSnapshot, AnyStateMachine, InspectionEvent } from 'xstate';
import type { LogEntry } from '../../../machines/internal.ts';
import type { Interpreter } from '../../runtime/interpreter/interpreter.ts';
import { type Children, DrivenChart, type Seen } from './drivenChart.ts';
import { loggedBy, sentBy, startedBy } from './effectAnswers.ts';
import type { PathState, TestPath } from './testPath.ts';

/** A check of a chart's state. It throws if the state is wrong. */
export type Invariant = (state: AnyMachineSnapshot, seen: Seen) => void;
/** The options of `drive`. */
export interface DriveOptions {
  /** The input of the chart. */
  input: unknown;
  /** Called with the chart's snapshot after its start and after every step. An error fails the drive. */
  invariants?: readonly Invariant[];
  /** Default: `stubbed`. With real children, the chart's own entries and requests are not compared. */
  children?: Children;
  /** Also compared while the chart is active. When it is done, only its output counts. */
  projection?(context: never): unknown;
  /** Receives the inspection events of XState. */
  inspect?(event: InspectionEvent): void;
  /** The interpreter of the chart. Default: XState. */
  interpreter?: Interpreter;
}
/** The result of `drive`. */
export interface Driven {
  /** The entries that the chart logged. */
  entries: readonly LogEntry[];
  /** The snapshot at the end. */
  finalState: AnyMachineSnapshot;
}

/**
 * Drives a chart along a generated path and compares each step. Rejects with a message that names the step where the chart
 * leaves the path.
 */
export async function drive(machine: AnyStateMachine, path: TestPath, options: DriveOptions): Promise<Driven> {
  return driveSync(machine, path, options);
}

/** Like `drive`, but synchronous. */
export function driveSync(machine: AnyStateMachine, path: TestPath, options: DriveOptions): Driven {
  const chart = new DrivenChart(machine, options);
  const check = (expected: PathState, event: string, index: number): void => {
    try {
      compare(chart, expected, options);
      for (const invariant of options.invariants ?? []) invariant(chart.state, chart);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new Error(`path ${path.name} (${index === 0 ? event : `step ${index}, ${event}`}): ${message}`, {
        cause: error,
      });
    }
  };
  if (path.start) check(path.start, 'start', 0);
  path.steps.forEach((step, index) => {
    chart.deliver(step.event);
    check(step, step.event.type, index + 1);
  });
  const driven = { entries: chart.journal.entries, finalState: chart.state };
  chart.stop();
  return driven;
}

const json = (value: unknown): string => JSON.stringify(value) ?? 'undefined';

function checkEqual(what: string, is: unknown, expected: unknown): void {
  if (json(is) !== json(expected)) throw new Error(`the ${what} is ${json(is)}, the path says ${json(expected)}`);
}

function compare(chart: DrivenChart, { state: expected, effects, through }: PathState, options: DriveOptions): void {
  const { state, step } = chart;
  const { projection, children } = options;
  checkEqual('state', state.value, expected.value);
  checkEqual('status', state.status, expected.status);
  checkEqual('output', state.output, expected.output);
  if (projection && state.status === 'active') {
    checkEqual('projection', projection(state.context as never), projection(expected.context as never));
  }
  if (effects && children !== 'real') {
    checkEqual('log', step.log, loggedBy(effects));
    checkEqual('asking', step.asking, startedBy(effects));
    checkEqual('telling', step.telling, sentBy(effects));
  }
  if (through) checkEqual('way', step.way, through);
}
