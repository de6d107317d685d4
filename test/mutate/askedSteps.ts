/**
 * All questions to the unchanged charts and functions, on all paths and for all random subjects, each with its reached
 * places of the sources. Invariant: a mistake can have an effect only in a reached place, so only those questions are
 * repeated.
 */
import type { AnyStateMachine } from 'xstate';
import type { Situation } from '../../src/testing/chartPaths/chartExplorer.ts';
import { hashOf, recordOf } from '../paths/chartDigest.ts';
import type { Judged } from '../paths/charts.ts';
import { type Drawn, json } from '../paths/drawnResults.ts';
import { type Came, type ChartInvariant, Trace, tracesOf, Walk } from '../paths/edgeTrace.ts';

/** A set of places, one bit each. */
export type Passed = Uint8Array;
export const isIn = (passed: Passed, place: number): boolean => (((passed[place >> 3] ?? 0) >> (place & 7)) & 1) === 1;

export interface Question {
  readonly passed: Passed;
  /** The visible part of the answer: the record of a step, or the result of a fold. Empty if there is none. */
  readonly seen: string;
  /** The step, if the question is one. */
  readonly trace?: Trace;
  /** The clause, if it does not hold for a random subject. */
  readonly broken?: string | undefined;
  again(): Again;
}
export interface Again {
  readonly seen: string;
  /** The chart's stored state, or its possible next events, differ from before. */
  readonly moved: boolean;
  /** The current step, if the question is one. */
  readonly trace?: Trace;
  /** The first clause that does not hold for it. */
  broken(): string | undefined;
}

export function firstBroken(invariants: readonly ChartInvariant[], trace: Trace): string | undefined {
  return invariants.find(({ holds }) => breaks(() => holds(trace)))?.says;
}

function breaks(holds: () => void): boolean {
  try {
    holds();
    return false;
  } catch {
    return true;
  }
}

/** A walk that records its questions between its steps. */
class Noting extends Walk {
  readonly questions: Question[] = [];
  readonly #passed: () => Passed;

  constructor(machine: AnyStateMachine, { cases }: Judged, passed: () => Passed) {
    super(machine, cases);
    this.#passed = passed;
  }

  override events(situation: Situation): ReturnType<Walk['events']> {
    return this.#noted(() => super.events(situation));
  }

  override takes(situation: Situation, event: Came): boolean {
    return this.#noted(() => super.takes(situation, event));
  }

  #noted<T>(ask: () => T): T {
    this.#passed();
    const was = ask();
    const again = (): Again => ({ seen: '', moved: json(ask()) !== json(was), broken: () => undefined });
    this.questions.push({ passed: this.#passed(), seen: '', again });
    return was;
  }
}

/** A missing key equals an undefined one. */
const keptIn = ({ state }: Situation): string => JSON.stringify(state.context);

export interface Start {
  readonly walk: Walk;
  readonly questions: readonly Question[];
  readonly traces: readonly Trace[];
  readonly records: readonly string[];
}
/** Each step of a chart from one start, and the questions between them. */
export function startOf(machine: AnyStateMachine, judged: Judged, input: unknown, passed: () => Passed): Start {
  const walk = new Noting(machine, judged, passed);
  const { questions } = walk;
  const traces: Trace[] = [];
  const records: string[] = [];
  passed();
  for (const trace of tracesOf(machine, judged.cases, input, walk)) {
    const { situation, before, event } = trace;
    const key = walk.key(situation);
    const record = recordOf(trace);
    const again = (): Again => {
      // A copy, because a walk looks up each of its steps.
      const next = before && event ? walk.next({ ...before.situation }, event) : walk.start(input);
      const step = new Trace(machine, input, next, event, before);
      const moved = walk.key(next) !== key || keptIn(next) !== keptIn(situation);
      const broken = (): string | undefined => firstBroken(judged.invariants, step);
      return { seen: hashOf([recordOf(step)]), moved, trace: step, broken };
    };
    traces.push(trace);
    records.push(record);
    questions.push({ passed: passed(), seen: hashOf([record]), trace, again });
  }
  return { walk, questions, traces, records };
}

/**
 * Continues from steps whose chart has another stored state, beside the unchanged chart, until the two differ visibly;
 * true if they do. `asItWas` asks without the mistake.
 */
export function differBehind(
  walk: Walk,
  moved: readonly (readonly [was: Trace, now: Trace])[],
  asItWas: <T>(ask: () => T) => T,
  spend: () => boolean,
  onTrace: (now: Trace) => void,
): boolean {
  const keyOf = (was: Trace, now: Trace): string =>
    `${asItWas(() => walk.key(was.situation))} ${walk.key(now.situation)}`;
  const reached = new Map(moved.map(([was, now]) => [keyOf(was, now), [was, now] as const]));
  const nextOf = (trace: Trace, event: Came): Trace =>
    // A copy, because looked-up steps are never removed.
    new Trace(trace.chart, trace.input, walk.next({ ...trace.situation }, event), event, trace);
  for (const [was, now] of reached.values()) {
    const events = asItWas(() => walk.events(was.situation));
    const others = walk.events(now.situation);
    // A request for other answers differs by its question.
    for (const event of events.filter((each) => others.includes(each))) {
      if (!spend()) return false;
      const before = asItWas(() => nextOf(was, event));
      const next = nextOf(now, event);
      if (hashOf([asItWas(() => recordOf(before))]) !== hashOf([recordOf(next)])) {
        onTrace(next);
        return true;
      }
      const key = keyOf(before, next);
      if (keptIn(before.situation) !== keptIn(next.situation) && !reached.has(key)) reached.set(key, [before, next]);
    }
  }
  return false;
}

/** The result of each fold for each subject of a batch, and the check of each clause on it. */
export function batchOf(drawn: Drawn, batch: number, passed: () => Passed): readonly Question[] {
  const { clauses, folds, seedsOf, subjectOf, ask } = drawn;
  const questions: Question[] = [];
  const note = (answer: () => Omit<Again, 'moved'>, isClause = false): void => {
    passed();
    const { seen } = answer();
    const broken = isClause && seen !== '' ? seen : undefined;
    questions.push({ passed: passed(), seen, broken, again: () => ({ ...answer(), moved: false }) });
  };
  for (const seed of seedsOf(batch)) {
    const broken = (): string | undefined =>
      clauses.find(({ holds }) => breaks(() => holds(subjectOf(seed) as never)))?.says;
    for (const fold of folds) note(() => ({ seen: ask(fold, subjectOf(seed), seed), broken }));
    for (const { holds, says } of clauses) {
      note(() => {
        const seen = breaks(() => holds(subjectOf(seed) as never)) ? says : '';
        return { seen, broken: () => seen || undefined };
      }, true);
    }
  }
  return questions;
}
