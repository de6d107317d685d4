/**
 * All that may happen to an agent within bounds: a graph whose vertices are words of moves, each replayed on the charts.
 * Rule: equal keys have equal futures.
 */

import { duringOf, type Move } from '../../../scripts/moves.ts';
import { adjacencyOf } from '../../chartPaths/coverPaths.ts';
import type { AgentPathsOptions } from '../pathOptions.ts';
import { type AgentModel, type Behaviour, kindOf } from './callBehaviour.ts';
import { type Bounds, madeOf, NextMoves, type Step, sortOf, type Trouble } from './nextMoves.ts';
import { Prediction } from './prediction.ts';
import { SituationKeys } from './situationKey.ts';

export interface PathEdge {
  readonly step: Step;
  readonly to: string;
  /** Transitions that it takes. */
  readonly taken: readonly string[];
  /** What kind of move it is. */
  readonly sort: string;
}
export interface PathVertex {
  readonly edges: readonly PathEdge[];
  /** No run is under way, and none waits to be resumed. */
  readonly final: boolean;
}
export interface PathGraph {
  readonly start: string;
  readonly vertices: ReadonlyMap<string, PathVertex>;
  readonly kinds: readonly Behaviour[];
  /** The lower bounds that it was explored within; missing where the given ones were kept. */
  readonly closer?: Partial<Bounds>;
}

export const BOUNDS: Bounds = { rounds: 1, calls: 2, replies: 3, troubles: 1, decisions: 2, resumes: 2, steps: 15_000 };
/** Where there is more to explore than `bounds.steps`, these are tried in turn. */
const CLOSER: readonly Partial<Bounds>[] = [
  {},
  { calls: 1 },
  { calls: 1, decisions: 1 },
  { calls: 1, decisions: 1, troubles: 0 },
];
/** The last of them may take this many times `bounds.steps`. */
const LAST = 10;

const TROUBLES: readonly Trouble[] = [
  ...(['cancel', 'steer', 'followUp', 'crash', 'modelFailure', 'oddReply', 'toolFailure', 'fullWindow'] as const),
];

/** What the traversal walks over. */
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

  /** `isExact`: keys contain the whole past, as a proof needs them. */
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

  /** The graph, within lower bounds where it would have more than `bounds.steps` edges. */
  graph(): PathGraph {
    for (const [index, closer] of CLOSER.entries()) {
      const isLast = index === CLOSER.length - 1;
      const bounds = this.#closer(closer);
      const graph = this.#within(bounds, isLast ? LAST * bounds.steps : bounds.steps);
      if (graph) return index === 0 ? graph : { ...graph, closer };
    }
    throw new Error('the agent has more paths than can be explored: give closer `bounds`, or more `bounds.steps`');
  }

  /** All that the paths depend on. */
  describedFor(cover: string): string {
    const { settings, surroundings } = this.#model;
    const phases = [...surroundings.phases].map(([key, value]) => [key, value.kind]);
    const kinds = this.kinds.map((kind) => kindOf(kind, true));
    const { described } = this.#moves;
    return JSON.stringify([cover, settings, phases, [...surroundings.wanted], kinds, this.#bounds, described]);
  }

  /** The move of a step, with the tools of this agent. */
  moveOf({ move, kinds }: Step): Move {
    if (move.do !== 'reply' || kinds.length === 0) return move;
    return { ...move, calls: madeOf(this.kinds, kinds).map(({ tool, args }) => ({ name: tool, args })) };
  }

  /** The key of the situation that a word leads to, within the bounds of a graph. */
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
    /** Each situation has as many edges as moves that may come next. */
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
        // The traversal would come to the same later, and explore what nobody needs before.
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
    const next = this.#moves.behind(prediction, word, bounds);
    const final = word.length > 0 && (standing.status === 'idle' || standing.status === 'error');
    const key = this.#keys.of(prediction, word, next);
    return { status: 'active', word, key, next, taken: [...prediction.taken], final };
  }
}

/**
 * The charts of situations that are still to be expanded. A step continues a copy of them: a replay of the whole word from the
 * beginning gives the same, and takes several times as long.
 */
class LivingPredictions {
  readonly #model: AgentModel;
  readonly #kinds: readonly Behaviour[];
  readonly #seen = new Set<string>();
  readonly #living = new Map<Situation, Prediction>();
  /** Before the last step, for moves that come while the agent carries that step out. */
  readonly #before = new Map<Situation, Prediction>();
  #expanded: Situation | undefined;

  constructor(model: AgentModel, kinds: readonly Behaviour[]) {
    this.#model = model;
    this.#kinds = kinds;
  }

  replayed(word: readonly Step[]): Prediction {
    return this.#told(new Prediction(this.#model), word);
  }

  after(from: Situation, step: Step): Prediction {
    const last = from.word.at(-1);
    const isMeanwhile = duringOf(step.move) !== undefined;
    const source = (isMeanwhile ? this.#before : this.#living).get(from);
    if (!source) return this.replayed([...from.word, step]);
    return this.#told(source.fork(), isMeanwhile && last ? [last, step] : [step]);
  }

  /** Each situation is expanded once: what leads to one that is known is not continued. */
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

  /** The one that was expanded last is over. */
  expanding(situation: Situation): void {
    if (this.#expanded) {
      this.#living.delete(this.#expanded);
      this.#before.delete(this.#expanded);
    }
    this.#expanded = situation;
  }

  #told(prediction: Prediction, word: readonly Step[]): Prediction {
    const kinds = word.flatMap((step) => step.kinds);
    return prediction.tell(movesOf(word), madeOf(this.#kinds, kinds));
  }
}

const movesOf = (word: readonly Step[]): readonly Move[] => word.map(({ move }) => move);
