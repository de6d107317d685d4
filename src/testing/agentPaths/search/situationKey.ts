/**
 * The key of a situation, which contains only the facts that determine its future. Invariant: situations with equal
 * keys have equal futures. `test/testing/situationKey.test.ts` proves this against keys that contain the whole past.
 */
import { type Counters, chartCases } from '../../../../machines/internal.ts';
import type { During } from '../../../scripts/moves.ts';
import type { AgentModel } from './callBehaviour.ts';
import { type Sight, sightOf } from './chartPlace.ts';
import { type Bounds, MISSES_MAX, type SpentUsage, type Step, spentBy } from './nextMoves.ts';
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

/** The ids of messages and runs are only counters. */
const IDS = /\b(run_)?id\d+/g;

export class SituationKeys {
  readonly #bounds: Bounds;
  /** The keys contain the whole past. */
  readonly #isExact: boolean;
  /** The answers of phases, limits or plans for summaries differ from turn to turn. */
  readonly #countsTurns: boolean;
  /** The limit on rounds with equal calls is low enough to end a run. */
  readonly #countsStreaks: boolean;
  /** Each text that is part of a key, with its number. */
  readonly #numbers = new Map<string, number>();
  /** Situations share their contexts. */
  readonly #ofContexts = new WeakMap<object, number>();
  readonly #ofBusyContexts = new WeakMap<object, number>();

  constructor({ settings, surroundings }: AgentModel, bounds: Bounds, isExact: boolean) {
    this.#bounds = bounds;
    this.#isExact = isExact;
    const { replies, troubles, decisions, resumes } = bounds;
    const mostTurns = replies + troubles + decisions + resumes + MISSES_MAX;
    const isPlain = [...surroundings.phases.values()].every((value) => value.kind === 'done' && !value.writes);
    const { limits } = settings.policies;
    this.#countsTurns = isExact || !isPlain || limits.turns <= 2 * mostTurns || surroundings.wanted.size > 0;
    this.#countsStreaks = isExact || limits.identicalCalls <= bounds.rounds;
  }

  /** `next`: the moves that may follow. */
  of(prediction: Prediction, word: readonly Step[], next: readonly Step[]): string {
    const { log, logState, unsettled, isResumable, answered, requests } = prediction;
    const kinds = word.flatMap((step) => step.kinds);
    const spent = spentBy(word);
    const mayCall = spent.rounds < this.#bounds.rounds;
    const stand = this.#standOf(sightOf(prediction.root), prediction.courses, { kinds, mayCall });
    const passages = this.#passagesOf(prediction, next, { kinds, mayCall });
    const isOver = [stand, ...passages].every(({ calls }) => calls.length === 0);
    // A single call gets more kinds of decisions.
    const isAlone = mayCall || isOver || kinds.length < 2;
    const parts = [
      this.#isExact && decisionsIn(word),
      isAlone,
      stand,
      requests.map(({ kind }) => kind).sort(),
      logState.queue.map(({ kind }) => kind),
      ...[isResumable && log.isTimeUp, isResumable, unsettled, log.fill, answered],
      this.#isExact || mayCall ? spent : leftOf(spent, isOver),
      passages,
      next.map(({ move }) => move),
    ];
    return String(this.#numberOf(parts));
  }

  /** Returns the states of the charts in each phase or commit that a next move can interrupt. */
  #passagesOf({ passed }: Prediction, next: readonly Step[], calling: Calling): Stand[] {
    if (passed.size === 0) return [];
    const durings = new Set(next.flatMap(({ move }) => ('during' in move && move.during ? [move.during] : [])));
    return [...passed]
      .filter(([during]) => durings.has(during))
      .map(([during, { sight, courses }]) => ({ ...this.#standOf(sight, courses, calling), during }));
  }

  /**
   * Returns the states of the charts and the calls. The behaviour of a call is part of the key until the call and its
   * round have ended.
   */
  #standOf(sight: Sight, courses: ReadonlyMap<string, CallCourse>, { kinds, mayCall }: Calling): Stand {
    const inRound = isInRound(sight);
    const calls = kinds.map((kind, index) => {
      const course = courses.get(`call${index + 1}`);
      if (this.#isExact || !course?.isOver) return [index, kind, course?.code, course?.facts];
      return inRound ? [index, kind, course.code] : null;
    });
    // Ended calls are counted only if another call can follow, because its number continues theirs.
    return { place: this.#placeOf(sight), calls: mayCall ? calls : calls.filter((call) => call !== null) };
  }

  /** Returns the states of a running chart and its children. */
  #placeOf(sight: Sight): unknown {
    return [sight.id, sight.value, this.#contextOf(sight), sight.children.map((child) => this.#placeOf(child))];
  }

  /** Returns a number for the parts of a context that guards and assigns can distinguish. */
  #contextOf({ chart, context, children }: Sight): number {
    // An active run holds the open calls, and returns them when it ends.
    const isBusy = !this.#isExact && children.some((child) => child.chart === 'RUN');
    const numbers = isBusy ? this.#ofBusyContexts : this.#ofContexts;
    const number = numbers.get(context) ?? this.#numberOf(this.#seenOf(chart, context, isBusy));
    numbers.set(context, number);
    return number;
  }

  #seenOf(chart: string, context: object, isBusy: boolean): unknown {
    const name = CHART_OF[chart];
    const seen: unknown = name ? chartCases[name].projection(context as never) : null;
    if (name !== 'run' && name !== 'conversation') return [chart, seen];
    const { turns, emptyReplies, streaks, rounds } = (context as { counters: Counters }).counters;
    const repeated = this.#countsStreaks && [streaks, rounds];
    if (name === 'run') return [chart, this.#runOf(seen as SeenOfRun), repeated];
    const { suspended, decisions, reruns, retries, ...rest } = seen as SeenOfConversation;
    // The next run starts with these counters.
    return [isBusy, isBusy ? rest : seen, this.#countsTurns && turns, emptyReplies, repeated];
  }

  /** Decisions are applied in the order of their calls, not in order of arrival. */
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

/** The kinds of the calls so far, and whether another round of calls may follow. */
interface Calling {
  readonly kinds: readonly number[];
  readonly mayCall: boolean;
}

interface Stand {
  readonly during?: During;
  readonly place: unknown;
  readonly calls: readonly unknown[];
}

interface SeenOfConversation {
  readonly suspended: unknown;
  readonly decisions: unknown;
  readonly reruns: unknown;
  readonly retries: unknown;
}

interface SeenOfRun {
  readonly held?: readonly string[];
  /** The turns are the first counter. */
  readonly counters?: readonly number[];
}

/** If no round follows, calls are not counted, and decisions only while a call is open. */
const leftOf = (spent: SpentUsage, isOver: boolean): SpentUsage => ({
  ...spent,
  calls: 0,
  ...(isOver && { decisions: 0 }),
});

const isInRound = ({ chart, children }: Sight): boolean => chart === 'TOOL_ROUND' || children.some(isInRound);

const decisionsIn = (word: readonly Step[]): string[] =>
  word.flatMap(({ move }) => (move.do === 'decide' ? [`${move.call} ${move.action}`] : []));
