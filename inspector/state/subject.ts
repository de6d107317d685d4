/**
 * The actor whose chart is shown, those around it, and where its chart stands. Rule: what is observed counts while the page
 * follows; at any other entry the log alone says.
 */
import { computed } from '@preact/signals';
import {
  callPath,
  conversationPath,
  type Path,
  roundPath,
  runPath,
  type Standing,
  standingAt,
} from '../model/chartPath.ts';
import { callAt, runStateAt } from '../model/facts.ts';
import type { ActorView } from '../model/observed.ts';
import { type MarkName, markOfCall, markOfRun } from '../model/tree.ts';
import { charts } from './layouts.ts';
import { chosen, cursor, entries, facts, isPast, lastRun, now, open, stateAt } from './store.ts';

export interface Subject {
  /** Key of its row of the tree. */
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

/** The newest actor of a chart in the open conversation, while the page follows. */
function liveActor(chart: string, name?: string): ActorView | undefined {
  if (isPast.value) return undefined;
  const actors = [...(open.value?.observed?.actors.values() ?? [])];
  const found = actors.filter((actor) => actor.chart === chart && (name === undefined || actor.name === name));
  return found.at(-1);
}

function withActor(subject: Subject, actor: ActorView | undefined): Subject {
  if (!actor || actor.path.length === 0) return subject;
  const path = actor.path.map((move) => ({ ...move, at: Math.min(move.at, cursor.value) }));
  // Who came late has not seen how it came here: that the log tells.
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

/** XState numbers an actor that nobody named: its machine's name tells more. */
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

/** The run is in its model call now: no log tells. */
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
export const selectedKey = computed(() => chosen.value ?? defaultKey.value);

const lastRunAt = computed(() => (lastRun.value ? facts.value.runs.indexOf(lastRun.value) : -1));

/** From the outermost to the selected one; below it what it runs at the moment. */
export const crumbs = computed((): Subject[] => {
  const key = selectedKey.value;
  if (key === undefined) return [];
  const subject = subjectOf(key);
  if (!subject) return [];
  if (key.startsWith('actor')) return actorCrumbs(subject);
  const run = key === 'conversation' ? lastRunAt.value : Number(key.split(' ')[1]);
  if (run < 0) return [subject];
  const runAt = key.startsWith('call') ? runOfCall(key.slice(5)) : run;
  const found: (Subject | undefined)[] = [conversationSubject(), runSubject(runAt)];
  if (key.startsWith('round') || key.startsWith('call') || isInRound(runAt)) found.push(roundSubject(runAt));
  if (key.startsWith('call') || key.startsWith('model')) found.push(subject);
  return found.filter((one) => one !== undefined);
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
  const at = call?.starts.filter((start) => start.at <= cursor.value).at(-1)?.at ?? call?.said ?? 0;
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

export const standingOf = (one: Subject): Standing | undefined => {
  const walker = walkerOf(one.chart);
  return walker && standingAt(walker, one.path, cursor.value, now.value);
};
export const standing = computed(() => subject.value && standingOf(subject.value));

const keyOf = (chart: string, id: string | undefined): string =>
  (id !== undefined && walkerOf(chart)?.tree.states.get(id)?.key) || '';

/** The state one names: of a run the phase, of others the innermost. */
export function stateWord(one: Subject): string {
  const walker = walkerOf(one.chart);
  const leaf = one.path.filter((move) => move.at <= cursor.value).at(-1)?.leaf;
  if (!walker || leaf === undefined) return '';
  const parts = leaf.split('.');
  if (one.chart === 'RUN') {
    if (leaf === 'RUN.Done') return outcomeOf(one)?.key ?? 'Done';
    return parts[1] === 'active' ? (parts[2] ?? '') : (parts[1] ?? '');
  }
  return one.chart === 'CONVERSATION' ? (parts[1] ?? '') : keyOf(one.chart, leaf);
}

/** An actor that is in a state of its chart runs, whatever it waits for; CONVERSATION alone waits for a person. */
export const activeMark = ({ chart, mark }: Subject): MarkName =>
  chart === 'CONVERSATION' || mark === 'cancelled' || mark === 'failed' || mark === 'idle' ? mark : 'running';

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

/** The state that says how it ended, once its chart is at its end. */
export function outcomeOf(one: Subject): { id: string; key: string; mark: MarkName } | undefined {
  const walker = walkerOf(one.chart);
  const moves = one.path.filter((move) => move.at <= cursor.value);
  const leaf = moves.at(-1)?.leaf;
  if (!walker || leaf === undefined || !OWN.has(one.chart)) return undefined;
  if (walker.tree.states.get(leaf)?.type !== 'final') return undefined;
  const passed = [...moves.flatMap(({ legs }) => legs.map(({ target }) => target)), leaf];
  for (const id of passed.reverse()) {
    const key = walker.tree.states.get(id)?.key ?? '';
    const mark = OUTCOMES[key];
    if (mark) return { id, key, mark };
  }
  return undefined;
}
