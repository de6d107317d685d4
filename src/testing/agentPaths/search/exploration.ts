/**
 * All that may happen to an agent within bounds: a graph whose vertices are words of moves, each replayed on the charts.
 * Rule: which answers are tried is written here, when they can come is the charts' own business; equal keys have equal
 * futures.
 */
import { chartCases, type EffectRequest } from '../../../../machines/internal.ts';
import type { ChartActor } from '../../../runtime/interpreter/chartActor.ts';
import { adjacencyOf } from '../../coverPaths.ts';
import type { Move } from '../moves.ts';
import type { AgentPathsOptions } from '../runScript.ts';
import type { Standing } from '../scriptRun.ts';
import { type Behaviour, kindOf, roleOf } from './behaviour.ts';
import { type AgentModel, Prediction } from './prediction.ts';

/** A move, and the kinds of the calls that it makes. */
export interface Step {
  readonly type: 'move';
  readonly move: Move;
  readonly kinds: readonly number[];
}

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
  /** Nothing is open, and nothing waits to be gone on with. */
  readonly final: boolean;
}
export interface PathGraph {
  readonly start: string;
  readonly vertices: ReadonlyMap<string, PathVertex>;
  readonly kinds: readonly Behaviour[];
}

type Bounds = Required<NonNullable<AgentPathsOptions['bounds']>>;
type Trouble = NonNullable<AgentPathsOptions['moves']>[number];

export const BOUNDS: Bounds = { rounds: 1, calls: 2, replies: 3, troubles: 1, decisions: 2, resumes: 2 };
/** So many edges are explored before the bounds are drawn closer. */
const EDGES_MAX = 15_000;

interface Spent extends Record<keyof Bounds, number> {}
const NOTHING: Spent = { rounds: 0, calls: 0, replies: 0, troubles: 0, decisions: 0, resumes: 0 };

/** What the traversal walks over. */
interface Situation {
  readonly status: 'active' | 'done';
  readonly word: readonly Step[];
  readonly key: string;
  readonly next: readonly Step[];
  readonly taken: readonly string[];
  readonly final: boolean;
}

const CHART_OF: Readonly<Record<string, keyof typeof chartCases>> = {
  CONVERSATION: 'conversation',
  RUN: 'run',
  LLM_CALL: 'modelCall',
  TOOL_ROUND: 'toolRound',
  TOOL_CALL: 'toolCall',
  RESUME_TOOL_CALL: 'resumeToolCall',
  COMPACTION: 'compaction',
};

/** Where each living chart stands, as far as its guards can tell. */
function placeOf(actor: ChartActor): unknown {
  const chart = CHART_OF[actor.plan.id];
  const children = [...actor.children.values()].filter(({ status }) => status === 'active').map(placeOf);
  const seen = chart && chartCases[chart].projection(actor.context as never);
  const { counters } = actor.context as { counters?: { turns?: number } };
  return [actor.id, actor.value, seen ?? null, chart === 'conversation' ? (counters?.turns ?? 0) : null, children];
}

/** Drops the ids of messages and runs, which only count. */
const plainKey = (value: unknown): string =>
  JSON.stringify(value, (_, field) => (typeof field === 'string' ? field.replace(/\b(run_)?id\d+/g, 'id') : field));

export class Exploration {
  readonly kinds: readonly Behaviour[];
  readonly #model: AgentModel;
  readonly #bounds: Bounds;
  readonly #troubles: ReadonlySet<Trouble>;
  readonly #pairs: readonly (readonly number[])[];

  constructor(model: AgentModel, options: Pick<AgentPathsOptions, 'bounds' | 'moves'>) {
    this.#model = model;
    this.#bounds = { ...BOUNDS, ...options.bounds };
    const all: Trouble[] = ['cancel', 'steer', 'followUp', 'crash', 'modelFailure', 'oddReply', 'toolFailure'];
    this.#troubles = new Set(options.moves ?? all);
    const byReading = model.settings.policies.toolExecution === 'parallelIfReadOnly';
    const kinds = new Map<string, Behaviour>();
    for (const behaviour of model.behaviours) {
      const kind = kindOf(behaviour, byReading);
      if (!kinds.has(kind)) kinds.set(kind, behaviour);
    }
    this.kinds = [...kinds.values()];
    this.#pairs = pairsOf(this.kinds);
  }

  /** The graph; within closer bounds where there is too much of it. */
  graph(): PathGraph {
    const closer: Partial<Bounds>[] = [
      {},
      { calls: 1 },
      { calls: 1, decisions: 1 },
      { calls: 1, decisions: 1, troubles: 0 },
    ];
    for (const [index, bounds] of closer.entries()) {
      const tried = this.#within(
        { ...this.#bounds, ...bounds },
        index === closer.length - 1 ? 10 * EDGES_MAX : EDGES_MAX,
      );
      if (tried) return tried;
    }
    throw new Error('the agent has more paths than can be explored: give closer `bounds`');
  }

  /** All that the paths depend on. */
  describedFor(cover: string): string {
    const { settings, surroundings } = this.#model;
    const phases = [...surroundings.phases].map(([key, value]) => [key, value.kind]);
    const { context = null } = surroundings;
    const kinds = this.kinds.map((kind) => kindOf(kind, true));
    return JSON.stringify([cover, settings, phases, context, kinds, this.#bounds, [...this.#troubles], this.#pairs]);
  }

  /** The move of a step, with the tools of this agent. */
  moveOf({ move, kinds }: Step): Move {
    if (move.do !== 'reply' || kinds.length === 0) return move;
    return { ...move, calls: this.#made(kinds).map(({ tool, args }) => ({ name: tool, args })) };
  }

  /** The script of a word, and what was predicted behind each of its moves. */
  replay(word: readonly Step[]): { prediction: Prediction; standings: Standing[] } {
    const prediction = new Prediction(this.#model);
    const standings = [prediction.standing];
    for (const { move, kinds } of word) {
      prediction.move(move, this.#made(kinds));
      standings.push(prediction.standing);
    }
    return { prediction, standings };
  }

  /** The key of the situation that a word leads to. */
  keyOf(word: readonly Step[]): string {
    return this.#situation(word, this.#bounds).key;
  }

  #within(bounds: Bounds, limit: number): PathGraph | undefined {
    const first = this.#situation([], bounds);
    const known = new Map<string, Situation>();
    const logic = {
      getInitialSnapshot: () => first,
      transition: ({ word }: Situation, step: Step) => this.#situation([...word, step], bounds),
    };
    const adjacency = adjacencyOf('agentPaths', logic, {
      events: ({ next }: Situation) => next,
      serializeState: ({ key }: Situation) => key,
      limit,
    });
    if (!adjacency) return undefined;
    const vertices = new Map<string, PathVertex>();
    for (const [key, { state, transitions }] of Object.entries(adjacency)) {
      known.set(key, state as Situation);
      const edges = Object.values(transitions).map(({ event, state: next }) => {
        const { key: to, taken } = next as Situation;
        const step = event as Step;
        return { step, to, taken, sort: sortOf(step) };
      });
      vertices.set(key, { edges, final: (state as Situation).final });
    }
    return { start: first.key, vertices, kinds: this.kinds };
  }

  #made(kinds: readonly number[]): Behaviour[] {
    return kinds.flatMap((kind) => this.kinds[kind] ?? []);
  }

  #situation(word: readonly Step[], bounds: Bounds): Situation {
    const { prediction } = this.replay(word);
    const spent = spentBy(word);
    const { standing } = prediction;
    const next = this.#next(prediction, word, spent, bounds);
    const final = word.length > 0 && (standing.status === 'idle' || standing.status === 'error');
    const open = prediction.requests.map(({ kind }: EffectRequest) => kind).sort();
    const kinds = word.flatMap((step) => step.kinds);
    const decisions = word.flatMap(({ move }) => (move.do === 'decide' ? [`${move.call} ${move.action}`] : []));
    const messages = prediction.known.queue.map(({ kind }) => kind);
    const rest = prediction.isResumable;
    const { unsettled } = prediction;
    const offered = next.map(({ move }) => move);
    const key = plainKey([placeOf(prediction.root), open, kinds, decisions, messages, rest, unsettled, spent, offered]);
    const taken = [...prediction.taken];
    prediction.stop();
    return { status: 'active', word, key, next, taken, final };
  }

  #next(prediction: Prediction, word: readonly Step[], spent: Spent, bounds: Bounds): Step[] {
    if (word.length === 0) return [plain({ do: 'send' })];
    const { standing } = prediction;
    const left = (what: keyof Bounds): boolean => spent[what] < bounds[what];
    const isOver = standing.status === 'idle' || standing.status === 'error';
    const steps: Step[] = [];
    if (standing.model && left('replies')) steps.push(...this.#replies(spent, bounds));
    for (const call of standing.running) steps.push(plain({ do: 'tool', call }));
    if (left('decisions')) for (const call of standing.waiting) steps.push(...this.#decisions(prediction, call));
    if (left('resumes') && prediction.isResumable && !this.#waitsUndecided(prediction))
      steps.push(plain({ do: 'resume' }));
    for (const call of prediction.unsettled.slice(0, 1)) {
      if (word.at(-1)?.move.do !== 'crash') continue;
      for (const how of ['ran', 'didNotRun', 'retry'] as const) steps.push(plain({ do: 'settle', call, how }));
    }
    if (standing.queued > 0 && /^(steer|followUp)$/.test(word.at(-1)?.move.do ?? ''))
      steps.push(plain({ do: 'takeBack' }));
    if (left('troubles') && !isOver) steps.push(...this.#trouble(prediction));
    return steps;
  }

  /** Going on with what waits for a person leads nowhere. */
  #waitsUndecided(prediction: Prediction): boolean {
    const { status, waiting } = prediction.standing;
    return status === 'waiting' && waiting.length > 0 && prediction.known.held === 0;
  }

  #replies(spent: Spent, bounds: Bounds): Step[] {
    const steps: Step[] = [plain({ do: 'reply', text: 'done' })];
    if (spent.rounds >= bounds.rounds) return steps;
    const room = bounds.calls - spent.calls;
    if (room > 0) for (const [kind] of this.kinds.entries()) steps.push(this.#calling([kind]));
    if (room > 1) for (const pair of this.#pairs) steps.push(this.#calling(pair));
    return steps;
  }

  #calling(kinds: readonly number[]): Step {
    const calls = this.#made(kinds).map(({ tool, args }) => ({ name: tool, args }));
    return { type: 'move', move: { do: 'reply', calls }, kinds };
  }

  #decisions(prediction: Prediction, call: number): Step[] {
    const record = prediction.known.calls.get(`call${call}`);
    // One call alone is decided in every way; beside another it goes on or does not.
    const alone = prediction.calls.length < 2;
    const permission = alone ? (['approve', 'deny', 'edit'] as const) : (['approve', 'deny'] as const);
    const form = alone ? (['approve', 'deny', 'answer'] as const) : (['deny', 'answer'] as const);
    const within = ['approve'] as const;
    const actions = record?.reason === 'permission' ? permission : record?.reason === 'sub-agent' ? within : form;
    return actions.map((action) => plain({ do: 'decide', call, action }));
  }

  #trouble(prediction: Prediction): Step[] {
    const { standing, settings } = prediction;
    const moves: Move[] = [];
    const add = (trouble: Trouble, ...made: Move[]): void => {
      if (this.#troubles.has(trouble)) moves.push(...made);
    };
    if (standing.status !== 'cancelling') add('cancel', { do: 'cancel' });
    if (standing.status === 'active') add('steer', { do: 'steer' });
    add('followUp', { do: 'followUp' });
    add('crash', { do: 'crash' });
    if (standing.status === 'waiting' && settings.policies.whileSuspended !== 'reject') add('followUp', { do: 'send' });
    if (prediction.hasDeadline) add('cancel', { do: 'deadline' });
    if (standing.model) {
      add('modelFailure', { do: 'modelFails', retryable: true }, { do: 'modelFails', retryable: false });
      add('oddReply', { do: 'reply', text: '' }, { do: 'reply', text: 'so', finish: 'length' });
      add('oddReply', { do: 'reply', text: 'so', finish: 'pause' });
    }
    for (const call of standing.running)
      add('toolFailure', { do: 'tool', call, made: 'fail' }, { do: 'tool', call, made: 'timeOut' });
    return moves.map(plain);
  }
}

/** One call of each role beside one of each, and beside its like; what cannot run is beside a call that runs only. */
function pairsOf(kinds: readonly Behaviour[]): number[][] {
  const first = new Map<string, number>();
  for (const [index, kind] of kinds.entries()) if (!first.has(roleOf(kind))) first.set(roleOf(kind), index);
  const able = [...first].filter(([role]) => role !== 'refused').map(([, index]) => index);
  const pairs = able.flatMap((one, index) => able.slice(index).map((other) => [one, other]));
  const [refused, runs] = [first.get('refused'), first.get('runs') ?? first.get('asks')];
  return refused === undefined || runs === undefined ? pairs : [...pairs, [runs, refused]];
}

const plain = (move: Move): Step => ({ type: 'move', move, kinds: [] });

const ODD: ReadonlySet<string> = new Set(['cancel', 'steer', 'followUp', 'crash', 'modelFails', 'deadline']);

/** What of its bounds a word has used up. */
function spentBy(word: readonly Step[]): Spent {
  const spent = { ...NOTHING };
  for (const [index, { move, kinds }] of word.entries()) {
    const isOdd = move.do === 'reply' && kinds.length === 0 && (move.text === '' || move.finish !== undefined);
    const isMade = move.do === 'tool' && move.made !== undefined;
    if (ODD.has(move.do) || isOdd || isMade || (move.do === 'send' && index > 0)) spent.troubles += 1;
    else if (move.do === 'reply') spent.replies += 1;
    if (kinds.length > 0) spent.rounds += 1;
    spent.calls += kinds.length;
    if (move.do === 'decide') spent.decisions += 1;
    if (move.do === 'resume') spent.resumes += 1;
  }
  return spent;
}

function sortOf({ move, kinds }: Step): string {
  switch (move.do) {
    case 'reply':
      return kinds.length > 0 ? `calls ${kinds.join(' ')}` : `reply ${move.finish ?? ''} ${move.text === ''}`;
    case 'modelFails':
      return `modelFails ${move.retryable}`;
    case 'tool':
      return `tool ${move.made ?? ''}`;
    case 'decide':
      return `decide ${move.action}`;
    case 'settle':
      return `settle ${move.how}`;
    default:
      return move.do;
  }
}
