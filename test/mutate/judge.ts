/**
 * Judges charts that may contain a mistake. Invariant: the correct charts are known by their answers to each question,
 * by the digest of each start, and by the documents. If a mistake changes a chart's state, later paths come from the
 * changed chart.
 */
import type { AnyStateMachine } from 'xstate';
import { digestOf, hashOf, recordOf, stepsOf } from '../paths/chartDigest.ts';
import { acts } from '../paths/chartFunctions.ts';
import { charts } from '../paths/charts.ts';
import { conversations } from '../paths/conversationFunctions.ts';
import { counts } from '../paths/countFunctions.ts';
import type { Drawn } from '../paths/drawnResults.ts';
import { type Trace, tracesOf, type Walk } from '../paths/edgeTrace.ts';
import { logs } from '../paths/logFolds.ts';
import { ends } from '../paths/runEnds.ts';
import { runs } from '../paths/runFunctions.ts';
import { rebuilt } from '../support/rebuildChart.ts';
import { batchOf, differBehind, firstBroken, isIn, type Passed, type Question, startOf } from './askedSteps.ts';
import { chartMutants } from './mutants.ts';

/** One start of one chart. */
export interface Place {
  chart: number;
  start: number;
}
export interface WalkedPlace extends Place {
  readonly questions: readonly Question[];
  readonly walk?: Walk;
  readonly traces: readonly Trace[];
  /** A hash of each step, and one of all with their following steps. */
  steps: readonly string[];
  all: string;
  /** Ids of the reached states. */
  passed: readonly string[];
}
/** The detector of a mistake: a clause, the digest, or a crash of the chart. */
export interface Verdict {
  invariant?: string | undefined;
  digest?: string;
}

/** Used in place of a chart, counted down from -1: the results of functions for random subjects, by batch. */
const drawns: readonly Drawn[] = [logs, runs, ends, conversations, acts, counts];
const drawnAt = (chart: number): Drawn | undefined => drawns[-1 - chart];
export const places = (): Place[] => [
  ...charts.flatMap(({ cases }, chart) => cases.inputs.map((_, start) => ({ chart, start }))),
  ...drawns.flatMap(({ batches }, index) => batches.map((start) => ({ chart: -1 - index, start }))),
];
export const chartIds = (): string[] => charts.map(({ machine }) => machine.id);

/** An endless chain of arrows becomes an error instead of a hang. */
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

/** The initial states of a chart, from the outside in: each start reaches them. */
function beginnings(root: AnyStateMachine['root']): string[] {
  const [first] = (Object.keys(root.states).length > 0 ? root.initial.target : []) as readonly (typeof root)[];
  return [root.id, ...(first ? beginnings(first) : [])];
}

/** The behaviour of the unchanged chart from one start. */
function know(place: Place, passed: () => Passed): WalkedPlace {
  const subjects = drawnAt(place.chart);
  if (subjects) {
    const questions = batchOf(subjects, place.start, passed);
    return { ...place, questions, traces: [], steps: [], all: '', passed: [] };
  }
  const judged = charts[place.chart];
  const machine = ready[place.chart];
  if (!judged || !machine) throw new Error(`no chart ${place.chart}`);
  const { walk, questions, traces, records } = startOf(machine, judged, judged.cases.inputs[place.start], passed);
  const values: unknown[] = traces.flatMap(({ state, situation }) => [state.value, ...situation.through]);
  const names = new Set(values.flatMap(flat).map((name) => `${judged.machine.id}.${name}`));
  const steps = records.map((record) => hashOf([record]));
  const all = hashOf(stepsOf(traces, records));
  return { ...place, walk, questions, traces, steps, all, passed: [...beginnings(judged.machine.root), ...names] };
}

/** The answers of the correct charts, the smallest first: random subjects, then the starts of charts. */
export function knowAll(passed: () => Passed): WalkedPlace[] {
  const sizeOf = ({ chart, start, steps }: WalkedPlace): number => (chart < 0 ? start - 1_000 : steps.length);
  return places()
    .map((place) => know(place, passed))
    .sort((a, b) => sizeOf(a) - sizeOf(b));
}

/** The digests by file, as they would be committed. */
export function digests(walkedPlaces: readonly WalkedPlace[]): [file: string, text: string][] {
  const tracesFrom = (chart: number): (readonly Trace[])[] => {
    const own = walkedPlaces.filter((place) => place.chart === chart);
    return own.sort((a, b) => a.start - b.start).map(({ traces }) => traces);
  };
  return [
    ...charts.map(({ machine }, chart): [string, string] => [machine.id, digestOf(machine.id, tracesFrom(chart))]),
    ...drawns.map(({ name, digest }): [string, string] => [name, digest()]),
  ];
}

/** A clause that does not hold for the unchanged charts. */
export function control(walkedPlaces: readonly WalkedPlace[]): string | undefined {
  for (const { chart, traces, questions } of walkedPlaces) {
    const invariants = charts[chart]?.invariants ?? [];
    for (const trace of traces) {
      const broken = firstBroken(invariants, trace);
      if (broken) return broken;
    }
    const brokenQuestion = questions.find(({ broken }) => broken);
    if (brokenQuestion) return brokenQuestion.broken;
  }
  return undefined;
}

/** The number of further steps after the digest has detected the mistake before the clauses. */
const STEPS_MAX = 800;

/** The effects of a mistake from one start. An unchanged step after unchanged steps breaks no clause now. */
function judgeStart(place: WalkedPlace, verdict: Verdict, machine: AnyStateMachine | undefined, most: number): number {
  const { machine: chart, invariants = [] } = charts[place.chart] ?? {};
  const name = `${chart?.id} ${place.start + 1}`;
  const remainingCounts = new Map<string, number>();
  for (const step of place.steps) remainingCounts.set(step, (remainingCounts.get(step) ?? 0) + 1);
  const changed = new Set<Trace>();
  const all: Trace[] = [];
  for (const trace of explored(place, machine)) {
    all.push(trace);
    const step = hashOf([recordOf(trace)]);
    const times = remainingCounts.get(step);
    if (times === undefined || times === 0) verdict.digest ??= name;
    else remainingCounts.set(step, times - 1);
    if (times === undefined || (trace.before && changed.has(trace.before))) {
      changed.add(trace);
      verdict.invariant ??= firstBroken(invariants, trace);
    }
    if (verdict.digest && (verdict.invariant || all.length > most)) return all.length;
  }
  if (!verdict.digest && hashOf(stepsOf(all)) !== place.all) verdict.digest = name;
  // The same steps more or less often: the step alone does not show which of them is wrong.
  if (verdict.digest)
    for (const trace of all.slice(0, Math.max(0, most))) verdict.invariant ??= firstBroken(invariants, trace);
  return all.length;
}

/** The number of changed answers that are compared with a clause: one more takes longer than all the others. */
const LOOKED_AT = 1;

/** The immediate effects of a mistake in a function, and the first step from which the chart must be followed. */
interface Changes {
  moved: (readonly [was: Trace, now: Trace])[];
  /** Other events can follow. */
  comes: boolean;
}
function askAgain(
  { chart, start, questions }: WalkedPlace,
  place: number,
  verdict: Verdict,
  spend: (isDrawn: boolean) => boolean,
): Changes {
  const changed = new Set<Trace>();
  // The steps after a changed step come from another state now.
  const isBehind = (trace: Trace | undefined): boolean =>
    changed.size > 0 && trace !== undefined && (changed.has(trace) || isBehind(trace.before));
  const changes: Changes = { moved: [], comes: false };
  let looked = 0;
  for (const { passed, seen, trace, again } of questions) {
    if (!isIn(passed, place) || isBehind(trace?.before)) continue;
    if (!spend(trace === undefined)) break;
    try {
      const now = again();
      if (now.seen !== seen) {
        verdict.digest ??= `${chart} ${start + 1}`;
        verdict.invariant ??= now.broken();
        looked += 1;
      } else if (now.moved && trace && now.trace) changes.moved.push([trace, now.trace]);
      else if (now.moved) changes.comes = true;
      if (trace && (now.moved || now.seen !== seen)) changed.add(trace);
    } catch (error) {
      verdict.digest ??= `${chart} ${start + 1}`;
      verdict.invariant ??= brokeWith(error);
    }
    if (verdict.invariant || looked >= LOOKED_AT) break;
  }
  return changes;
}

const brokeWith = (error: unknown): string => `B24: the chart broke: ${String(error).slice(0, 80)}`;

/**
 * A mistake in a function: its effects in the reached places, and then the consequences. `asItWas` asks without the
 * mistake.
 */
export function judgeFunction(
  walkedPlaces: readonly WalkedPlace[],
  place: number,
  atMost: number,
  asItWas: <T>(ask: () => T) => T,
): Verdict & { unreached?: true } {
  const passing = walkedPlaces.filter(({ questions }) => questions.some(({ passed }) => isIn(passed, place)));
  if (passing.length === 0) return { unreached: true };
  const verdict: Verdict = {};
  const changed: [WalkedPlace, Changes][] = [];
  // Random subjects need no walk, and are always checked.
  let remainingSteps = atMost;
  const spend = (isDrawn = false): boolean => {
    if (!isDrawn) remainingSteps -= 1;
    return remainingSteps >= 0 || isDrawn;
  };
  for (const at of passing) {
    const changes = askAgain(at, place, verdict, spend);
    if (changes.moved.length > 0 || changes.comes) changed.push([at, changes]);
    if (verdict.digest) return verdict;
  }
  remainingSteps = atMost;
  for (const [{ chart, start, walk }, { moved }] of changed) {
    const onTrace = (now: Trace): void => {
      verdict.digest = `${chart} ${start + 1}`;
      verdict.invariant = firstBroken(charts[chart]?.invariants ?? [], now);
    };
    try {
      if (walk && differBehind(walk, moved, asItWas, spend, onTrace)) return verdict;
    } catch (error) {
      return { digest: `${chart} ${start + 1}`, invariant: brokeWith(error) };
    }
  }
  const others = changed.flatMap(([at, { comes }]) => (comes ? [at] : []));
  return judge(others, remainingSteps, 0);
}

/** A mistake in code that runs while modules load: everything is checked, the parts `near` it first. */
export function judgeLoaded(walkedPlaces: readonly WalkedPlace[], near: readonly number[], atMost: number): Verdict {
  const isNear = ({ questions }: WalkedPlace): boolean =>
    questions.some(({ passed }) => near.some((place) => isIn(passed, place)));
  for (const part of [walkedPlaces.filter(isNear), walkedPlaces.filter((place) => !isNear(place))]) {
    for (const place of part) {
      const subjects = drawnAt(place.chart);
      const verdict = subjects && judgeBatch(subjects, place);
      if (verdict?.digest) return verdict;
    }
    const starts = part.filter(({ chart }) => !drawnAt(chart));
    const verdict = judge(starts, atMost, 0);
    if (verdict.digest) return verdict;
  }
  return {};
}
function judgeBatch(subjects: Drawn, { start, questions }: WalkedPlace): Verdict {
  const now = batchOf(subjects, start, () => new Uint8Array());
  const changed = now.find(({ seen }, at) => seen !== questions[at]?.seen);
  return changed ? { digest: subjects.name, invariant: changed.again().broken() } : {};
}

/** Checks one start after the other, until both detectors have found the mistake, or the limit of steps is reached. */
function judge(
  walkedPlaces: readonly WalkedPlace[],
  atMost: number,
  forClauses: number,
  machine?: AnyStateMachine,
): Verdict {
  const verdict: Verdict = {};
  let remainingChecks = forClauses;
  for (const place of walkedPlaces) {
    try {
      remainingChecks -= judgeStart(place, verdict, machine, remainingChecks);
    } catch (error) {
      verdict.digest ??= `${place.chart} ${place.start}`;
      verdict.invariant ??= brokeWith(error);
    }
    if (verdict.digest && (verdict.invariant || remainingChecks <= 0)) return verdict;
    if (forClauses - remainingChecks > atMost) return verdict;
  }
  return verdict;
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
export function judgeMutant(
  chart: number,
  index: number,
  walkedPlaces: readonly WalkedPlace[],
  atMost: number,
): Verdict {
  const machine = charts[chart]?.machine;
  if (!machine) return {};
  const mutants = built.get(chart) ?? [...chartMutants(machine)];
  built.set(chart, mutants);
  const mutant = mutants[index];
  return mutant ? judge(walkedPlaces, atMost, STEPS_MAX, mutant.build()) : {};
}
