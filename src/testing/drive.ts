/**
 * Drives a path through the real driver. Rule: each event comes the way it would in a living conversation: answers to
 * the actor that asked, a child's end from the child, the rest as acts; the chart must be where the path says, after
 * every step.
 */
import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine, InspectionEvent } from 'xstate';
import type { Completion, LogEntry } from '../../machines/index.ts';
import { bound } from '../charts.ts';
import { Driver } from '../driver.ts';
import { type AnswerEvent, answered, isAnswer, stillOpen } from './answers.ts';
import type { PathStep, TestPath } from './paths.ts';
import { ScriptedJournal } from './scriptedJournal.ts';
import { type StubEvent, withStubs } from './stub.ts';

/** What has happened so far, for invariants that look further than the state. */
export interface Seen {
  readonly journal: ScriptedJournal;
  /** The path's events up to now. */
  readonly events: readonly { readonly type: string }[];
  /** Every actor that there was, the chart's own the first. */
  readonly actors: readonly AnyActorRef[];
  /** What the chart told its parent; alone, it tells itself. */
  readonly told: readonly { readonly type: string }[];
}
export type Invariant = (state: AnyMachineSnapshot, seen: Seen) => void;
export interface DriveOptions {
  input: unknown;
  /** Called with the chart's snapshot after its start and after every step; a throw fails the drive. */
  invariants?: readonly Invariant[];
  /** Child charts: stand-ins that end when the path says so, or the real ones. */
  children?: 'stubbed' | 'real';
  /** Also compared at every step. */
  projection?(context: never): unknown;
  inspect?(event: InspectionEvent): void;
}
export interface Driven {
  entries: readonly LogEntry[];
  finalState: AnyMachineSnapshot;
}

/** Rejects with a message that names the step where the chart leaves the path. */
export async function drive(machine: AnyStateMachine, path: TestPath, options: DriveOptions): Promise<Driven> {
  return follow(machine, path, options);
}

export function follow(machine: AnyStateMachine, path: TestPath, options: DriveOptions): Driven {
  const ride = new Ride(machine, options);
  ride.check(path, path.start, 0);
  path.steps.forEach((step, index) => {
    ride.deliver(step.event);
    ride.check(path, step, index + 1);
  });
  const driven = { entries: ride.journal.entries, finalState: ride.state };
  ride.stop();
  return driven;
}

type Children = 'stubbed' | 'real';
const ready: Record<Children, WeakMap<AnyStateMachine, AnyStateMachine>> = {
  stubbed: new WeakMap(),
  real: new WeakMap(),
};
/** The chart with the driver's actions, built once: it is used for every path. */
function prepared(machine: AnyStateMachine, children: Children): AnyStateMachine {
  const known = ready[children].get(machine);
  if (known) return known;
  const chart = bound(children === 'real' ? machine : withStubs(machine));
  ready[children].set(machine, chart);
  return chart;
}

const json = (value: unknown): string => JSON.stringify(value) ?? 'undefined';
const fromChild = /^xstate\.done\.actor\./;

class Ride implements Seen {
  readonly journal = new ScriptedJournal();
  readonly events: { readonly type: string }[] = [];
  readonly actors: AnyActorRef[] = [];
  readonly told: { readonly type: string }[] = [];
  readonly #options: DriveOptions;
  readonly #driver: Driver;
  readonly #asks: boolean;
  #through: unknown[] = [];
  #broken: { error: unknown } | undefined;

  constructor(machine: AnyStateMachine, options: DriveOptions) {
    this.#options = options;
    this.#asks = 'ask' in machine.implementations.actions;
    this.#driver = new Driver({
      machine: prepared(machine, options.children ?? 'stubbed'),
      input: options.input,
      journal: this.journal,
      setTimer: () => () => {},
      admit: (event) => this.#admit(event),
      broke: (error) => {
        this.#broken = { error };
      },
      inspect: (event) => this.#inspect(event),
    });
    this.#driver.start(0);
  }

  get state(): AnyMachineSnapshot {
    return this.#driver.root.getSnapshot() as AnyMachineSnapshot;
  }

  deliver(event: { readonly type: string }): void {
    this.events.push(event);
    this.#through = [];
    if (this.#asks && isAnswer(event)) return this.#answer(event);
    const { type } = event;
    this.journal.keep(stillOpen([...this.journal.open.values()], event));
    if (type === 'append.failed') this.journal.lose((event as Extract<Completion, { type: typeof type }>).lost);
    const failed = type === 'append.failed' || type === 'effect.failed';
    this.journal.put(failed ? (event as Completion) : { type: 'act', event });
  }

  /** The chart is where the path says it is, and every invariant holds. */
  check(path: TestPath, expected: Omit<PathStep, 'event'>, index: number): void {
    if (this.#broken) throw this.#broken.error;
    const { state } = this;
    const { projection, invariants } = this.#options;
    const where = `path ${path.name} (${index === 0 ? 'start' : `step ${index}, ${path.steps[index - 1]?.event.type}`})`;
    const compare = (what: string, is: unknown, said: unknown): void => {
      if (json(is) === json(said)) return;
      throw new Error(`${where}: the ${what} is ${json(is)}, the path says ${json(said)}`);
    };
    compare('state', state.value, expected.state.value);
    compare('way', this.#through, expected.through);
    compare('status', state.status, expected.state.status);
    compare('output', state.output, expected.state.output);
    if (projection) {
      compare('projection', projection(state.context as never), projection(expected.state.context as never));
    }
    try {
      for (const invariant of invariants ?? []) invariant(state, this);
    } catch (error) {
      throw new Error(`${where}: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
  }

  stop(): void {
    this.#driver.stop();
  }

  #answer(event: AnswerEvent): void {
    const request = answered(this.journal.open.values(), event);
    if (!request) {
      const open = [...this.journal.open.keys()];
      throw new Error(`nothing that is open takes ${json(event)}; open are: ${open.join(', ') || 'none'}`);
    }
    this.journal.answer(request, event as Parameters<ScriptedJournal['answer']>[1]);
  }

  /** A child's end comes from the child, inside the step. */
  #admit(event: { type: string }): readonly { type: string }[] {
    if (!fromChild.test(event.type)) return [event];
    const { actorId, output } = event as unknown as { actorId: string; output: unknown };
    const child = this.state.children[actorId] as AnyActorRef | undefined;
    if (!child) throw new Error(`there is no child ${actorId} to end`);
    const done: StubEvent = { type: 'stub.done', output };
    child.send(done);
    return [];
  }

  #inspect(event: InspectionEvent): void {
    this.#options.inspect?.(event);
    if (event.type === '@xstate.actor') this.actors.push(event.actorRef as AnyActorRef);
    if (event.type === '@xstate.event' && event.sourceRef === event.actorRef) this.told.push(event.event);
    if (event.type !== '@xstate.microstep') return;
    if ((event.actorRef as AnyActorRef).sessionId !== event.rootId) return;
    const { value } = event.snapshot as AnyMachineSnapshot;
    if (json(value) !== json(this.#through.at(-1))) this.#through.push(value);
  }
}
