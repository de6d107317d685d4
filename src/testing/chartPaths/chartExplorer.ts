/**
 * A chart's snapshot with its open requests and the state of its surroundings: one vertex of the graph that paths
 * walk over. Invariant: only pure transitions compute it.
 */
import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import { __unsafe_getAllOwnEventDescriptors as descriptorsOf } from 'xstate';
import {
  type ChartEffect,
  type EffectRequest,
  type EventCases,
  nextState,
  surroundings,
} from '../../../machines/internal.ts';
import { answered, isAnswer, openAfter, stillOpen } from './effectAnswers.ts';

export interface Situation {
  /** The traversal needs this field beside the snapshot. */
  status: AnyMachineSnapshot['status'];
  output: unknown;
  error: unknown;
  state: AnyMachineSnapshot;
  through: readonly unknown[];
  effects: readonly ChartEffect[];
  /** The open requests. */
  requests: readonly EffectRequest[];
  /** Children that are done, because a child ends only once. */
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
 * Returns the same chart for pure transitions. XState makes an actor for each of them, whose unused initial state
 * takes as long as the transition. `start` does not need it.
 */
function withoutInitialState(machine: AnyStateMachine): AnyStateMachine {
  const copy = machine.provide({});
  copy.getInitialSnapshot = () => NEVER_BEGUN;
  return copy;
}
const NEVER_BEGUN = { status: 'stopped', output: undefined, error: undefined } as AnyMachineSnapshot;

export class Explorer {
  readonly #exploration: Exploration;
  /** A chart that declares no `ask` accepts every event at any time. */
  readonly #asks: boolean;
  /** Paths share their beginnings. */
  readonly #nextSituations = new WeakMap<Situation, Map<Event, Situation>>();
  readonly #keys = new WeakMap<Situation, string>();

  constructor(exploration: Exploration) {
    this.#exploration = { ...exploration, machine: withoutInitialState(exploration.machine) };
    this.#asks = 'ask' in exploration.machine.implementations.actions;
  }

  start(input: unknown): Situation {
    const { machine, cases } = this.#exploration;
    const { state, effects, through } = nextState(machine, undefined, { input });
    if (state.status === 'error') throw state.error;
    const { status, output, error } = state;
    const world = cases[surroundings]?.start(input) ?? null;
    return { status, output, error, state, through, effects, requests: openAfter([], effects), ended: [], world };
  }

  next(situation: Situation, event: Event): Situation {
    const nextByEvent = this.#nextSituations.get(situation) ?? new Map<Event, Situation>();
    this.#nextSituations.set(situation, nextByEvent);
    const next = nextByEvent.get(event) ?? this.#step(situation, event);
    nextByEvent.set(event, next);
    return next;
  }

  #step({ state: before, requests, ended, world }: Situation, event: Event): Situation {
    const { machine, cases } = this.#exploration;
    const request = this.#asks && isAnswer(event) ? answered(requests, event) : undefined;
    const open = stillOpen(requests, event).filter((candidate) => candidate !== request);
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
      requests: openAfter(open, effects),
      ended: child ? [...ended, child] : ended,
      world: cases[surroundings]?.after(world, event, state) ?? world,
    };
  }

  /** Returns the possible events: the cases of the state's descriptors that a host could send now. */
  events(situation: Situation): Event[] {
    const { state, requests, world } = situation;
    if (state.status !== 'active') return [];
    const { cases } = this.#exploration;
    const around = cases[surroundings];
    const own = descriptorsOf(state).flatMap((descriptor) => (cases[descriptor] ?? []) as readonly Event[]);
    return own.filter((event) => {
      if (this.#asks && isAnswer(event) && !answered(requests, event)) return false;
      if (!this.#canEnd(situation, event)) return false;
      return around === undefined || around.can(world, event, state);
    });
  }

  /** Equal keys have equal futures if the projection contains the facts that guards depend on. */
  key(situation: Situation): string {
    const key = this.#keys.get(situation) ?? this.#keyOf(situation);
    this.#keys.set(situation, key);
    return key;
  }

  #keyOf({ state, requests: openRequests, ended, world }: Situation): string {
    const { projection } = this.#exploration;
    if (state.status !== 'active') return JSON.stringify([state.status, state.value]);
    const requests = openRequests.map(({ kind, id }) => (kind === 'timer' ? id : kind)).sort();
    const done = Object.entries(state.children).flatMap(([id, child]) => (ended.includes(child) ? [id] : []));
    return JSON.stringify([state.status, state.value, projection(state.context as never), requests, done, world]);
  }

  #canEnd({ state, ended }: Situation, event: Event): boolean {
    if (!fromChild(event) || event.actorId === undefined) return true;
    const child = state.children[event.actorId];
    return child !== undefined && !ended.includes(child);
  }
}
