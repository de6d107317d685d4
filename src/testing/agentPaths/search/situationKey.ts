/**
 * The key of a situation: what its future depends on, and nothing else. Rule: situations with equal keys have equal futures,
 * which test/testing/situationKey.test.ts proves against keys that contain the whole past.
 */
import { type Counters, chartCases } from '../../../../machines/internal.ts';
import type { AgentModel } from './callBehaviour.ts';
import { type Sight, sightOf } from './chartPlace.ts';
import { type Bounds, MISSES_MAX, type Step, spentBy } from './nextMoves.ts';
import type { CallCourse } from './ownAnswers.ts';
import type { Prediction } from './prediction.ts';

const CHART_OF: Readonly<Record<string, keyof typeof chartCases>> = {
  CONVERSATION: 'conversation',
  RUN: 'run',
  LLM_CALL: 'modelCall',
  TOOL_ROUND: 'toolRound',
  TOOL_CALL: 'toolCall',
  RESUME_TOOL_CALL: 'resumeToolCall',
  COMPACTION: 'compaction',
};

/** Ids of messages and runs only count them. */
const IDS = /\b(run_)?id\d+/g;

export class SituationKeys {
  readonly #bounds: Bounds;
  /** Keys contain the whole past. */
  readonly #isExact: boolean;
  /** What phases answer, limits or plans of summaries differ from turn to turn. */
  readonly #countsTurns: boolean;
  /** Each text that is part of a key, with its number. */
  readonly #numbers = new Map<string, number>();
  /** Contexts are values that situations share. */
  readonly #ofContexts = new WeakMap<object, number>();

  constructor({ settings, surroundings }: AgentModel, bounds: Bounds, isExact: boolean) {
    this.#bounds = bounds;
    this.#isExact = isExact;
    const { replies, troubles, decisions, resumes } = bounds;
    const mostTurns = replies + troubles + decisions + resumes + MISSES_MAX;
    const isPlain = [...surroundings.phases.values()].every((value) => value.kind === 'done' && !value.writes);
    const isLimited = settings.policies.limits.turns <= 2 * mostTurns;
    this.#countsTurns = isExact || !isPlain || isLimited || surroundings.wanted.size > 0;
  }

  /** `next`: the moves that may follow. */
  of(prediction: Prediction, word: readonly Step[], next: readonly Step[]): string {
    const { log, logState, unsettled, isResumable, answered, requests } = prediction;
    const kinds = word.flatMap((step) => step.kinds);
    const spent = spentBy(word);
    // Calls are counted for the next round only.
    const isCounted = this.#isExact || spent.rounds < this.#bounds.rounds;
    const parts = [
      this.#isExact && decisionsIn(word),
      this.#standOf(sightOf(prediction.root), prediction.courses, kinds),
      requests.map(({ kind }) => kind).sort(),
      logState.queue.map(({ kind }) => kind),
      ...[isResumable, unsettled, log.fill, answered],
      isCounted ? spent : { ...spent, calls: 0 },
      this.#passagesOf(prediction, kinds, next),
      next.map(({ move }) => move),
    ];
    return String(this.#numberOf(parts));
  }

  /** Where the charts stood in each phase or commit that a next move can interrupt. */
  #passagesOf({ passed }: Prediction, kinds: readonly number[], next: readonly Step[]): unknown[] {
    if (passed.size === 0) return [];
    const durings = new Set(next.flatMap(({ move }) => ('during' in move && move.during ? [move.during] : [])));
    return [...passed]
      .filter(([during]) => durings.has(during))
      .map(([during, passage]) => [during, this.#standOf(passage.sight, passage.courses, kinds)]);
  }

  /** Where the charts and the calls stand. How a call behaves counts until it is over, and until its round is. */
  #standOf(sight: Sight, courses: ReadonlyMap<string, CallCourse>, kinds: readonly number[]): unknown {
    const keepsAll = this.#isExact || isInRound(sight);
    const calls = kinds.map((kind, index) => {
      const course = courses.get(`call${index + 1}`);
      return course?.isOver && !keepsAll ? 'over' : [kind, course?.facts];
    });
    return [this.#placeOf(sight), calls];
  }

  /** Where a living chart and its children stand. */
  #placeOf({ id, value, context, chart, children }: Sight): unknown {
    return [id, value, this.#contextOf(context, chart), children.map((child) => this.#placeOf(child))];
  }

  /** What guards and assigns can tell apart. */
  #contextOf(context: object, chart: string): number {
    const known = this.#ofContexts.get(context);
    if (known !== undefined) return known;
    const name = CHART_OF[chart];
    const seen: unknown = name ? chartCases[name].projection(context as never) : null;
    const parts = [name === 'run' ? this.#runOf(seen as SeenOfRun) : seen];
    if (name === 'conversation') parts.push(this.#countersOf(context as Counted));
    const number = this.#numberOf([chart, ...parts]);
    this.#ofContexts.set(context, number);
    return number;
  }

  /** The next run begins with them. */
  #countersOf({ counters: { turns, emptyReplies } }: Counted): unknown {
    return [this.#countsTurns && turns, emptyReplies];
  }

  /** Decisions are carried out in the order of their calls, whichever came first. */
  #runOf(seen: SeenOfRun): unknown {
    if (this.#isExact) return seen;
    const { held, counters } = seen;
    return {
      ...seen,
      ...(held && { held: [...held].sort() }),
      ...(counters && !this.#countsTurns && { counters: counters.slice(1) }),
    };
  }

  #numberOf(part: unknown): number {
    const text = JSON.stringify(part).replace(IDS, 'id');
    const number = this.#numbers.get(text) ?? this.#numbers.size;
    this.#numbers.set(text, number);
    return number;
  }
}

interface Counted {
  readonly counters: Counters;
}

interface SeenOfRun {
  readonly held?: readonly string[];
  /** The turns come first. */
  readonly counters?: readonly number[];
}

const isInRound = ({ chart, children }: Sight): boolean => chart === 'TOOL_ROUND' || children.some(isInRound);

const decisionsIn = (word: readonly Step[]): string[] =>
  word.flatMap(({ move }) => (move.do === 'decide' ? [`${move.call} ${move.action}`] : []));
