/**
 * The bars of the time line and their lanes: model, tools, you, and one lane for each sub-agent, whose own lanes unfold
 * below it. Invariant: every bar has its place, by time, among the entries of the shown log.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { oneLine, telling } from '../../src/words/formats.ts';
import { argsAt, decidedWords, editedAt } from './callStates.ts';
import { markOf } from './entryNotes.ts';
import { type CallFacts, type LogFacts, type RunFacts, turnStart } from './logFacts.ts';
import { placeOf } from './timeAxis.ts';

/** `mark` is a moment without duration. */
export type BarKind = 'model' | 'tool' | 'person' | 'agent' | 'mark';

export interface Bar {
  readonly kind: BarKind;
  /** The places of its first and last entry. `to` is undefined while it continues. */
  readonly from: number;
  readonly to: number | undefined;
  readonly label: string;
  /** Its outcome. */
  readonly note?: string;
  readonly isDenied?: boolean;
}

export interface Lane {
  readonly key: string;
  readonly name: string;
  readonly bars: readonly Bar[];
  /** The number of sub-agents above it. */
  readonly depth: number;
  /** For a sub-agent's lane: its conversation, and whether its lanes are unfolded. Undefined if its log is unknown. */
  readonly agent?: { readonly id: string; readonly isOpen: boolean };
}

export interface LaneLog {
  readonly entries: readonly LogEntry[];
  readonly facts: LogFacts;
}

export interface LaneOptions {
  readonly now: number;
  /** The log of a sub-agent's conversation. */
  logOf(child: string): LaneLog | undefined;
  isOpen(child: string): boolean;
}

const ALONE: LaneOptions = { now: 0, logOf: () => undefined, isOpen: () => false };
/** Sub-agents can be nested without limit, so the display stops at this depth. */
const DEPTH_MAX = 5;

export function lanesOf(entries: readonly LogEntry[], facts: LogFacts, options = ALONE): Lane[] {
  return lanesBelow({ entries, facts }, (index) => index, { options, depth: 0, key: '', root: entries });
}

interface Place {
  readonly options: LaneOptions;
  readonly depth: number;
  readonly key: string;
  /** The log of the axis. */
  readonly root: readonly LogEntry[];
}

const placedBar = (bar: Bar, place: (index: number) => number): Bar => ({
  ...bar,
  from: place(bar.from),
  to: bar.to === undefined ? undefined : place(bar.to),
});

function lanesBelow(log: LaneLog, place: (index: number) => number, at: Place): Lane[] {
  const { depth, key } = at;
  const own = ownLanes(log).map(({ name, bars }, index): Lane => {
    return { key: `${key}${index}`, name, bars: bars.map((bar) => placedBar(bar, place)), depth };
  });
  return depth >= DEPTH_MAX ? own : [...own, ...agentLanes(log, place, at)];
}

/** Returns one lane for each sub-agent, in the order of their starts. */
function agentLanes({ facts }: LaneLog, place: (index: number) => number, at: Place): Lane[] {
  const { options, depth, key, root } = at;
  return [...facts.calls.values()].flatMap(({ children }) =>
    children.flatMap(({ id, name, task, from, to }): Lane[] => {
      const log = options.logOf(id);
      if (!log) {
        const bar = placedBar({ kind: 'agent', from, to, label: oneLine(task, 60) }, place);
        return [{ key: `${key}${id}`, name, bars: [bar], depth }];
      }
      const placed = (index: number): number => placeOf(root, log.entries[index]?.at ?? 0, options.now);
      const isOpen = options.isOpen(id);
      const lane: Lane = { key: `${key}${id}`, name, bars: runsOf(log, placed), depth, agent: { id, isOpen } };
      const below = isOpen ? lanesBelow(log, placed, { ...at, depth: depth + 1, key: `${key}${id} ` }) : [];
      return [lane, ...below];
    }),
  );
}

/** Returns a sub-agent's runs, and its waits for a person. */
function runsOf({ facts }: LaneLog, place: (index: number) => number): Bar[] {
  const runs = facts.runs.map(
    ({ from, stop, words }): Bar => ({ kind: 'agent', from, to: stop?.at, label: oneLine(words, 60) }),
  );
  const waits = [...facts.calls.values()].flatMap(waitsOf);
  return [...runs, ...waits].map((bar) => placedBar(bar, place));
}

/** Returns the lanes of one log: model, as few tool lanes as parallel calls need, and you. */
function ownLanes({ entries, facts }: LaneLog): { name: string; bars: readonly Bar[] }[] {
  const model = facts.runs.flatMap((run) => modelBars(run, entries, run === facts.runs.at(-1)));
  const tools: PackedLane[] = [];
  const you: PackedLane[] = [];
  for (const call of facts.calls.values()) {
    for (const bar of workOf(call, facts)) pack(tools, bar);
    for (const bar of waitsOf(call)) pack(you, bar);
  }
  const toolLanes = tools.length === 0 ? [[]] : tools.map(({ bars }) => bars);
  const yourLanes = you.length === 0 ? [[]] : you.map(({ bars }) => bars);
  return [
    { name: 'model', bars: model },
    ...toolLanes.map((bars, index) => ({ name: index === 0 ? 'tools' : '', bars })),
    ...yourLanes.map((bars, index) => ({ name: index === 0 ? 'you' : '', bars })),
  ];
}

/** Returns the turns of a run with each attempt, and the marks between them. */
function modelBars(run: RunFacts, entries: readonly LogEntry[], isLast: boolean): Bar[] {
  const bars: Bar[] = [];
  const turn = (number: number, from: number, to: number | undefined): void => {
    let begin = from;
    let retryAt = 0;
    for (let at = from + 1; at < (to ?? run.to + 1); at++) {
      const entry = entries[at];
      if (entry?.type !== 'model-retry' || entry.runId !== run.runId) continue;
      bars.push({ kind: 'model', from: begin, to: at, label: `turn ${number}`, note: 'failed', isDenied: true });
      begin = at;
      retryAt = entry.at + entry.waitMs;
    }
    const end = entries[to ?? -1];
    // The run ended in the wait before the next attempt.
    if (end?.type === 'run-stop' && end.at < retryAt) return;
    const again = begin === from ? '' : ' again';
    bars.push({ kind: 'model', from: begin, to, label: `turn ${number}${again}` });
  };
  for (const { turn: number, from, reply } of run.turns) turn(number, from, reply);
  const { stop } = run;
  const boundary = stop === undefined ? run.to : lastBoundary(entries, run.from, stop.at);
  // If a run failed or was cancelled during a model call, that call ends with the stop.
  const isCut = stop !== undefined && stop.state !== 'waiting';
  if (isCut && wasModelCalled(entries, boundary, run)) turn(run.turns.length + 1, boundary, stop.at);
  else if (!stop && isLast && openTurn(entries, lastBoundary(entries, run.from, run.to + 1)))
    turn(run.turns.length + 1, turnStart(run), undefined);
  for (let at = run.from; at <= run.to; at++) {
    const entry = entries[at];
    const mark = entry && markOf(entry, at);
    if (mark) bars.push({ kind: 'mark', from: at, to: at, label: mark.label });
  }
  return bars;
}

/** Causes of a stop that can come from a model call. */
const OF_MODEL = new Set(['model', 'timeout', 'max_tokens', 'cancelled', 'interrupted', 'aborted', '']);

/**
 * Returns true if the model was called after a boundary, as far as the log shows: it retried, or its run ended later
 * because of it.
 */
function wasModelCalled(entries: readonly LogEntry[], boundary: number, { stop, to }: RunFacts): boolean {
  if (!openTurn(entries, boundary) || !stop) return false;
  const after = entries.slice(boundary + 1, stop.at);
  if (after.some(({ type }) => type === 'model-retry' || type === 'agent-output')) return true;
  const end = entries[Math.min(to, stop.at)];
  const isByModel = stop.cause === 'model' || stop.cause === 'timeout';
  return OF_MODEL.has(stop.cause) && (isByModel || (end?.at ?? 0) > (entries[boundary]?.at ?? 0));
}

/** Returns the last boundary or reply before a stop. */
function lastBoundary(entries: readonly LogEntry[], from: number, stop: number): number {
  let at = stop - 1;
  while (at > from && entries[at]?.type !== 'checkpoint' && entries[at]?.type !== 'model-reply') at -= 1;
  return at;
}

/** Returns true if the model is being called: the run's last entry is a boundary before a model call. */
function openTurn(entries: readonly LogEntry[], last: number): boolean {
  const entry = entries[last];
  return (
    entry?.type === 'checkpoint' && entry.boundary !== 'AssistantTurnCommitted' && entry.boundary !== 'RunFinished'
  );
}

function workOf(call: CallFacts, { runs }: LogFacts): Bar[] {
  return call.starts.map(({ at }, index): Bar => {
    const label = `${call.name} ${telling(argsAt(call, at), 40)}`.trim();
    const note = editedAt(call, at);
    const question = call.suspensions.find((suspension) => suspension.at > at);
    const next = call.starts[index + 1]?.at;
    const stop = runs.find(({ from, to, stop }) => stop && from <= at && at <= to)?.stop?.at;
    const to = question?.at ?? next ?? call.result?.at ?? stop;
    return { kind: 'tool', from: at, to, label, ...(note && { note }) };
  });
}

function waitsOf(call: CallFacts): Bar[] {
  return call.suspensions.map((suspension): Bar => {
    const { at, decision, number } = suspension;
    const ended = decision?.at ?? call.suspensions.find((one) => one.number > number)?.at ?? call.result?.at;
    const action = decision?.decision.action;
    const note = decidedWords(suspension);
    const label = ended === undefined ? `${call.name} waits for you` : `${call.name} waits`;
    return {
      kind: 'person',
      from: at,
      to: ended,
      label,
      ...(note && { note }),
      ...(action === 'deny' && { isDenied: true }),
    };
  });
}

interface PackedLane {
  readonly bars: Bar[];
  /** The end of the last bar. A bar that begins at or after it does not overlap. */
  end: number;
}

/** A bar that continues ends after everything else. */
const endOf = ({ to = Number.POSITIVE_INFINITY }: Bar): number => to;

/** Adds a bar to the first lane without an overlap. */
function pack(lanes: PackedLane[], bar: Bar): void {
  const end = endOf(bar);
  const free = lanes.find(
    (lane) => lane.end <= bar.from || lane.bars.every((other) => endOf(other) <= bar.from || end <= other.from),
  );
  if (!free) return void lanes.push({ bars: [bar], end });
  free.bars.push(bar);
  free.end = Math.max(free.end, end);
}
