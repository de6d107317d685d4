/**
 * A chart's snapshot with what it has asked for and what its surroundings can do: one vertex of the graph that paths
 * are walked over. Rule: computed by pure transitions only.
 */
import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import { __unsafe_getAllOwnEventDescriptors as descriptorsOf } from 'xstate';
import {
  type ChartEffect,
  type EffectRequest,
  type EventCases,
  nextState,
  surroundings,
} from '../../machines/internal.ts';
import { answered, isAnswer, openAfter, stillOpen } from './answers.ts';

export interface Situation {
  /** As the traversal wants it beside the snapshot. */
  status: AnyMachineSnapshot['status'];
  output: unknown;
  error: unknown;
  state: AnyMachineSnapshot;
  through: readonly unknown[];
  effects: readonly ChartEffect[];
  /** What is asked and open. */
  asked: readonly EffectRequest[];
  /** Children that are done: a child ends once. */
  ended: readonly unknown[];
  world: unknown;
}

export interface Exploration {
  machine: AnyStateMachine;
  cases: EventCases;
  projection(context: never): unknown;
}
type Event = { type: string; actorId?: string };

const fromChild = ({ type }: Event): boolean =>
  type.startsWith('xstate.done.actor.') || type.startsWith('xstate.error.actor.');

/**
 * The same chart for pure transitions: XState makes an actor for each of them, whose first state is looked at by nobody
 * and takes as long as the transition. `start` does not need it.
 */
function withoutBeginning(machine: AnyStateMachine): AnyStateMachine {
  const copy = machine.provide({});
  copy.getInitialSnapshot = () => NEVER_BEGUN;
  return copy;
}
const NEVER_BEGUN = { status: 'stopped', output: undefined, error: undefined } as AnyMachineSnapshot;

export class Explorer {
  readonly #exploration: Exploration;
  /** A chart that declares no `ask` takes any event at any time. */
  readonly #asks: boolean;
  /** Paths share their beginnings. */
  readonly #known = new WeakMap<Situation, Map<Event, Situation>>();
  readonly #keys = new WeakMap<Situation, string>();

  constructor(exploration: Exploration) {
    this.#exploration = { ...exploration, machine: withoutBeginning(exploration.machine) };
    this.#asks = 'ask' in exploration.machine.implementations.actions;
  }

  start(input: unknown): Situation {
    const { machine, cases } = this.#exploration;
    const { state, effects, through } = nextState(machine, undefined, { input });
    if (state.status === 'error') throw state.error;
    const { status, output, error } = state;
    const world = cases[surroundings]?.start(input) ?? null;
    return { status, output, error, state, through, effects, asked: openAfter([], effects), ended: [], world };
  }

  next(situation: Situation, event: Event): Situation {
    const known = this.#known.get(situation) ?? new Map<Event, Situation>();
    this.#known.set(situation, known);
    const next = known.get(event) ?? this.#step(situation, event);
    known.set(event, next);
    return next;
  }

  #step({ state: before, asked, ended, world }: Situation, event: Event): Situation {
    const { machine, cases } = this.#exploration;
    const request = this.#asks && isAnswer(event) ? answered(asked, event) : undefined;
    const open = stillOpen(asked, event).filter((candidate) => candidate !== request);
    const { state, effects, through } = nextState(machine, before, event);
    const { status, output, error } = state;
    const child = fromChild(event) ? before.children[event.actorId ?? ''] : undefined;
    return {
      status,
      output,
      error,
      state,
      through,
      effects,
      asked: openAfter(open, effects),
      ended: child ? [...ended, child] : ended,
      world: cases[surroundings]?.after(world, event, state) ?? world,
    };
  }

  /** What can come now: the cases of the state's own descriptors, as far as somebody is there to send them. */
  events(situation: Situation): Event[] {
    const { state, asked, world } = situation;
    if (state.status !== 'active') return [];
    const { cases } = this.#exploration;
    const around = cases[surroundings];
    const own = descriptorsOf(state).flatMap((descriptor) => (cases[descriptor] ?? []) as readonly Event[]);
    return own.filter((event) => {
      if (this.#asks && isAnswer(event) && !answered(asked, event)) return false;
      if (!this.#canEnd(situation, event)) return false;
      return around === undefined || around.can(world, event, state);
    });
  }

  /** Equal keys have equal futures, where the projection holds what the guards depend on. */
  key(situation: Situation): string {
    const key = this.#keys.get(situation) ?? this.#keyOf(situation);
    this.#keys.set(situation, key);
    return key;
  }

  #keyOf({ state, asked, ended, world }: Situation): string {
    const { projection } = this.#exploration;
    if (state.status !== 'active') return JSON.stringify([state.status, state.value]);
    const requests = asked.map(({ kind, id }) => (kind === 'timer' ? id : kind)).sort();
    const done = Object.entries(state.children).flatMap(([id, child]) => (ended.includes(child) ? [id] : []));
    return JSON.stringify([state.status, state.value, projection(state.context as never), requests, done, world]);
  }

  #canEnd({ state, ended }: Situation, event: Event): boolean {
    if (!fromChild(event) || event.actorId === undefined) return true;
    const child = state.children[event.actorId];
    return child !== undefined && !ended.includes(child);
  }
}
