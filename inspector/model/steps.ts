/**
 * The request cycles as the rows of a document. Rule: cycles, steps and rounds are the projector's; the log adds when what
 * happened and what it cost.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { createProjector, type Projector } from '../../src/projector/projector.ts';
import type { ConversationView, InferenceRound, RequestCycle } from '../../src/projector/view.ts';
import { type CallFacts, type CallState, callAt, type LogFacts, type RunFacts, textOf } from './facts.ts';
import type { Observed } from './observed.ts';

export type StepRow =
  | { readonly kind: 'text' | 'reasoning'; readonly key: string; readonly text: string; readonly flag?: string }
  | {
      readonly kind: 'call';
      readonly key: string;
      readonly call: CallFacts;
      readonly state: CallState;
      readonly ms: number;
    }
  | { readonly kind: 'steer'; readonly key: string; readonly text: string }
  | {
      readonly kind: 'round';
      readonly key: string;
      readonly number: number;
      readonly input: number;
      readonly output: number;
      readonly cost: number;
    }
  | {
      readonly kind: 'stop';
      readonly key: string;
      readonly state: 'completed' | 'failed' | 'cancelled';
      readonly cause: string;
      /** The error of a run that failed; nothing where nobody knows it. */
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

/** The view of `entries[0..index]`. Going on costs what is new; going back folds anew. */
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
  /** Log time of the moment: it runs on while something goes on. */
  readonly now: number;
  /** What was seen of its actors while they lived. */
  readonly observed?: Observed;
}

/** A message that waits for its turn. */
export interface Queued {
  readonly id: string;
  readonly text: string;
  readonly kind: 'steer' | 'followUp';
}

/** Behind what goes on, in their order. */
export const queuedAt = ({ entries, index }: Moment): Queued[] =>
  viewAt(entries, index).queued.map(({ messageId, kind, content }) => ({ id: messageId, text: textOf(content), kind }));

/** How many of the latest cycles are shown: whole ones of so many rows together, and the last one however long it is. */
export function latestShown(cycles: readonly CycleRows[], most: { cycles: number; rows: number }): number {
  let shown = 0;
  let rows = 0;
  for (const cycle of cycles.slice(-most.cycles).reverse()) {
    rows += cycle.rows.length;
    if (shown > 0 && rows > most.rows) break;
    shown += 1;
  }
  return shown;
}

/** The rows of the last cycles; of those before them, the heads. */
export function cyclesAt(moment: Moment, most = Number.POSITIVE_INFINITY): CycleRows[] {
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
      return { input: usage.inputTokens, output: usage.outputTokens, cost: entry?.costUsd ?? 0 };
    });
    const rows = place < cycles.length - most ? [] : rowsOf(cycle, costs, moment, place + 1);
    const request = textOf(cycle.root.content);
    return { id: cycle.id, number: place + 1, request, rows, isOpen: cycle.stop === null, rounds: costs.length };
  });
}

type Cost = { input: number; output: number; cost: number } | undefined;

function rowsOf(cycle: RequestCycle, costs: readonly Cost[], moment: Moment, number: number): StepRow[] {
  const rows: StepRow[] = [];
  const left = cycle.rounds.map((round) => itemsOf(round));
  let round = 0;
  const used = (what: 'texts' | 'calls'): void => {
    const at = left[round];
    if (at) at[what] -= 1;
    while (round < left.length && (left[round]?.texts ?? 0) <= 0 && (left[round]?.calls ?? 0) <= 0) {
      const cost = costs[round];
      if (cost) rows.push({ kind: 'round', key: `round ${round}`, number: round + 1, ...cost });
      round += 1;
    }
  };
  for (const [place, step] of cycle.steps.entries()) {
    if (step.type !== 'ai-block') {
      if (step.type === 'steer')
        rows.push({ kind: 'steer', key: `steer ${step.messageId}`, text: textOf(step.content) });
      continue;
    }
    if (step.text) {
      const { text, kind, flag } = step.text;
      const look = kind === 'reasoning' ? 'reasoning' : 'text';
      rows.push({ kind: look, key: `text ${place}`, text, ...(flag !== undefined && { flag }) });
      used('texts');
    }
    for (const { callId } of step.groups.flatMap(({ calls }) => calls)) {
      const call = moment.facts.calls.get(callId);
      if (call)
        rows.push({ kind: 'call', key: callId, call, state: callAt(call, moment.index), ms: callMs(call, moment) });
      used('calls');
    }
  }
  const { stop } = cycle;
  if (stop) {
    const state = stop.reason === 'completed' ? 'completed' : stop.reason === 'interrupted' ? 'cancelled' : 'failed';
    const run = moment.facts.runs.filter((one) => one.number === number && one.from <= moment.index).at(-1);
    const why = state === 'failed' && run ? failureOf(run, moment) : '';
    rows.push({ kind: 'stop', key: 'stop', state, cause: stop.cause ?? '', why, ms: cycleMs(number, moment) });
  }
  return rows;
}

/** As the run itself ended with it; else what the log says behind the last reply of the model. */
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
    if (entry?.type === 'tool-result' && isOfTool && entry.outcome === 'failed') return textOf(entry.content);
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

/** How long it has run, or waits now. */
export function callMs(call: CallFacts, moment: Moment): number {
  const { index, now } = moment;
  const start = call.starts.filter(({ at }) => at <= index).at(-1);
  const asked = call.suspensions.filter(({ at }) => at <= index).at(-1);
  const ended = call.result && call.result.at <= index ? timeAt(moment, call.result.at) : now;
  if (asked && (!start || start.at < asked.at)) {
    const decided = asked.decision && asked.decision.at <= index ? timeAt(moment, asked.decision.at) : ended;
    return decided - timeAt(moment, asked.at);
  }
  return start ? ended - timeAt(moment, start.at) : 0;
}

export const runMs = (run: RunFacts, moment: Moment): number => {
  const over = run.stop && run.stop.at <= moment.index;
  return (over ? timeAt(moment, run.to) : moment.now) - timeAt(moment, run.from);
};

/** At work, waits for a person aside. */
const cycleMs = (number: number, moment: Moment): number =>
  moment.facts.runs
    .filter((run) => run.number === number && run.from <= moment.index)
    .reduce((sum, run) => sum + runMs(run, moment), 0);
