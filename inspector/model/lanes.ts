/**
 * The bars of the time line and their lanes: model, tools, you, and one for each sub-agent, whose own lanes unfold below it.
 * Rule: whatever a bar comes from, it stands among the entries of the log that is shown, by time.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { type CallFacts, type LogFacts, turnStart } from './facts.ts';
import { placeOf } from './timeAxis.ts';
import { oneLine, telling } from './words.ts';

export type BarKind = 'model' | 'tool' | 'person' | 'agent';

export interface Bar {
  readonly kind: BarKind;
  /** Places of the entries it begins behind and ends at; nothing while it goes on. */
  readonly from: number;
  readonly to: number | undefined;
  readonly label: string;
  /** What became of it. */
  readonly note?: string;
  readonly isDenied?: boolean;
}

export interface Lane {
  readonly key: string;
  readonly name: string;
  readonly bars: readonly Bar[];
  /** How many sub-agents it is below. */
  readonly depth: number;
  /** Of a sub-agent: its conversation, and whether its own lanes follow; nothing where its log is not known. */
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
/** Sub-agents of sub-agents may go on for ever. */
const DEPTH_MAX = 5;

export function lanesOf(entries: readonly LogEntry[], facts: LogFacts, options = ALONE): Lane[] {
  return lanesBelow({ entries, facts }, (index) => index, { options, depth: 0, key: '', root: entries });
}

interface Place {
  readonly options: LaneOptions;
  readonly depth: number;
  readonly key: string;
  /** What the axis shows. */
  readonly root: readonly LogEntry[];
}

const moved = (bar: Bar, place: (index: number) => number): Bar => ({
  ...bar,
  from: place(bar.from),
  to: bar.to === undefined ? undefined : place(bar.to),
});

function lanesBelow(log: LaneLog, place: (index: number) => number, at: Place): Lane[] {
  const { depth, key } = at;
  const own = ownLanes(log).map(({ name, bars }, index): Lane => {
    return { key: `${key}${index}`, name, bars: bars.map((bar) => moved(bar, place)), depth };
  });
  return depth >= DEPTH_MAX ? own : [...own, ...agentLanes(log, place, at)];
}

/** One lane for each sub-agent, in the order in which they began. */
function agentLanes({ facts }: LaneLog, place: (index: number) => number, at: Place): Lane[] {
  const { options, depth, key, root } = at;
  return [...facts.calls.values()].flatMap(({ children }) =>
    children.flatMap(({ id, name, task, from, to }): Lane[] => {
      const log = options.logOf(id);
      if (!log) {
        const bar = moved({ kind: 'agent', from, to, label: oneLine(task, 60) }, place);
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

/** A sub-agent's runs, and where it waits for a person in between. */
function runsOf({ facts }: LaneLog, place: (index: number) => number): Bar[] {
  const runs = facts.runs.map(
    ({ from, stop, words }): Bar => ({ kind: 'agent', from, to: stop?.at, label: oneLine(words, 60) }),
  );
  const waits = [...facts.calls.values()].flatMap(waitsOf);
  return [...runs, ...waits].map((bar) => moved(bar, place));
}

/** Of one log: model, tools in as few lanes as run at once, you. */
function ownLanes({ entries, facts }: LaneLog): { name: string; bars: readonly Bar[] }[] {
  const model: Bar[] = [];
  for (const run of facts.runs) {
    for (const { turn, from, reply } of run.turns)
      model.push({ kind: 'model', from, to: reply, label: `turn ${turn}` });
    const { stop } = run;
    const isLast = run === facts.runs.at(-1);
    const asked = stop === undefined ? run.to : lastAsked(entries, run.from, stop.at);
    // One that failed or was cancelled while the model was asked ends with its stop.
    const isCut = stop !== undefined && stop.state !== 'waiting';
    if ((isCut || (!stop && isLast)) && openTurn(entries, asked)) {
      const from = isCut ? asked : turnStart(run);
      model.push({ kind: 'model', from, to: stop?.at, label: `turn ${run.turns.length + 1}` });
    }
  }
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

/** Before a stop: the last boundary, or reply, of its run. */
function lastAsked(entries: readonly LogEntry[], from: number, stop: number): number {
  let at = stop - 1;
  while (at > from && entries[at]?.type !== 'checkpoint' && entries[at]?.type !== 'model-reply') at -= 1;
  return at;
}

/** The model is being asked: the last thing that the run wrote is a boundary behind which it is. */
function openTurn(entries: readonly LogEntry[], last: number): boolean {
  const entry = entries[last];
  return (
    entry?.type === 'checkpoint' && entry.boundary !== 'AssistantTurnCommitted' && entry.boundary !== 'RunFinished'
  );
}

function workOf(call: CallFacts, { runs }: LogFacts): Bar[] {
  const label = `${call.name} ${telling(call.args, 40)}`.trim();
  return call.starts.map(({ at }, index): Bar => {
    const asked = call.suspensions.find((suspension) => suspension.at > at);
    const next = call.starts[index + 1]?.at;
    const stop = runs.find(({ from, to, stop }) => stop && from <= at && at <= to)?.stop?.at;
    const to = asked?.at ?? next ?? call.result?.at ?? stop;
    return { kind: 'tool', from: at, to, label };
  });
}

function waitsOf(call: CallFacts): Bar[] {
  return call.suspensions.map(({ at, decision, number }): Bar => {
    const ended = decision?.at ?? call.suspensions.find((one) => one.number > number)?.at ?? call.result?.at;
    const { action, by } = decision?.decision ?? {};
    const done = action && { approve: 'allowed', deny: 'denied', edit: 'edited', answer: 'answered' }[action];
    const note = done && (by === undefined ? done : `${done} by ${by}`);
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
  /** Where the last of them ends: what begins there or behind it overlaps none. */
  end: number;
}

/** What goes on ends behind all there is. */
const endOf = ({ to = Number.POSITIVE_INFINITY }: Bar): number => to;

/** Into the first lane in which nothing runs at the same time. */
function pack(lanes: PackedLane[], bar: Bar): void {
  const end = endOf(bar);
  const free = lanes.find(
    (lane) => lane.end <= bar.from || lane.bars.every((other) => endOf(other) <= bar.from || end <= other.from),
  );
  if (!free) return void lanes.push({ bars: [bar], end });
  free.bars.push(bar);
  free.end = Math.max(free.end, end);
}
