/**
 * The request cycles as rows of a document. Invariant: the projector defines cycles, steps and rounds. The log adds
 * times and costs.
 */

import type { LogEntry } from '../../machines/vocabulary.ts';
import { createProjector, type Projector } from '../../src/projector/projector.ts';
import type { ConversationView, InferenceRound, RequestCycle } from '../../src/projector/view.ts';
import { shownText } from '../../src/words/formats.ts';
import { type CallState, callAt } from './callStates.ts';
import { notesOf, type PlacedNote } from './entryNotes.ts';
import type { CallFacts, LogFacts, RunFacts } from './logFacts.ts';
import type { Observed } from './observedActors.ts';

export type StepRow =
  | { readonly kind: 'text' | 'reasoning'; readonly key: string; readonly text: string; readonly flag?: string }
  | {
      readonly kind: 'call';
      readonly key: string;
      readonly call: CallFacts;
      readonly state: CallState;
      readonly ms: number;
    }
  | { readonly kind: 'note'; readonly key: string; readonly note: PlacedNote }
  | { readonly kind: 'steer'; readonly key: string; readonly text: string }
  | {
      readonly kind: 'round';
      readonly key: string;
      readonly number: number;
      readonly input: number;
      readonly output: number;
      /** Null if its price is unknown. */
      readonly cost: number | null;
    }
  | {
      readonly kind: 'stop';
      readonly key: string;
      readonly state: 'completed' | 'failed' | 'cancelled';
      readonly cause: string;
      /** The error of a failed run, or empty if it is unknown. */
      readonly why: string;
      readonly ms: number;
    };

export interface CycleRows {
  readonly id: string;
  readonly number: number;
  readonly request: string;
  readonly rows: readonly StepRow[];
  readonly isOpen: boolean;
  readonly rounds: number;
}

interface Folded {
  readonly first: LogEntry | undefined;
  readonly projector: Projector;
  upTo: number;
}
let folded: Folded | undefined;

/** Returns the view of `entries[0..index]`. A later index folds only the new entries; an earlier one folds again. */
export function viewAt(entries: readonly LogEntry[], index: number): ConversationView {
  const first = entries[0];
  if (!folded || folded.first !== first || folded.upTo > index)
    folded = { first, projector: createProjector(), upTo: -1 };
  for (; folded.upTo < index; folded.upTo++) folded.projector.push(entries[folded.upTo + 1]);
  return folded.projector.view();
}

export interface Moment {
  readonly entries: readonly LogEntry[];
  readonly facts: LogFacts;
  readonly index: number;
  /** The log time of the moment. It advances while something is in progress. */
  readonly now: number;
  /** The observations of its actors while they ran. */
  readonly observed?: Observed;
}

/** A message that waits in the queue. */
export interface Queued {
  readonly id: string;
  readonly text: string;
  readonly kind: 'steer' | 'followUp';
}

/** Returns the queued messages in order. */
export const queuedAt = ({ entries, index }: Moment): Queued[] =>
  viewAt(entries, index).queued.map(({ messageId, kind, content }) => ({
    id: messageId,
    text: shownText(content),
    kind,
  }));

/** Returns how many of the latest cycles are shown: whole cycles within the row limit, and always the last one. */
export function latestShown(cycles: readonly CycleRows[], limits: { cycles: number; rows: number }): number {
  let shown = 0;
  let rows = 0;
  for (const cycle of cycles.slice(-limits.cycles).reverse()) {
    rows += cycle.rows.length;
    if (shown > 0 && rows > limits.rows) break;
    shown += 1;
  }
  return shown;
}

/** Returns the rows of the last cycles, and only the headings of those before. */
export function cyclesAt(moment: Moment, rowsMax = Number.POSITIVE_INFINITY): CycleRows[] {
  const { entries, index } = moment;
  const replies: Extract<LogEntry, { type: 'model-reply' }>[] = [];
  for (let at = 0; at <= index; at++) {
    const entry = entries[at];
    if (entry?.type === 'model-reply') replies.push(entry);
  }
  let reply = 0;
  const { cycles } = viewAt(entries, index);
  return cycles.map((cycle, place): CycleRows => {
    const costs = cycle.rounds.map(({ usage }) => {
      if (!usage) return undefined;
      const entry = replies[reply++];
      return { input: usage.inputTokens, output: usage.outputTokens, cost: entry?.costUsd ?? null };
    });
    const rows = place < cycles.length - rowsMax ? [] : rowsOf(cycle, costs, moment, place + 1);
    const request = shownText(cycle.root.content);
    return { id: cycle.id, number: place + 1, request, rows, isOpen: cycle.stop === null, rounds: costs.length };
  });
}

type Cost = { input: number; output: number; cost: number | null } | undefined;

function rowsOf(cycle: RequestCycle, costs: readonly Cost[], moment: Moment, number: number): StepRow[] {
  const rows: StepRow[] = [];
  const span = new CycleSpan(moment, number);
  const addNotesBefore = (to: number): void => {
    for (const note of span.takeNotesBefore(to)) rows.push({ kind: 'note', key: `note ${note.at}`, note });
  };
  const remaining = cycle.rounds.map((round) => itemsOf(round));
  let round = 0;
  const markUsed = (what: 'texts' | 'calls'): void => {
    const at = remaining[round];
    if (at) at[what] -= 1;
    while (round < remaining.length && (remaining[round]?.texts ?? 0) <= 0 && (remaining[round]?.calls ?? 0) <= 0) {
      const cost = costs[round];
      if (cost) rows.push({ kind: 'round', key: `round ${round}`, number: round + 1, ...cost });
      round += 1;
    }
  };
  for (const [place, step] of cycle.steps.entries()) {
    if (step.type !== 'ai-block') {
      addNotesBefore(span.steerIndex(step.messageId));
      if (step.type === 'steer')
        rows.push({ kind: 'steer', key: `steer ${step.messageId}`, text: shownText(step.content) });
      continue;
    }
    if (step.text) {
      const { text, kind, flag } = step.text;
      addNotesBefore(span.nextTextIndex());
      const look = kind === 'reasoning' ? 'reasoning' : 'text';
      rows.push({ kind: look, key: `text ${place}`, text, ...(flag !== undefined && { flag }) });
      markUsed('texts');
    }
    for (const { callId } of step.groups.flatMap(({ calls }) => calls)) {
      const call = moment.facts.calls.get(callId);
      if (call) addNotesBefore(call.requestedAt);
      if (call)
        rows.push({ kind: 'call', key: callId, call, state: callAt(call, moment.index), ms: callMs(call, moment) });
      markUsed('calls');
    }
  }
  addNotesBefore(Number.POSITIVE_INFINITY);
  const { stop } = cycle;
  if (stop) {
    const state = stop.reason === 'completed' ? 'completed' : stop.reason === 'interrupted' ? 'cancelled' : 'failed';
    const run = moment.facts.runs.filter((one) => one.number === number && one.from <= moment.index).at(-1);
    const why = state === 'failed' && run ? failureOf(run, moment) : '';
    rows.push({ kind: 'stop', key: 'stop', state, cause: stop.cause ?? '', why, ms: cycleMs(number, moment) });
  }
  return rows;
}

/** The entries of one cycle, and the positions of its rows among them. */
class CycleSpan {
  readonly #moment: Moment;
  readonly #from: number;
  readonly #to: number;
  readonly #notes: PlacedNote[];
  #text = -1;

  constructor(moment: Moment, number: number) {
    const { entries, facts, index } = moment;
    const first = facts.runs.find((run) => run.number === number)?.from ?? 0;
    const next = facts.runs.find((run) => run.number > number)?.from ?? Number.POSITIVE_INFINITY;
    this.#moment = moment;
    // Entries before the first run belong to the first cycle.
    this.#from = number === 1 ? 0 : first;
    this.#to = Math.min(index, next - 1);
    this.#notes = notesOf(entries, this.#from, this.#to);
  }

  /** Removes and returns the notes before an entry. */
  takeNotesBefore(index: number): PlacedNote[] {
    const count = this.#notes.filter(({ at }) => at < index).length;
    return this.#notes.splice(0, count);
  }

  steerIndex(messageId: string): number {
    return this.#find(this.#from, (entry) => entry.type === 'user-message' && entry.messageId === messageId);
  }

  nextTextIndex(): number {
    const isText = (entry: LogEntry): boolean => entry.type === 'agent-output' && entry.item.type !== 'tool-call';
    this.#text = this.#find(Math.max(this.#from, this.#text + 1), isText);
    return this.#text;
  }

  #find(from: number, fits: (entry: LogEntry) => boolean): number {
    for (let at = from; at <= this.#to; at++) {
      const entry = this.#moment.entries[at];
      if (entry && fits(entry)) return at;
    }
    return this.#from;
  }
}

/** Returns the error with which the run's actor ended, else the last matching entry after the last reply. */
function failureOf(run: RunFacts, { entries, index, observed }: Moment): string {
  for (const { chart, endedAt = -1, error } of observed?.actors.values() ?? []) {
    if (chart === 'RUN' && error !== undefined && endedAt >= run.from && endedAt <= run.to) return error;
  }
  const isOfTool = run.stop?.cause === 'tool';
  for (let at = Math.min(run.to, index); at >= run.from; at--) {
    const entry = entries[at];
    if (entry?.type === 'model-reply') return '';
    if (entry?.type === 'model-retry') return entry.reason;
    if (entry?.type === 'notice' && entry.code !== 'tool_retry') return entry.text;
    if (entry?.type === 'tool-result' && isOfTool && entry.outcome === 'failed') return shownText(entry.content);
    if (entry?.type === 'diagnostic') {
      const { code, detail } = entry;
      return detail === undefined ? code : `${code}: ${typeof detail === 'string' ? detail : JSON.stringify(detail)}`;
    }
  }
  return '';
}

const itemsOf = ({ output }: InferenceRound): { texts: number; calls: number } => ({
  texts: output.texts.length,
  calls: output.calls.length,
});

const timeAt = ({ entries }: Moment, index: number): number => entries[index]?.at ?? 0;

/** Returns how long the call has run, or how long it has waited. */
export function callMs(call: CallFacts, moment: Moment): number {
  const { index, now } = moment;
  const start = call.starts.filter(({ at }) => at <= index).at(-1);
  const suspended = call.suspensions.filter(({ at }) => at <= index).at(-1);
  const ended = call.result && call.result.at <= index ? timeAt(moment, call.result.at) : now;
  if (suspended && (!start || start.at < suspended.at)) {
    const decided =
      suspended.decision && suspended.decision.at <= index ? timeAt(moment, suspended.decision.at) : ended;
    return decided - timeAt(moment, suspended.at);
  }
  return start ? ended - timeAt(moment, start.at) : 0;
}

export const runMs = (run: RunFacts, moment: Moment): number => {
  const isOver = run.stop && run.stop.at <= moment.index;
  // At this moment the entries after its stop may not exist yet.
  const end = Math.min(run.to, moment.index);
  return (isOver ? timeAt(moment, end) : moment.now) - timeAt(moment, run.from);
};

/** Returns the time of work, without waits for a person. */
const cycleMs = (number: number, moment: Moment): number =>
  moment.facts.runs
    .filter((run) => run.number === number && run.from <= moment.index)
    .reduce((sum, run) => sum + runMs(run, moment), 0);
