/**
 * The actor whose chart is shown, its ancestors, and the state of its chart. Invariant: observations count while the
 * page follows. At any other entry only the log counts.
 */
import { computed } from '@preact/signals';
import { callAt } from '../model/callStates.ts';
import { type ActiveStates, activeStatesAt } from '../model/chart/activeStates.ts';
import { callPath, conversationPath, type Path, roundPath, runPath } from '../model/chart/chartPath.ts';
import { runStateAt } from '../model/logFacts.ts';
import type { ActorView } from '../model/observedActors.ts';
import { type MarkName, markOfCall, markOfRun } from '../model/treeRows.ts';
import { charts } from './chartLayouts.ts';
import { chosen, cursor, entries, facts, isPast, lastRun, now, open, stateAt } from './pageState.ts';

export interface Subject {
  /** The key of its row in the tree. */
  readonly key: string;
  readonly chart: string;
  readonly label: string;
  readonly path: Path;
  readonly mark: MarkName;
  readonly actor?: ActorView;
}

const walkerOf = (chart: string) => charts.value.get(chart)?.walker;

const conversationMark = (): MarkName => {
  const state = stateAt(cursor.value);
  return state === 'open' ? 'idle' : state === 'idle' ? 'idle' : markOfRun(state);
};

/** Returns the newest actor of a chart in the open conversation, while the page follows. */
function liveActor(chart: string, name?: string): ActorView | undefined {
  if (isPast.value) return undefined;
  const actors = [...(open.value?.observed?.actors.values() ?? [])];
  const matches = actors.filter((actor) => actor.chart === chart && (name === undefined || actor.name === name));
  return matches.at(-1);
}

function withActor(subject: Subject, actor: ActorView | undefined): Subject {
  if (!actor || actor.path.length === 0) return subject;
  const path = actor.path.map((move) => ({ ...move, at: Math.min(move.at, cursor.value) }));
  // A late observer did not see the earlier moves, so the log supplies them.
  const before = actor.isLate ? subject.path.filter(({ time }) => time <= (actor.path[0]?.time ?? 0)) : [];
  return { ...subject, path: [...before, ...path], actor };
}

function conversationSubject(): Subject | undefined {
  const walker = walkerOf('CONVERSATION');
  if (!walker) return undefined;
  const path = conversationPath(walker, entries.value);
  const subject = { key: 'conversation', chart: 'CONVERSATION', label: 'CONVERSATION', path, mark: conversationMark() };
  return withActor(subject, liveActor('CONVERSATION'));
}

function runSubject(at: number): Subject | undefined {
  const walker = walkerOf('RUN');
  const run = facts.value.runs[at];
  if (!walker || !run) return undefined;
  const path = runPath(walker, entries.value, run);
  const mark = markOfRun(runStateAt(run, cursor.value));
  const subject = { key: `run ${at}`, chart: 'RUN', label: `RUN ${run.number}`, path, mark };
  return at === facts.value.runs.length - 1 ? withActor(subject, liveActor('RUN')) : subject;
}

function roundSubject(at: number): Subject | undefined {
  const walker = walkerOf('TOOL_ROUND');
  if (!walker) return undefined;
  const path = roundPath(walker, entries.value, facts.value, at);
  return { key: `round ${at}`, chart: 'TOOL_ROUND', label: 'TOOL_ROUND', path, mark: runMark(at) };
}

const runMark = (at: number): MarkName => {
  const run = facts.value.runs[at];
  return run ? markOfRun(runStateAt(run, cursor.value)) : 'idle';
};

function callSubject(id: string): Subject | undefined {
  const walker = walkerOf('TOOL_CALL');
  const call = facts.value.calls.get(id);
  if (!walker || !call) return undefined;
  const path = callPath(walker, entries.value, call);
  return {
    key: `call ${id}`,
    chart: 'TOOL_CALL',
    label: call.name,
    path,
    mark: markOfCall(callAt(call, cursor.value)),
  };
}

function modelSubject(at: number): Subject | undefined {
  const walker = walkerOf('LLM_CALL');
  const run = facts.value.runs[at];
  if (!walker || !run) return undefined;
  const path: Path = [{ at: cursor.value, legs: [], leaf: walker.first, time: entries.value[cursor.value]?.at ?? 0 }];
  return { key: `model ${at}`, chart: 'LLM_CALL', label: 'LLM_CALL', path, mark: 'running' };
}

/** XState numbers an actor without a name; the name of its machine is more useful. */
export const actorName = ({ name, chart = '' }: ActorView): string =>
  /^x:\d+$/.test(name) ? (charts.value.get(chart)?.chart.name ?? name) : name;

function actorSubject(id: string): Subject | undefined {
  const actor = open.value?.observed?.actors.get(id);
  if (actor?.chart === undefined) return undefined;
  const mark = actor.status === 'active' ? 'running' : actor.status === 'error' ? 'failed' : 'done';
  return {
    key: `actor ${id}`,
    chart: actor.chart,
    label: actorName(actor),
    path: actor.path,
    mark,
    actor,
  };
}

function subjectOf(key: string): Subject | undefined {
  const [kind = '', ...rest] = key.split(' ');
  const name = rest.join(' ');
  if (kind === 'run') return runSubject(Number(name));
  if (kind === 'round') return roundSubject(Number(name));
  if (kind === 'model') return modelSubject(Number(name));
  if (kind === 'call') return callSubject(name);
  if (kind === 'actor') return actorSubject(name);
  return conversationSubject();
}

/** True during a model call. The log does not contain that. */
export const isAsking = computed(
  () => liveActor('RUN')?.leaves.some((leaf) => leaf.startsWith('RUN.active.LlmCall')) ?? false,
);

export const defaultKey = computed((): string | undefined => {
  const conversation = open.value;
  if (!conversation) return undefined;
  if (conversation.of === 'xstate') {
    const first = [...(conversation.observed?.actors.values() ?? [])].find(({ chart }) => chart !== undefined);
    return first && `actor ${first.id}`;
  }
  const run = lastRun.value;
  return run ? `run ${lastRunAt.value}` : 'conversation';
});
/** A model call has a row while it runs. Afterwards its run is selected. */
export const selectedKey = computed(() => {
  const key = chosen.value;
  const [kind, at] = key?.split(' ') ?? [];
  const run = kind === 'model' ? facts.value.runs[Number(at)] : undefined;
  const isOver = run && !(isAsking.value && runStateAt(run, cursor.value) === 'running');
  return isOver ? `run ${at}` : (key ?? defaultKey.value);
});

const lastRunAt = computed(() => (lastRun.value ? facts.value.runs.indexOf(lastRun.value) : -1));

/** The path from the outermost actor to the selected one, with the round that a run is in. */
export const crumbs = computed((): Subject[] => {
  const key = selectedKey.value;
  if (key === undefined) return [];
  const subject = subjectOf(key);
  if (!subject) return [];
  if (key.startsWith('actor')) return actorCrumbs(subject);
  const run = key === 'conversation' ? lastRunAt.value : Number(key.split(' ')[1]);
  if (run < 0) return [subject];
  const runAt = key.startsWith('call') ? runOfCall(key.slice(5)) : run;
  const path: (Subject | undefined)[] = [conversationSubject(), runSubject(runAt)];
  if (key.startsWith('round') || key.startsWith('call') || isInRound(runAt)) path.push(roundSubject(runAt));
  if (key.startsWith('call') || key.startsWith('model')) path.push(subject);
  return path.filter((one) => one !== undefined);
});

function actorCrumbs(subject: Subject): Subject[] {
  const line = [subject];
  const actors = open.value?.observed?.actors;
  for (let up = subject.actor?.parent; up !== undefined; up = actors?.get(up)?.parent) {
    const above = subjectOf(`actor ${up}`);
    if (above) line.unshift(above);
  }
  return line;
}

function runOfCall(id: string): number {
  const { calls, runs } = facts.value;
  const call = calls.get(id);
  const at = call?.starts.filter((start) => start.at <= cursor.value).at(-1)?.at ?? call?.requestedAt ?? 0;
  return Math.max(
    0,
    runs.findIndex(({ from, to }) => from <= at && at <= to),
  );
}

const isInRound = (at: number): boolean => {
  const subject = runSubject(at);
  const leaf = subject?.path.filter((move) => move.at <= cursor.value).at(-1)?.leaf;
  return leaf?.startsWith('RUN.active.ToolRound') ?? false;
};

export const subject = computed(() => crumbs.value.find(({ key }) => key === selectedKey.value));

export const activeStatesOf = (one: Subject): ActiveStates | undefined => {
  const walker = walkerOf(one.chart);
  return walker && activeStatesAt(walker, one.path, cursor.value, now.value);
};
export const activeStates = computed(() => subject.value && activeStatesOf(subject.value));

const keyOf = (chart: string, id: string | undefined): string =>
  (id !== undefined && walkerOf(chart)?.tree.states.get(id)?.key) || '';

/** Returns the name of the state: the phase of a run, the innermost state of others. */
export function stateWord(one: Subject): string {
  const walker = walkerOf(one.chart);
  const { leaf, leaves = [] } = one.path.filter((move) => move.at <= cursor.value).at(-1) ?? {};
  if (!walker || leaf === undefined) return '';
  if (leaves.length > 1) return leaves.map((id) => keyOf(one.chart, id)).join(', ');
  const parts = leaf.split('.');
  if (one.chart === 'RUN') {
    if (leaf === 'RUN.Done') return outcomeOf(one)?.key ?? 'Done';
    return parts[1] === 'active' ? (parts[2] ?? '') : (parts[1] ?? '');
  }
  return one.chart === 'CONVERSATION' ? (parts[1] ?? '') : keyOf(one.chart, leaf);
}

/**
 * An actor in a state of its chart runs, whatever it waits for, until it has ended. Only CONVERSATION waits for a person.
 */
export const activeMark = (one: Subject): MarkName => {
  const { chart, mark } = one;
  const isKept = chart === 'CONVERSATION' || mark === 'cancelled' || mark === 'failed' || mark === 'idle';
  return isKept || hasEndedInApp(one) ? mark : 'running';
};

const OUTCOMES: Readonly<Record<string, MarkName>> = {
  NaturalEnd: 'done',
  Succeeded: 'done',
  Replied: 'done',
  Collected: 'done',
  Suspended: 'waiting',
  Cancelled: 'cancelled',
  Blocked: 'cancelled',
  Stopped: 'cancelled',
  Terminate: 'failed',
  Error: 'failed',
  Failed: 'failed',
};
const OWN = new Set(['RUN', 'TOOL_CALL', 'LLM_CALL', 'TOOL_ROUND']);

const hasEndedInApp = ({ chart, actor }: Subject): boolean =>
  !OWN.has(chart) && chart !== 'CONVERSATION' && actor !== undefined && actor.status !== 'active';

/** Returns the state that determines the outcome, once the chart has ended. In the chart of an app it is the last state. */
export function outcomeOf(one: Subject): { id: string; key: string; mark: MarkName } | undefined {
  const walker = walkerOf(one.chart);
  const moves = one.path.filter((move) => move.at <= cursor.value);
  const leaf = moves.at(-1)?.leaf;
  const state = leaf === undefined ? undefined : walker?.tree.states.get(leaf);
  if (!walker || leaf === undefined || state?.type !== 'final') return undefined;
  if (hasEndedInApp(one) && (moves.at(-1)?.leaves?.length ?? 1) === 1)
    return { id: leaf, key: state.key, mark: one.mark };
  if (!OWN.has(one.chart)) return undefined;
  const passed = [...moves.flatMap(({ legs }) => legs.map(({ target }) => target)), leaf];
  for (const id of passed.reverse()) {
    const key = walker.tree.states.get(id)?.key ?? '';
    const mark = OUTCOMES[key];
    if (mark) return { id, key, mark };
  }
  return undefined;
}
