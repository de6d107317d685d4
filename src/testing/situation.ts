/**
 * A chart's snapshot with what it has asked for and what its surroundings can do: one vertex of the graph that paths
 * are walked over. Rule: computed by pure transitions only.
 */
import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import { __unsafe_getAllOwnEventDescriptors as descriptorsOf } from 'xstate';
import { type ChartEffect, type EffectRequest, nextState, type Surroundings } from '../../machines/index.ts';
import { answered, isAnswer, openAfter, stillOpen } from './answers.ts';

export interface Situation {
  /** As the traversal wants it beside the snapshot. */
  status: AnyMachineSnapshot['status'];
  output: unknown;
  error: unknown;
  state: AnyMachineSnapshot;
  through: readonly unknown[];
  /** What is asked and open. */
  asked: readonly EffectRequest[];
  world: unknown;
}

export interface Exploration {
  machine: AnyStateMachine;
  cases: Record<string, readonly object[]>;
  projection(context: never): unknown;
  surroundings?: Surroundings | undefined;
}
type Event = { type: string; actorId?: string };

export class Explorer {
  readonly #exploration: Exploration;
  /** A chart that declares no `ask` takes any event at any time. */
  readonly #asks: boolean;
  /** Paths share their beginnings. */
  readonly #known = new WeakMap<Situation, Map<Event, Situation>>();
  readonly #keys = new WeakMap<Situation, string>();

  constructor(exploration: Exploration) {
    this.#exploration = exploration;
    this.#asks = 'ask' in exploration.machine.implementations.actions;
  }

  start(input: unknown): Situation {
    const { machine, surroundings } = this.#exploration;
    const { state, effects, through } = nextState(machine, undefined, { input });
    if (state.status === 'error') throw state.error;
    return this.#situation(state, through, [], effects, surroundings?.start(input) ?? null);
  }

  next(situation: Situation, event: Event): Situation {
    const known = this.#known.get(situation) ?? new Map<Event, Situation>();
    this.#known.set(situation, known);
    const next = known.get(event) ?? this.#step(situation, event);
    known.set(event, next);
    return next;
  }

  #step({ state, asked, world }: Situation, event: Event): Situation {
    const { machine, surroundings } = this.#exploration;
    const request = this.#asks && isAnswer(event) ? answered(asked, event) : undefined;
    const open = stillOpen(asked, event).filter((candidate) => candidate !== request);
    const after = nextState(machine, state, event);
    const outside = surroundings ? surroundings.then(world, event, after.state) : world;
    return this.#situation(after.state, after.through, open, after.effects, outside);
  }

  /** What can come now: the cases of the state's own descriptors, as far as somebody is there to send them. */
  events({ state, asked, world }: Situation): Event[] {
    if (state.status !== 'active') return [];
    const { cases, surroundings } = this.#exploration;
    const own = descriptorsOf(state).flatMap((descriptor) => (cases[descriptor] ?? []) as readonly Event[]);
    return own.filter((event) => {
      if (this.#asks && isAnswer(event) && !answered(asked, event)) return false;
      if (!this.#childIsThere(state, event)) return false;
      return surroundings === undefined || surroundings.can(world, event, state);
    });
  }

  /** Equal keys have equal futures, where the projection holds what the guards depend on. */
  key(situation: Situation): string {
    const key = this.#keys.get(situation) ?? this.#keyOf(situation);
    this.#keys.set(situation, key);
    return key;
  }

  #keyOf({ state, asked, world }: Situation): string {
    const { projection } = this.#exploration;
    if (state.status !== 'active') return JSON.stringify([state.status, state.value]);
    const requests = asked.map(({ kind, id }) => (kind === 'timer' ? id : kind)).sort();
    return JSON.stringify([state.status, state.value, projection(state.context as never), requests, world]);
  }

  #childIsThere(state: AnyMachineSnapshot, { type, actorId }: Event): boolean {
    const fromChild = type.startsWith('xstate.done.actor.') || type.startsWith('xstate.error.actor.');
    return !fromChild || actorId === undefined || state.children[actorId] !== undefined;
  }

  #situation(
    state: AnyMachineSnapshot,
    through: readonly unknown[],
    open: readonly EffectRequest[],
    effects: readonly ChartEffect[],
    world: unknown,
  ): Situation {
    const { status, output, error } = state;
    return { status, output, error, state, through, asked: openAfter(open, effects), world };
  }
}
