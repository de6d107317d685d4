/** The rules that apply to every chart. Each rule names its clause (docs/internals/ids.md, Clauses in test names). */
import { type EffectRequest, type EffectValue, nextState } from '../../machines/index.ts';
import { documentEdges, extraEdges, superstateEdges } from '../support/documentEdges.ts';
import { type ChartInvariant, stepsInWords, type Trace } from './edgeTrace.ts';
import { hold } from './invariants.ts';

const json = (value: unknown): string => JSON.stringify(value);
type Documented = keyof typeof documentEdges;
const isDocumented = (chart: string): chart is Documented => chart in documentEdges;

const done = { type: 'effect.done', value: { kind: 'committed' } };
/** One answer for each kind of request. Timers and ends have no answer. */
const ANSWERS: { readonly [kind in EffectRequest['kind']]?: EffectValue } = {
  commit: { kind: 'committed' },
  phase: { kind: 'done' },
  model: { kind: 'failed', model: 'm', code: 'auth', message: 'no', retryable: false, random: 0 },
  gate: { kind: 'allow' },
  tool: { kind: 'succeeded', content: [] },
  afterTool: { kind: 'shown', content: [] },
  context: { kind: 'context', used: 1, limit: 10, warned: false },
  summary: { kind: 'failed', model: 'm', code: 'auth', message: 'no', retryable: false, random: 0 },
};
/** Returns the names of a state, from the outside in. */
function namesOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return Object.entries(value as object).flatMap(([key, inner]) => [key, ...namesOf(inner)]);
}

interface Diagram {
  states: ReadonlySet<string>;
  arrows: ReadonlySet<string>;
}
const maps = new Map<string, Diagram>();
function mapOf(chart: Documented): Diagram {
  const cached = maps.get(chart);
  if (cached) return cached;
  const edges = [...documentEdges[chart], ...extraEdges[chart].map(({ edge }) => edge)];
  const states = new Set(edges.flat());
  // The exits of a superstate leave each of its states. The ends of a run are in no superstate.
  const tail = new Set([
    'Terminate',
    'NaturalEnd',
    'Suspended',
    'Cancelled',
    'Error',
    'RunEnd',
    'CommitFinished',
    '[*]',
  ]);
  const exits = superstateEdges[chart].map(({ edge: [, to] }) => to);
  const around = [...states].filter((state) => !tail.has(state)).flatMap((from) => exits.map((to) => [from, to]));
  const map = { states, arrows: new Set([...edges, ...around].map(([from, to]) => `${from} → ${to}`)) };
  maps.set(chart, map);
  return map;
}

/** Returns the documented state of a chart. Its end is `[*]`. */
export function documented(chart: string, value: unknown): string {
  const names = namesOf(value);
  if (names.join() === 'Done') return '[*]';
  const { states } = isDocumented(chart) ? mapOf(chart) : { states: new Set<string>() };
  return names.find((name) => states.has(name)) ?? names.join('.');
}

/** Returns the initial state of a chart. */
function firstOf({ chart }: Trace): unknown {
  let at = chart.root;
  const names: string[] = [];
  while (Object.keys(at.states).length > 0) {
    const [next] = at.initial.target as readonly (typeof at)[];
    if (!next) break;
    at = next;
    names.push(at.key);
  }
  return names.reduceRight<unknown>((inner, name) => (inner === undefined ? name : { [name]: inner }), undefined);
}

/** Returns the documented states that a step passes, beginning with the one that it leaves. */
function wayOf(trace: Trace): string[] {
  const { chart, before, situation } = trace;
  const first = before ? before.state.value : firstOf(trace);
  const names = [first, ...situation.through, situation.state.value].map((value) => documented(chart.id, value));
  return [...(before ? [] : ['[*]']), ...names].filter((name, index, all) => name !== all[index - 1]);
}

type Leg = readonly [from: string, to: string];
const legs = new WeakMap<Trace, readonly Leg[]>();
/** Returns the legs of a step, as pairs. */
export function legsOf(trace: Trace): readonly Leg[] {
  const cached = legs.get(trace);
  if (cached) return cached;
  const way = wayOf(trace);
  const pairs = way.slice(1).map((to, index): Leg => [way[index] ?? '', to]);
  legs.set(trace, pairs);
  return pairs;
}
/** Returns true if a step enters a documented state. */
export const enters = (trace: Trace, state: string): boolean => legsOf(trace).some(([, to]) => to === state);

const twice = <T>(items: readonly T[]): T[] => items.filter((item, index) => items.indexOf(item) !== index);

/** Returns true if an id is under the id of a failed effect. */
export const commitsOf = (asked: readonly EffectRequest[]): Extract<EffectRequest, { kind: 'commit' }>[] =>
  asked.filter((request): request is Extract<EffectRequest, { kind: 'commit' }> => request.kind === 'commit');

export const anyChart: readonly ChartInvariant[] = [
  {
    says: 'run-lifecycle, State Machine: each step follows transitions of the document and skips none of its states',
    holds: (trace) => {
      if (!isDocumented(trace.chart.id)) return;
      const { arrows } = mapOf(trace.chart.id);
      const strays = legsOf(trace).filter(([from, to]) => !arrows.has(`${from} → ${to}`));
      hold(strays.length === 0, `no arrow of the document is ${json(strays)}`);
    },
  },
  {
    says: 'run-lifecycle, Checkpoint Triggers: a checkpoint is the last entry of its append, and the chart waits for its commit',
    holds: ({ log, asked }) => {
      const at = log.findIndex(({ type }) => type === 'checkpoint');
      hold(at < 0 || at === log.length - 1, `the checkpoint is entry ${at + 1} of ${log.length}`);
      const [checkpoint] = log.slice(at < 0 ? log.length : at);
      if (checkpoint?.type !== 'checkpoint') return;
      hold(
        commitsOf(asked).some(({ boundary }) => boundary === checkpoint.boundary),
        `nobody waits for ${checkpoint.boundary}`,
      );
    },
  },
  {
    says: 'semantics 1.4: no work is requested beside a commit, because it starts when the entry that permits it is durable',
    holds: ({ asked }) => {
      const work = asked.filter(({ kind }) => kind === 'model' || kind === 'tool' || kind === 'gate');
      hold(commitsOf(asked).length === 0 || work.length === 0, `${work.map(({ id }) => id)} starts before the commit`);
    },
  },
  {
    says: 'semantics 1.2, INV-1: a call has one result, and one more for each retry that a host has requested',
    holds: (trace) => {
      if (trace.now('tool-result').length === 0) return;
      const ids = trace.all('tool-result').map(({ callId }) => callId);
      const retried = trace.all('call-settled').flatMap(({ callId, how }) => ('retry' in how ? [callId] : []));
      const most = (id: string): number => 1 + retried.filter((each) => each === id).length;
      const tooOften = twice(ids).filter((id) => ids.filter((each) => each === id).length > most(id));
      hold(tooOften.length === 0, `two results: ${tooOften}`);
    },
  },
  {
    says: 'semantics 1.4: each effect is requested once',
    holds: (trace) => {
      // The acts of a path have one id.
      const asked = trace.asked.filter(({ kind }) => kind !== 'commit' && kind !== 'answer').map(({ id }) => id);
      const earlier = trace.before?.steps.flatMap((step) => step.asked) ?? [];
      for (const { id } of earlier) hold(!asked.includes(id), `${id} is asked for again`);
      hold(twice(asked).length === 0, `twice in one step: ${twice(asked)}`);
    },
  },
  {
    says: 'semantics 6: a tool runs after its tool-started, which is written once for each suspension',
    holds: (trace) => {
      const keys = trace.all('tool-started').map(({ idempotencyKey }) => idempotencyKey);
      hold(twice(keys).length === 0, `started twice: ${twice(keys)}`);
      for (const request of trace.asked) {
        if (request.kind === 'tool') hold(keys.includes(request.idempotencyKey), `${request.id} runs unrecorded`);
      }
    },
  },
  {
    says: 'semantics 6: suspensions count up by one, and a call with a result is never suspended',
    holds: (trace) => {
      for (const { callId, suspension } of trace.now('tool-suspended')) {
        const before = trace
          .all('tool-suspended')
          .filter((entry) => entry.callId === callId && entry.suspension < suspension);
        const last = Math.max(0, ...before.map((entry) => entry.suspension));
        hold(before.length === 0 || suspension === last + 1, `${callId} goes from suspension ${last} to ${suspension}`);
        hold(!trace.all('tool-result').some((entry) => entry.callId === callId), `${callId} waits after its result`);
      }
    },
  },
  {
    says: 'REQ-BED-001: an answer counts while the chart waits for it; any other answer changes nothing',
    holds: (trace) => {
      const { state } = trace;
      if (state.status !== 'active') return;
      const { state: after, effects, through } = nextState(state.machine, state, { ...done, id: 'of/another' });
      hold(after === state && effects.length + through.length === 0, 'a stray answer changes something');
      for (const request of trace.asked) {
        const sample = ANSWERS[request.kind];
        if (!sample || !trace.situation.requests.includes(request)) continue;
        const taken = nextState(state.machine, state, { ...done, id: request.id, value: sample });
        hold(taken.state !== state, `nobody takes the answer of ${request.id}`);
      }
    },
  },
  {
    says: 'B24: a chart that is not at rest has an open request or a child; at the end nothing is open',
    holds: (trace) => {
      const { state, requests } = trace.situation;
      hold(state.status !== 'error', `the chart broke: ${stepsInWords(trace)}`);
      const open = requests.map(({ id }) => id);
      if (state.status === 'done') return hold(open.length === 0, `open at the end: ${open}`);
      const rests = ['idle', 'waiting'].some((name) => namesOf(state.value)[0] === name);
      hold(rests || open.length + childrenOf(trace) > 0, `nothing wakes ${json(state.value)}`);
    },
  },
];

/** Returns the number of running children. Some charts stop finished children later. */
const childrenOf = ({ situation }: Trace): number =>
  Object.values(situation.state.children).filter((child) => !situation.ended.includes(child)).length;
