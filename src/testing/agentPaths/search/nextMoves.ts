/**
 * Generates the possible next moves, within bounds. Invariant: this file decides which moves are tried, and the charts
 * decide when they are possible. Only one fault occurs at a time, except with a full window or the end of a cycle.
 */

import { duringOf, type Move, type MoveOf, UNFIT } from '../../../scripts/moves.ts';
import { sharesToFill } from '../filledWindow.ts';
import type { AgentPathsOptions } from '../pathOptions.ts';
import { type AgentModel, type Behaviour, roleOf } from './callBehaviour.ts';
import type { Passage } from './ownAnswers.ts';
import type { Prediction } from './prediction.ts';

/** A move, and the kinds of the calls that its reply contains. */
export interface Step {
  readonly type: 'move';
  readonly move: Move;
  readonly kinds: readonly number[];
}

export type Bounds = Required<NonNullable<AgentPathsOptions['bounds']>>;
export type Trouble = NonNullable<AgentPathsOptions['moves']>[number];

/** The bounds that a word of moves has used. */
export type SpentUsage = Omit<Bounds, 'steps'>;
const NOTHING: SpentUsage = { rounds: 0, calls: 0, replies: 0, troubles: 0, decisions: 0, resumes: 0 };

/** The point at which a move is tried: the moves before it, and the used bounds. */
interface Place {
  readonly prediction: Prediction;
  readonly word: readonly Step[];
  readonly spent: SpentUsage;
  readonly bounds: Bounds;
}

/** A move that can interrupt a phase or a commit. */
type Act = MoveOf<'send' | 'steer' | 'followUp' | 'cancel' | 'crash' | 'decide'>;

const plain = (move: Move): Step => ({ type: 'move', move, kinds: [] });

export class NextMoves {
  readonly #kinds: readonly Behaviour[];
  readonly #troubles: ReadonlySet<Trouble>;
  /** The kinds of calls that one reply combines. */
  readonly #together: readonly (readonly number[])[];
  readonly #begin: readonly Step[];
  /** The reply that ends a run. */
  readonly #answer: Move;
  /** The schema rejects one of the answers. */
  readonly #unfit: boolean;

  constructor(model: AgentModel, kinds: readonly Behaviour[], troubles: ReadonlySet<Trouble>, calls: number) {
    this.#kinds = kinds;
    this.#troubles = troubles;
    this.#together = togetherOf(kinds, calls);
    const { answers } = model.surroundings;
    this.#answer = { do: 'reply', text: plainAnswer(answers) };
    this.#unfit = answers !== undefined && !answers.has(UNFIT) && answers.size > 0;
    const shares = troubles.has('fullWindow') ? sharesToFill(model.settings, model.surroundings.frame) : [];
    this.#begin = [plain({ do: 'send' }), ...shares.map((fills) => plain({ do: 'send', fills }))];
  }

  /** The facts besides the bounds that determine the moves. */
  get described(): readonly unknown[] {
    return [[...this.#troubles], this.#together, this.#begin, this.#answer, this.#unfit];
  }

  movesAfter(prediction: Prediction, word: readonly Step[], bounds: Bounds): Step[] {
    if (word.length === 0) return [...this.#begin];
    const spent = spentBy(word);
    const place: Place = { prediction, word, spent, bounds };
    const { standing } = prediction;
    const hasBudget = (what: keyof SpentUsage): boolean => spent[what] < bounds[what];
    const isOver = standing.status === 'idle' || standing.status === 'error';
    const last = word.at(-1)?.move.do ?? '';
    const steps: Step[] = [];
    if (standing.model && hasBudget('replies')) steps.push(...this.#replies(place));
    if (standing.summary) steps.push(plain({ do: 'sumUp' }));
    for (const call of standing.running) steps.push(plain({ do: 'tool', call }));
    if (hasBudget('decisions')) for (const call of standing.waiting) steps.push(...this.#decisions(prediction, call));
    if (hasBudget('resumes') && prediction.isResumable && !waitsUndecided(prediction))
      steps.push(plain({ do: 'resume' }));
    if (last === 'crash')
      for (const call of prediction.unsettled.slice(0, 1))
        for (const how of ['ran', 'didNotRun', 'retry'] as const) steps.push(plain({ do: 'settle', call, how }));
    // The signal of a steer lasts as long as the run that received it.
    const isHeard = last === 'followUp' || (last === 'steer' && !isOver);
    if (standing.queued > 0 && isHeard) steps.push(plain({ do: 'takeBack' }));
    if (hasBudget('troubles') && !isOver) steps.push(...this.#trouble(prediction));
    // A message that follows a waiting call is promoted when the call is cancelled.
    const follows = standing.queued > 0 && standing.status === 'waiting' && last === 'followUp';
    if (follows && spent.troubles <= bounds.troubles && this.#troubles.has('cancel'))
      steps.push(plain({ do: 'cancel' }));
    if (standing.model && this.#unfit && this.#troubles.has('oddReply') && mayMiss(place))
      steps.push(plain({ do: 'reply', text: UNFIT }));
    if (spent.troubles <= bounds.troubles && isFilled(word)) steps.push(...this.#ofFullWindow(prediction));
    for (const [during, passage] of prediction.passed)
      for (const move of during === 'storing' ? this.#whileStored(place, passage) : this.#inPhase(place, passage))
        if (move.do !== 'steer' || during === 'naturalEnd') steps.push(plain({ ...move, during }));
    return steps;
  }

  /**
   * Returns the acts during a phase. A steer changes the continuation only at the end of a run. In other phases it
   * takes effect after the phase.
   */
  #inPhase({ spent, bounds, prediction }: Place, { state }: Passage): Act[] {
    // Plugins receive a failure that already counts as a fault.
    const most = state === 'Error' ? bounds.troubles : bounds.troubles - 1;
    if (spent.troubles > most || prediction.standing.status === 'cancelling') return [];
    return (['cancel', 'steer', 'crash'] as const)
      .filter((trouble) => this.#troubles.has(trouble))
      .map((act) => ({ do: act }));
  }

  /**
   * Returns the acts while the end of a suspended run or of its cycle is stored. The end of a cycle counts as a fault.
   */
  #whileStored({ spent, bounds }: Place, { state, waits }: Passage): Act[] {
    const moves: Act[] = [];
    const add = (trouble: Trouble, move: Act): void => {
      if (this.#troubles.has(trouble)) moves.push(move);
    };
    if (state === 'CommitFinished' && waits && spent.troubles < bounds.troubles) add('cancel', { do: 'cancel' });
    if (spent.troubles > bounds.troubles + 1 || !/^(closing|superseding)$/.test(state)) return moves;
    add('followUp', { do: 'followUp' });
    if (state === 'superseding') add('cancel', { do: 'cancel' });
    return moves;
  }

  #replies({ spent, bounds }: Place): Step[] {
    const steps: Step[] = [plain(this.#answer)];
    if (spent.rounds >= bounds.rounds) return steps;
    const room = bounds.calls - spent.calls;
    if (room > 0) for (const [kind] of this.#kinds.entries()) steps.push(this.#calling([kind]));
    for (const kinds of this.#together) if (kinds.length <= room) steps.push(this.#calling(kinds));
    return steps;
  }

  #calling(kinds: readonly number[]): Step {
    const calls = madeOf(this.#kinds, kinds).map(({ tool, args }) => ({ name: tool, args }));
    return { type: 'move', move: { do: 'reply', calls }, kinds };
  }

  #decisions(prediction: Prediction, call: number): Step[] {
    const record = prediction.logState.calls.get(`call${call}`);
    // A single call gets every possible decision, and several calls get fewer.
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

  /** A summary may fail or free too little space, and a reply may be cut at the end of the window. */
  #ofFullWindow({ standing: { model, summary }, log: { isSummedUp }, settings }: Prediction): Step[] {
    const steps: Step[] = [];
    if (summary && this.#troubles.has('modelFailure'))
      for (const retryable of [true, false]) steps.push(plain({ do: 'modelFails', retryable }));
    if (!model || isSummedUp) return steps;
    if (this.#troubles.has('oddReply')) steps.push(plain({ do: 'reply', text: 'so', finish: 'length' }));
    const isLimited = settings.context?.exhaust !== undefined;
    if (isLimited && this.#troubles.has('steer')) steps.push(plain({ do: 'steer', fills: 1 }));
    return steps;
  }
}

export const madeOf = (all: readonly Behaviour[], kinds: readonly number[]): Behaviour[] =>
  kinds.flatMap((kind) => all[kind] ?? []);

/** A resume without a decision of the waiting call leads nowhere. */
function waitsUndecided(prediction: Prediction): boolean {
  const { status, waiting } = prediction.standing;
  return status === 'waiting' && waiting.length > 0 && prediction.logState.held === 0;
}

/** An answer that violates the schema is a fault. Further such answers belong to the same fault. */
function mayMiss({ word, spent, bounds }: Place): boolean {
  const misses = word.filter(isMiss).length;
  if (misses === 0) return spent.troubles < bounds.troubles;
  return misses < MISSES_MAX && isMiss(word.at(-1));
}

const isMiss = (step: Step | undefined): boolean => step?.move.do === 'reply' && step.move.text === UNFIT;

const isFilled = ([first]: readonly Step[]): boolean => first?.move.do === 'send' && first.move.fills !== undefined;

/**
 * Returns the combinations of kinds of calls in one reply, each with at most `most` calls. The first kind of each role
 * is combined with those of the other roles and with itself.
 * A call that cannot run is only combined with a call that runs.
 */
function togetherOf(kinds: readonly Behaviour[], most: number): number[][] {
  const first = new Map<string, number>();
  for (const [index, kind] of kinds.entries()) if (!first.has(roleOf(kind))) first.set(roleOf(kind), index);
  const able = [...first].filter(([role]) => role !== 'refused').map(([, index]) => index);
  const all: number[][] = [];
  let grown = able.map((one) => [one]);
  for (let size = 2; size <= most; size++) {
    grown = grown.flatMap((some) => able.slice(able.indexOf(some.at(-1) ?? 0)).map((other) => [...some, other]));
    all.push(...grown);
  }
  const [refused, runs] = [first.get('refused'), first.get('runs') ?? first.get('asks')];
  return refused === undefined || runs === undefined || most < 2 ? all : [...all, [runs, refused]];
}

/** After this many answers that violate their schema, only a valid one is tried. */
export const MISSES_MAX = 4;

/** Returns the plainest final answer that the agent's schema accepts. */
export const plainAnswer = (answers: AgentModel['surroundings']['answers']): string =>
  [...(answers?.keys() ?? [])][0] ?? 'done';

const ODD: ReadonlySet<string> = new Set(['cancel', 'steer', 'followUp', 'crash', 'modelFails', 'deadline']);

function isTrouble({ move, kinds }: Step, index: number, word: readonly Step[]): boolean {
  if (move.do === 'reply' && move.text === UNFIT) return !isMiss(word[index - 1]);
  if (ODD.has(move.do) || duringOf(move) !== undefined) return true;
  if (move.do === 'send') return index > 0 || move.fills !== undefined;
  if (move.do === 'tool') return move.made !== undefined;
  return move.do === 'reply' && kinds.length === 0 && (move.text === '' || move.finish !== undefined);
}

export function spentBy(word: readonly Step[]): SpentUsage {
  const spent = { ...NOTHING };
  for (const [index, step] of word.entries()) {
    const { move, kinds } = step;
    if (isTrouble(step, index, word)) spent.troubles += 1;
    else if (move.do === 'reply' && !isMiss(step)) spent.replies += 1;
    if (kinds.length > 0) spent.rounds += 1;
    spent.calls += kinds.length;
    if (move.do === 'decide') spent.decisions += 1;
    if (move.do === 'resume') spent.resumes += 1;
  }
  return spent;
}

/** Returns the sort of a move after these moves. A cover treats moves of one sort as equal. */
export function sortOf({ move, kinds }: Step, word: readonly Step[]): string {
  if (move.do === 'reply' && isMiss(word.at(-1)) && move.text !== UNFIT && kinds.length === 0)
    return 'reply that mends';
  const during = duringOf(move);
  return during === undefined ? plainSortOf(move, kinds) : `${plainSortOf(move, kinds)} during ${during}`;
}

function plainSortOf(move: Move, kinds: readonly number[]): string {
  switch (move.do) {
    case 'send':
      return `send ${move.fills ?? ''}`;
    case 'reply':
      if (kinds.length > 0) return `calls ${kinds.join(' ')}`;
      return move.text === UNFIT ? 'reply that misses' : `reply ${move.finish ?? ''} ${move.text === ''}`;
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
