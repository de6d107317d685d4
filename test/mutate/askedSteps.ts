/**
 * Everything that the charts and functions as they are were asked, on all ways and of all drawn subjects, each with the
 * places of the sources that it passed. Rule: a mistake can show only where its place is passed, so it is asked again
 * there and nowhere else.
 */
import type { AnyStateMachine } from 'xstate';
import type { Situation } from '../../src/testing/chartPaths/chartExplorer.ts';
import { hashOf, recordOf } from '../paths/chartDigest.ts';
import type { Judged } from '../paths/charts.ts';
import { type Drawn, json } from '../paths/drawnResults.ts';
import { type Came, type ChartInvariant, Trace, tracesOf, Walk } from '../paths/edgeTrace.ts';

/** A set of places, a bit each. */
export type Passed = Uint8Array;
export const isIn = (passed: Passed, place: number): boolean => (((passed[place >> 3] ?? 0) >> (place & 7)) & 1) === 1;

export interface Question {
  readonly passed: Passed;
  /** What anyone sees of the answer: the record of a step, what a fold says. Empty where that is nothing. */
  readonly seen: string;
  /** The step, where it is one. */
  readonly trace?: Trace;
  /** The clause that was asked, where it does not hold of a drawn subject. */
  readonly broken?: string | undefined;
  again(): Again;
}
export interface Again {
  readonly seen: string;
  /** What the chart keeps for later, or what can come next, is another than it was. */
  readonly moved: boolean;
  /** The step as it is now, where it is one. */
  readonly trace?: Trace;
  /** The first clause that does not hold of it. */
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

/** A walk that notes what it asks between its steps. */
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

/** A key that is missing is as good as one that is undefined. */
const keptIn = ({ state }: Situation): string => JSON.stringify(state.context);

export interface Start {
  readonly walk: Walk;
  readonly questions: readonly Question[];
  readonly traces: readonly Trace[];
  readonly records: readonly string[];
}
/** Each step of a chart from one start, and what is asked between them. */
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
      // A copy: a walk looks each step up that it has taken.
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
 * Goes on from steps whose chart keeps something else than it did, beside the chart as it was, until the two are told
 * apart; true where they are. `asItWas` asks without the mistake.
 */
export function differBehind(
  walk: Walk,
  moved: readonly (readonly [was: Trace, now: Trace])[],
  asItWas: <T>(ask: () => T) => T,
  spend: () => boolean,
  told: (now: Trace) => void,
): boolean {
  const keyOf = (was: Trace, now: Trace): string =>
    `${asItWas(() => walk.key(was.situation))} ${walk.key(now.situation)}`;
  const reached = new Map(moved.map(([was, now]) => [keyOf(was, now), [was, now] as const]));
  const nextOf = (trace: Trace, event: Came): Trace =>
    // A copy: what is looked up is never forgotten.
    new Trace(trace.chart, trace.input, walk.next({ ...trace.situation }, event), event, trace);
  for (const [was, now] of reached.values()) {
    const events = asItWas(() => walk.events(was.situation));
    const others = walk.events(now.situation);
    // What asks for other answers is told apart by what it asks.
    for (const event of events.filter((each) => others.includes(each))) {
      if (!spend()) return false;
      const before = asItWas(() => nextOf(was, event));
      const next = nextOf(now, event);
      if (hashOf([asItWas(() => recordOf(before))]) !== hashOf([recordOf(next)])) {
        told(next);
        return true;
      }
      const key = keyOf(before, next);
      if (keptIn(before.situation) !== keptIn(next.situation) && !reached.has(key)) reached.set(key, [before, next]);
    }
  }
  return false;
}

/** What each fold says of each subject of a batch, and that each clause holds of it. */
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
