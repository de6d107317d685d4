/**
 * Judges charts that may hold a mistake. Rule: the paths come from the chart as it is here, with its mistake; what is
 * known of the right one is its digest of each start, and what the documents say.
 */
import type { AnyStateMachine } from 'xstate';
import { charts } from '../paths/charts.ts';
import { conversations } from '../paths/conversations.ts';
import { digestOf, hashOf, recordOf, stepsOf } from '../paths/digest.ts';
import type { Drawn } from '../paths/drawn.ts';
import { logs } from '../paths/logs.ts';
import { runs } from '../paths/runs.ts';
import { type ChartInvariant, type Trace, tracesOf } from '../paths/trace.ts';
import { rebuilt } from '../support/rebuilt.ts';
import { chartMutants } from './mutants.ts';

/** One start of one chart. */
export interface Place {
  chart: number;
  start: number;
}
export interface Known extends Place {
  /** A hash of each step, and one of all with what comes behind them. */
  steps: readonly string[];
  all: string;
  /** Ids of the states that are passed. */
  passed: readonly string[];
}
/** What found a mistake: a clause, the digest, or that the chart breaks. */
export interface Verdict {
  invariant?: string | undefined;
  digest?: string;
}

/** In place of a chart, counted down from -1: what functions say of drawn subjects, by batch. */
const drawns: readonly Drawn[] = [logs, runs, conversations];
const drawnAt = (chart: number): Drawn | undefined => drawns[-1 - chart];
export const places = (): Place[] => [
  ...charts.flatMap(({ cases }, chart) => cases.inputs.map((_, start) => ({ chart, start }))),
  ...drawns.flatMap(({ batches }, index) => batches.map((start) => ({ chart: -1 - index, start }))),
];
export const chartIds = (): string[] => charts.map(({ machine }) => machine.id);

/** An endless chain of arrows is an error, not a hang. */
const ready = charts.map(({ machine }) => rebuilt(machine));

const flat = (value: unknown): string[] =>
  typeof value === 'string'
    ? [value]
    : Object.entries(value as object).flatMap(([key, inner]) => [key, ...flat(inner).map((each) => `${key}.${each}`)]);

function* explored({ chart, start }: Place, machine?: AnyStateMachine): Generator<Trace> {
  const judged = charts[chart];
  const own = machine ?? ready[chart];
  if (judged && own) yield* tracesOf(own, judged.cases, judged.cases.inputs[start]);
}

/** The states that a chart begins in, from the outside in: each start passes them. */
function beginnings(root: AnyStateMachine['root']): string[] {
  const [first] = (Object.keys(root.states).length > 0 ? root.initial.target : []) as readonly (typeof root)[];
  return [root.id, ...(first ? beginnings(first) : [])];
}

/** What the chart does from one start, as it is. */
export function know(place: Place): Known {
  const subjects = drawnAt(place.chart);
  if (subjects) {
    return { ...place, steps: [...subjects.answers(place.start)].map(({ hash }) => hash), all: '', passed: [] };
  }
  const traces = [...explored(place)];
  const id = charts[place.chart]?.machine.id ?? '';
  const values: unknown[] = traces.flatMap(({ state, situation }) => [state.value, ...situation.through]);
  const passed = new Set(values.flatMap(flat).map((name) => `${id}.${name}`));
  const root = charts[place.chart]?.machine.root;
  const records = traces.map(recordOf);
  const steps = records.map((record) => hashOf([record]));
  return {
    ...place,
    steps,
    all: hashOf(stepsOf(traces, records)),
    passed: [...(root ? beginnings(root) : []), ...passed],
  };
}

/** The digests by file, as they would be committed. */
export const digests = (): [file: string, text: string][] => [
  ...charts.map(({ machine }, chart): [string, string] => [machine.id, digest(chart)]),
  ...drawns.map(({ name, digest }): [string, string] => [name, digest()]),
];
function digest(chart: number): string {
  const { machine, cases } = charts[chart] ?? {};
  if (!machine || !cases) return '';
  return digestOf(
    machine.id,
    cases.inputs.map((_, start) => [...explored({ chart, start })]),
  );
}

function firstBroken(invariants: readonly ChartInvariant[], trace: Trace): string | undefined {
  for (const { holds, says } of invariants) {
    try {
      holds(trace);
    } catch {
      return says;
    }
  }
  return undefined;
}

/** How many steps are gone through, where the digest has found the mistake before the clauses. */
const STEPS_MAX = 800;

/** What is said of a batch, and whether it is as it was. */
function judgeDrawn({ answers, clauses, name }: Drawn, { start, steps }: Known, verdict: Verdict): number {
  let last: unknown;
  let index = 0;
  for (const { subject, hash } of answers(start)) {
    if (hash !== steps[index]) verdict.digest ??= name;
    index += 1;
    if (subject !== last) verdict.invariant ??= clauses.find((clause) => breaks(clause, subject))?.says;
    last = subject;
    if (verdict.digest && verdict.invariant) return index;
  }
  return index;
}

function breaks({ holds }: Drawn['clauses'][number], subject: unknown): boolean {
  try {
    holds(subject as never);
    return false;
  } catch {
    return true;
  }
}

/** What a mistake changes from one start. A step that is as it was, behind steps that were, breaks no clause now. */
function judgeStart(place: Known, verdict: Verdict, machine: AnyStateMachine | undefined, most: number): number {
  const { machine: chart, invariants = [] } = charts[place.chart] ?? {};
  const name = `${chart?.id} ${place.start + 1}`;
  const left = new Map<string, number>();
  for (const step of place.steps) left.set(step, (left.get(step) ?? 0) + 1);
  const changed = new Set<Trace>();
  const all: Trace[] = [];
  for (const trace of explored(place, machine)) {
    all.push(trace);
    const step = hashOf([recordOf(trace)]);
    const times = left.get(step);
    if (times === undefined || times === 0) verdict.digest ??= name;
    else left.set(step, times - 1);
    if (times === undefined || (trace.before && changed.has(trace.before))) {
      changed.add(trace);
      verdict.invariant ??= firstBroken(invariants, trace);
    }
    if (verdict.digest && (verdict.invariant || all.length > most)) return all.length;
  }
  if (!verdict.digest && hashOf(stepsOf(all)) !== place.all) verdict.digest = name;
  // The same steps more or less often: where one of them is wrong is not to be told from the step alone.
  if (verdict.digest) for (const trace of all.slice(0, most)) verdict.invariant ??= firstBroken(invariants, trace);
  return all.length;
}

/** Looks from one start after the other, until both have found the mistake, or no more steps may be taken. */
export function judge(known: readonly Known[], atMost: number, machine?: AnyStateMachine): Verdict {
  const verdict: Verdict = {};
  let left = STEPS_MAX;
  for (const place of known) {
    try {
      const subjects = drawnAt(place.chart);
      // What is drawn takes less time than a step of a chart.
      if (subjects) left -= judgeDrawn(subjects, place, verdict) / 20;
      else left -= judgeStart(place, verdict, machine, left);
    } catch (error) {
      verdict.digest ??= `${place.chart} ${place.start}`;
      verdict.invariant ??= `B24: the chart broke: ${String(error).slice(0, 80)}`;
    }
    if (verdict.digest && (verdict.invariant || left <= 0)) return verdict;
    if (STEPS_MAX - left > atMost) return verdict;
  }
  return verdict;
}

/** A clause that does not hold for the charts as they are. */
export function control(): string | undefined {
  for (const [chart, { invariants, cases }] of charts.entries()) {
    for (const start of cases.inputs.keys()) {
      for (const trace of explored({ chart, start })) {
        const broken = firstBroken(invariants, trace);
        if (broken) return broken;
      }
    }
  }
  return undefined;
}

export interface ChartMutantName {
  chart: number;
  name: string;
  what: string;
  source: string;
}
export const mutantNames = (): ChartMutantName[] =>
  charts.flatMap(({ machine }, chart) =>
    [...chartMutants(machine)].map(({ name, what, source }) => ({ chart, name, what, source })),
  );
const built = new Map<number, readonly { build(): AnyStateMachine }[]>();
export function judgeMutant(chart: number, index: number, known: readonly Known[], atMost: number): Verdict {
  const machine = charts[chart]?.machine;
  if (!machine) return {};
  const mutants = built.get(chart) ?? [...chartMutants(machine)];
  built.set(chart, mutants);
  const mutant = mutants[index];
  return mutant ? judge(known, atMost, mutant.build()) : {};
}
