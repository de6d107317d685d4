/**
 * Explores everything that can happen to an agent within bounds. The vertices of the graph are sequences of moves, and
 * the charts replay each one. Invariant: vertices with equal keys have equal futures.
 */

import { duringOf, type Move } from '../../../scripts/moves.ts';
import { adjacencyOf } from '../../chartPaths/adjacency.ts';
import type { AgentPathsOptions } from '../pathOptions.ts';
import { type AgentModel, type Behaviour, kindOf } from './callBehaviour.ts';
import { type Bounds, madeOf, NextMoves, type Step, sortOf, type Trouble } from './nextMoves.ts';
import { Prediction } from './prediction.ts';
import { SituationKeys } from './situationKey.ts';

export interface PathEdge {
  readonly step: Step;
  readonly to: string;
  /** The transitions that it takes. */
  readonly taken: readonly string[];
  /** The sort of the move. */
  readonly sort: string;
}
export interface PathVertex {
  readonly edges: readonly PathEdge[];
  /** No run is active, and none waits for `resume()`. */
  readonly final: boolean;
}
export interface PathGraph {
  readonly start: string;
  readonly vertices: ReadonlyMap<string, PathVertex>;
  readonly kinds: readonly Behaviour[];
  /** The lower bounds of the exploration. Undefined if the given bounds were kept. */
  readonly closer?: Partial<Bounds>;
}

export const BOUNDS: Bounds = { rounds: 1, calls: 2, replies: 3, troubles: 1, decisions: 2, resumes: 2, steps: 15_000 };
/** If the exploration exceeds `bounds.steps`, these bounds are tried in turn. */
const CLOSER: readonly Partial<Bounds>[] = [
  {},
  { calls: 1 },
  { calls: 1, decisions: 1 },
  { calls: 1, decisions: 1, troubles: 0 },
];
/** The last one of them may take this many times `bounds.steps`. */
const LAST = 10;

const TROUBLES: readonly Trouble[] = [
  ...(['cancel', 'steer', 'followUp', 'crash', 'modelFailure', 'oddReply', 'toolFailure', 'fullWindow'] as const),
];

/** A vertex of the traversal. */
interface Situation {
  readonly status: 'active' | 'done';
  readonly word: readonly Step[];
  readonly key: string;
  readonly next: readonly Step[];
  readonly taken: readonly string[];
  readonly final: boolean;
}

export class Exploration {
  readonly kinds: readonly Behaviour[];
  readonly #model: AgentModel;
  readonly #bounds: Bounds;
  readonly #moves: NextMoves;
  readonly #keys: SituationKeys;

  /** `isExact`: keys contain the whole past, as a proof requires. */
  constructor(model: AgentModel, options: Pick<AgentPathsOptions, 'bounds' | 'moves'>, isExact = false) {
    this.#model = model;
    this.#bounds = { ...BOUNDS, ...options.bounds };
    const byReading = model.settings.policies.toolExecution === 'parallelIfReadOnly';
    const kinds = new Map<string, Behaviour>();
    for (const behaviour of model.behaviours) {
      const kind = kindOf(behaviour, byReading);
      if (!kinds.has(kind)) kinds.set(kind, behaviour);
    }
    this.kinds = [...kinds.values()];
    this.#keys = new SituationKeys(model, this.#bounds, isExact);
    this.#moves = new NextMoves(model, this.kinds, new Set(options.moves ?? TROUBLES), this.#bounds.calls);
  }

  /** The graph. Its bounds are lower if it would have more than `bounds.steps` edges. */
  graph(): PathGraph {
    for (const [index, closer] of CLOSER.entries()) {
      const isLast = index === CLOSER.length - 1;
      const bounds = this.#closer(closer);
      const graph = this.#within(bounds, isLast ? LAST * bounds.steps : bounds.steps);
      if (graph) return index === 0 ? graph : { ...graph, closer };
    }
    throw new Error('the agent has more paths than can be explored: give closer `bounds`, or more `bounds.steps`');
  }

  /** Everything that the paths depend on. */
  describedFor(cover: string): string {
    const { settings, surroundings } = this.#model;
    const phases = [...surroundings.phases].map(([key, value]) => [key, value.kind]);
    const kinds = this.kinds.map((kind) => kindOf(kind, true));
    const { described } = this.#moves;
    return JSON.stringify([cover, settings, phases, [...surroundings.wanted], kinds, this.#bounds, described]);
  }

  /** Returns the move of a step, with the tools of this agent. */
  moveOf({ move, kinds }: Step): Move {
    if (move.do !== 'reply' || kinds.length === 0) return move;
    return { ...move, calls: madeOf(this.kinds, kinds).map(({ tool, args }) => ({ name: tool, args })) };
  }

  /** Returns the key of the situation after a word, within the bounds of a graph. */
  keyOf(word: readonly Step[], { closer = {} }: Pick<PathGraph, 'closer'>): string {
    const prediction = new LivingPredictions(this.#model, this.kinds).replayed(word);
    return this.#situation(word, prediction, this.#closer(closer)).key;
  }

  #closer(closer: Partial<Bounds>): Bounds {
    const names = Object.keys(closer) as (keyof Bounds)[];
    const least = names.map((name) => [name, Math.min(closer[name] ?? 0, this.#bounds[name])]);
    return { ...this.#bounds, ...Object.fromEntries(least) };
  }

  #within(bounds: Bounds, limit: number): PathGraph | undefined {
    const living = new LivingPredictions(this.#model, this.kinds);
    const first = this.#situation([], living.replayed([]), bounds);
    /** Each situation has one edge for each possible next move. */
    const counted = new Set([first.key]);
    let edges = first.next.length;
    const logic = {
      getInitialSnapshot: () => first,
      transition: (from: Situation, step: Step) => {
        const word = [...from.word, step];
        const prediction = living.after(from, step);
        const situation = this.#situation(word, prediction, bounds);
        if (!counted.has(situation.key)) edges += situation.next.length;
        counted.add(situation.key);
        // The traversal would fail in the same way later, after useless work.
        if (edges > limit) throw new Error('limit exceeded');
        living.keep(from, situation, prediction);
        return situation;
      },
    };
    const adjacency = adjacencyOf('agentPaths', logic, {
      events: (situation: Situation) => {
        living.expanding(situation);
        return situation.next;
      },
      serializeState: ({ key }: Situation) => key,
      limit,
    });
    if (!adjacency) return undefined;
    const vertices = new Map<string, PathVertex>();
    for (const [key, { state, transitions }] of Object.entries(adjacency)) {
      const edges = Object.values(transitions).map(({ event, state: next }) => {
        const { key: to, taken } = next as Situation;
        const step = event as Step;
        return { step, to, taken, sort: sortOf(step, (state as Situation).word) };
      });
      vertices.set(key, { edges, final: (state as Situation).final });
    }
    return { start: first.key, vertices, kinds: this.kinds };
  }

  #situation(word: readonly Step[], prediction: Prediction, bounds: Bounds): Situation {
    const { standing } = prediction;
    const next = this.#moves.movesAfter(prediction, word, bounds);
    const final = word.length > 0 && (standing.status === 'idle' || standing.status === 'error');
    const key = this.#keys.of(prediction, word, next);
    return { status: 'active', word, key, next, taken: [...prediction.taken], final };
  }
}

/**
 * The charts of situations that are not expanded yet. A step continues a copy of them. A replay of the whole word gives
 * the same result and is several times slower.
 */
class LivingPredictions {
  readonly #model: AgentModel;
  readonly #kinds: readonly Behaviour[];
  readonly #seen = new Set<string>();
  readonly #living = new Map<Situation, Prediction>();
  /** The predictions before the last step, for moves that interrupt the agent during that step. */
  readonly #before = new Map<Situation, Prediction>();
  #expanded: Situation | undefined;

  constructor(model: AgentModel, kinds: readonly Behaviour[]) {
    this.#model = model;
    this.#kinds = kinds;
  }

  replayed(word: readonly Step[]): Prediction {
    return this.#continue(new Prediction(this.#model), word);
  }

  after(from: Situation, step: Step): Prediction {
    const last = from.word.at(-1);
    const isMeanwhile = duringOf(step.move) !== undefined;
    const source = (isMeanwhile ? this.#before : this.#living).get(from);
    if (!source) return this.replayed([...from.word, step]);
    return this.#continue(source.fork(), isMeanwhile && last ? [last, step] : [step]);
  }

  /** Each situation is expanded once, so another path to a known situation is not continued. */
  keep(from: Situation, situation: Situation, prediction: Prediction): void {
    const { key, next, word } = situation;
    if (this.#seen.has(key) || next.length === 0) return;
    this.#seen.add(key);
    this.#living.set(situation, prediction);
    const source = this.#living.get(from);
    const isInterrupted = next.some(({ move }) => duringOf(move) !== undefined);
    const isPlain = duringOf(word.at(-1)?.move) === undefined;
    if (source && isInterrupted && isPlain) this.#before.set(situation, source);
  }

  /** The expansion of the previous one has ended. */
  expanding(situation: Situation): void {
    if (this.#expanded) {
      this.#living.delete(this.#expanded);
      this.#before.delete(this.#expanded);
    }
    this.#expanded = situation;
  }

  #continue(prediction: Prediction, word: readonly Step[]): Prediction {
    const kinds = word.flatMap((step) => step.kinds);
    return prediction.tell(movesOf(word), madeOf(this.#kinds, kinds));
  }
}

const movesOf = (word: readonly Step[]): readonly Move[] => word.map(({ move }) => move);
