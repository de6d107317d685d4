/**
 * Where each entry stands on the time line, and the bars between them. Rule: one step is always visible, and a long wait
 * costs no more than a fifth of the width; in between it goes by log time.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { type CallFacts, type LogFacts, turnStart } from './facts.ts';
import { telling } from './words.ts';

const LEAST = 7;
const MOST_PER_MS = 0.62;

export interface Axis {
  /** By index from `from`: pixels from the left. */
  readonly x: readonly number[];
  readonly from: number;
  readonly to: number;
  /** Pixels behind the last entry for the time that has passed since. */
  readonly now: number;
  readonly gaps: readonly { readonly x: number; readonly ms: number; readonly isClipped: boolean }[];
  /** Not all entries fit: a window around the head. */
  readonly isWindow: boolean;
}

const LONG_WORDS = 46;

/** `tail`: milliseconds since the last entry, in which something goes on. */
export function axisOf(entries: readonly LogEntry[], width: number, head: number, tail: number): Axis {
  const fits = Math.max(2, Math.floor(width / LEAST) - 12);
  const isWindow = entries.length > fits;
  const from = isWindow ? Math.max(0, Math.min(head - Math.floor(fits / 2), entries.length - fits)) : 0;
  const to = Math.min(entries.length, from + fits) - 1;
  const gaps: number[] = [];
  for (let index = from + 1; index <= to; index++) {
    gaps.push(Math.max(0, (entries[index]?.at ?? 0) - (entries[index - 1]?.at ?? 0)));
  }
  const isLast = to === entries.length - 1;
  if (isLast && tail > 0) gaps.push(tail);
  const most = width / 5;
  const total = (perMs: number): number =>
    gaps.reduce((sum, gap) => sum + Math.max(LEAST, Math.min(most, gap * perMs)), 0);
  let perMs = MOST_PER_MS;
  for (let tries = 0; tries < 24 && total(perMs) > width - 24; tries++) perMs *= 0.8;
  const x: number[] = [0];
  const words: Axis['gaps'][number][] = [];
  let now = 0;
  for (const [index, gap] of gaps.entries()) {
    const pixels = Math.max(LEAST, Math.min(most, gap * perMs));
    const left = x[index] ?? 0;
    if (isLast && tail > 0 && index === gaps.length - 1) now = pixels;
    else {
      x.push(left + pixels);
      const isClipped = pixels >= most - 0.5 && gap * perMs > most;
      if (pixels >= LONG_WORDS) words.push({ x: left + pixels / 2, ms: gap, isClipped });
    }
  }
  return { x, from, to, now, gaps: words, isWindow };
}

export type BarKind = 'model' | 'tool' | 'person';

export interface Bar {
  readonly kind: BarKind;
  /** Indexes of the entries it begins behind and ends at; nothing while it goes on. */
  readonly from: number;
  readonly to: number | undefined;
  readonly label: string;
  /** What became of it. */
  readonly note?: string;
  readonly isDenied?: boolean;
}

export interface Lane {
  readonly name: string;
  readonly bars: readonly Bar[];
}

/** model, tools in as few lanes as run at once, you; a lane for each sub-agent. */
export function lanesOf(entries: readonly LogEntry[], facts: LogFacts): Lane[] {
  const last = entries.length - 1;
  const model: Bar[] = [];
  for (const run of facts.runs) {
    for (const { turn, from, reply } of run.turns)
      model.push({ kind: 'model', from, to: reply, label: `turn ${turn}` });
    const open = openTurn(entries, run.to);
    if (!run.stop && run === facts.runs.at(-1) && open) {
      model.push({ kind: 'model', from: turnStart(run), to: undefined, label: `turn ${run.turns.length + 1}` });
    }
  }
  const tools: Bar[][] = [];
  const you: Bar[][] = [];
  for (const call of facts.calls.values()) {
    for (const bar of workOf(call, facts)) pack(tools, bar, last);
    for (const bar of waitsOf(call)) pack(you, bar, last);
  }
  const toolLanes = tools.length === 0 ? [[]] : tools;
  const yourLanes = you.length === 0 ? [[]] : you;
  return [
    { name: 'model', bars: model },
    ...toolLanes.map((bars, index) => ({ name: index === 0 ? 'tools' : '', bars })),
    ...yourLanes.map((bars, index) => ({ name: index === 0 ? 'you' : '', bars })),
  ];
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

/** Into the first lane in which nothing runs at the same time. */
function pack(lanes: Bar[][], bar: Bar, last: number): void {
  const free = lanes.find((lane) =>
    lane.every((other) => (other.to ?? last) <= bar.from || (bar.to ?? last) <= other.from),
  );
  if (free) free.push(bar);
  else lanes.push([bar]);
}
