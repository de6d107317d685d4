/**
 * Facts of a log: runs, turns of the model, calls with their outcomes, sums. The log is folded once. Invariant: each
 * fact has the indexes of its entries, so the page at any entry compares numbers and folds nothing again.
 */

import type { Decision, GroupName, Json, LogEntry, Settlement, ToolOutcome } from '../../machines/vocabulary.ts';
import { groupOfName } from '../../src/projector/readEntry.ts';
import { shownText } from '../../src/words/formats.ts';

export type RunState = 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled';

export interface Stop {
  /** The index of the entry. */
  readonly at: number;
  readonly state: Exclude<RunState, 'running'>;
  readonly cause: string;
}

export interface RunFacts {
  readonly runId: string;
  readonly number: number;
  /** The indexes of its first and last entry so far. */
  readonly from: number;
  to: number;
  readonly isResumed: boolean;
  words: string;
  stop?: Stop;
  turns: TurnFacts[];
}

export interface TurnFacts {
  readonly turn: number;
  /** The index of the entry after which the model was called. */
  readonly from: number;
  /** The index of its reply. Missing while the model answers, or if it never answered. */
  reply?: number;
}

export interface Suspension {
  readonly number: number;
  readonly at: number;
  readonly reason: string;
  readonly payload?: Json;
  readonly args?: Json;
  decision?: { at: number; decision: Decision };
}

export interface CallFacts {
  readonly callId: string;
  readonly name: string;
  readonly args: Json;
  readonly argsText?: string;
  readonly group: GroupName;
  /** The number of the run. */
  readonly run: number;
  readonly requestedAt: number;
  readonly starts: { at: number; key: string; args?: Json }[];
  readonly suspensions: Suspension[];
  result?: { at: number; outcome: ToolOutcome; code?: string; text: string };
  /** Set if a rule, a plugin or a hook allowed it without a question. */
  allowed?: { at: number; by: string };
  /** The host's settlements of an unknown outcome. */
  readonly settled: { at: number; words: string }[];
  readonly children: SubAgent[];
}

/** A sub-agent that a call started. */
export interface SubAgent {
  /** The id of its conversation. */
  readonly id: string;
  /** The name that the call gives it. */
  readonly name: string;
  readonly task: string;
  /** The indexes of the entries of its start and its end. */
  readonly from: number;
  to?: number;
}

export interface Sums {
  readonly input: number;
  readonly output: number;
  /** Null after a reply whose price is unknown. */
  readonly cost: number | null;
  /** Milliseconds in which a run worked. */
  readonly worked: number;
}

export interface LogFacts {
  readonly runs: readonly RunFacts[];
  /** For each entry, the index of its run in `runs`, or -1. */
  readonly runAt: readonly number[];
  readonly calls: ReadonlyMap<string, CallFacts>;
  readonly sums: readonly Sums[];
  /** For each entry, the index of the last entry that became durable together with it, and its place among them. */
  readonly steps: readonly { readonly end: number; readonly place: number; readonly of: number }[];
}

export function foldLog(entries: readonly LogEntry[]): LogFacts {
  const fold = new Fold();
  for (const [index, entry] of entries.entries()) fold.addEntry(entry, index);
  return { runs: fold.runs, runAt: fold.runAt, calls: fold.calls, sums: fold.sums, steps: stepsOf(entries) };
}

function stepsOf(entries: readonly LogEntry[]): LogFacts['steps'] {
  const steps: LogFacts['steps'][number][] = [];
  let from = 0;
  for (const [index, entry] of entries.entries()) {
    const next = entries[index + 1];
    const isContinued = entry.type !== 'checkpoint' && next?.at === entry.at && next.runId === entry.runId;
    if (isContinued && entry.runId !== null) continue;
    // Only a checkpoint proves that the entries before it were stored with it.
    const first = entry.type === 'checkpoint' ? from : index;
    for (let place = from; place < first; place++) steps.push({ end: place, place: 1, of: 1 });
    const count = index - first + 1;
    for (let place = first; place <= index; place++) steps.push({ end: index, place: place - first + 1, of: count });
    from = index + 1;
  }
  return steps;
}

class Fold {
  readonly runs: RunFacts[] = [];
  readonly runAt: number[] = [];
  readonly calls = new Map<string, CallFacts>();
  readonly sums: Sums[] = [];
  #input = 0;
  #output = 0;
  #cost: number | null = 0;
  #worked = 0;
  #begin = 0;
  #cycle = 0;
  #round = -1;

  addEntry(entry: LogEntry, index: number): void {
    const begins = entry.type === 'run-started' || entry.type === 'run-resumed';
    if (begins) this.#open(entry, index);
    const place = this.runs.length - 1;
    const run = this.runs[place];
    // An entry of a run after its end (a decision) is not part of it.
    const isOver = run?.stop !== undefined && this.#isClosed;
    const isIn = run !== undefined && entry.runId === run.runId && !isOver;
    this.runAt.push(isIn ? place : -1);
    if (run && isIn) {
      run.to = index;
      this.#worked = this.#begin + (entry.at - this.#startedAt);
      this.#isClosed = entry.type === 'checkpoint' && entry.boundary === 'RunFinished';
    }
    this.#applyEntry(entry, index, run);
    this.sums.push({ input: this.#input, output: this.#output, cost: this.#cost, worked: this.#worked });
  }

  #startedAt = 0;
  #isClosed = false;

  #open(entry: LogEntry, index: number): void {
    const isResumed = entry.type === 'run-resumed';
    if (!isResumed) this.#cycle += 1;
    this.#begin = this.#worked;
    this.#isClosed = false;
    this.#startedAt = entry.at;
    const number = Math.max(this.#cycle, 1);
    const words = isResumed ? 'resumed' : '';
    this.runs.push({ runId: `${entry.runId}`, number, from: index, to: index, isResumed, words, turns: [] });
  }

  #applyEntry(entry: LogEntry, index: number, run: RunFacts | undefined): void {
    switch (entry.type) {
      case 'user-message':
        if (run && run.words === '') run.words = shownText(entry.content);
        return;
      case 'agent-output':
        if (entry.item.type === 'tool-call') this.#addCall(entry.item, index);
        return;
      case 'model-reply':
        this.#input += entry.usage?.inputTokens ?? 0;
        this.#output += entry.usage?.outputTokens ?? 0;
        this.#cost = this.#cost === null || entry.costUsd === null ? null : this.#cost + entry.costUsd;
        this.#round = -1;
        return void run?.turns.push({ turn: entry.turn, from: turnStart(run), reply: index });
      case 'run-stop':
        if (run) run.stop = { at: index, state: stateOf(entry.reason), cause: entry.cause ?? '' };
        return;
      case 'run-suspended':
        if (run) run.stop = { at: index, state: 'waiting', cause: entry.waiting.join(', ') };
        return;
      case 'checkpoint':
        if (run) boundaries.set(run, index);
        return;
      default:
        return this.#applyCallEntry(entry, index);
    }
  }

  #addCall(
    item: { callId: string; name: string; args: Json; argsText?: string; group?: GroupName },
    index: number,
  ): void {
    if (this.#round < 0) this.#round = index;
    const { callId, name, args, argsText } = item;
    const group = item.group ?? groupOfName(name);
    const run = this.runs.at(-1)?.number ?? 0;
    const requestedAt = index;
    this.calls.set(callId, {
      callId,
      name,
      args,
      ...(argsText !== undefined && { argsText }),
      group,
      run,
      requestedAt: requestedAt,
      starts: [],
      suspensions: [],
      settled: [],
      children: [],
    });
  }

  #applyCallEntry(entry: LogEntry, index: number): void {
    const call = 'callId' in entry && entry.callId !== undefined ? this.calls.get(entry.callId) : undefined;
    if (!call) return;
    if (entry.type === 'tool-started') {
      call.starts.push({ at: index, key: entry.idempotencyKey, ...(entry.args !== undefined && { args: entry.args }) });
    } else if (entry.type === 'tool-suspended') {
      const { suspension, reason, payload, args } = entry;
      call.suspensions.push({
        number: suspension,
        at: index,
        reason,
        ...(payload !== undefined && { payload }),
        ...(args !== undefined && { args }),
      });
    } else if (entry.type === 'tool-allowed') call.allowed = { at: index, by: entry.by };
    else if (entry.type === 'call-settled') call.settled.push({ at: index, words: settledWords(entry.how) });
    else if (entry.type === 'decision') {
      const suspended = call.suspensions.find(({ number }) => number === entry.suspension);
      if (suspended) suspended.decision = { at: index, decision: entry.decision };
    } else if (entry.type === 'tool-result') {
      const { outcome, code, content } = entry;
      call.result = { at: index, outcome, text: shownText(content), ...(code !== undefined && { code }) };
    } else if (entry.type === 'sub-agent') this.#applyChild(call, entry.child, entry.phase === 'ended', index);
  }

  /** Tasks start in their order. A sub-agent that continues after a restart keeps its id. */
  #applyChild({ args, children }: CallFacts, id: string, hasEnded: boolean, index: number): void {
    const existing = children.find((one) => one.id === id);
    if (existing && hasEnded) existing.to = index;
    if (existing) return;
    const { tasks } = Object(args) as { tasks?: { id?: string; task?: string }[] };
    const { id: name = id, task = '' } = (Array.isArray(tasks) ? tasks[children.length] : undefined) ?? {};
    children.push({ id, name, task, from: index, ...(hasEnded && { to: index }) });
  }
}

const settledWords = (how: Settlement): string =>
  'ran' in how ? 'settled: it ran' : 'retry' in how ? 'settled: tried once more' : 'settled: it did not run';

/** The index of a run's last checkpoint: the model is called after one. */
const boundaries = new WeakMap<RunFacts, number>();
export const turnStart = (run: RunFacts): number => Math.max(boundaries.get(run) ?? run.from, run.from);

const stateOf = (reason: string): Stop['state'] =>
  reason === 'completed' ? 'completed' : reason === 'interrupted' ? 'cancelled' : 'failed';

export function runStateAt(run: RunFacts, index: number): RunState {
  return run.stop && run.stop.at <= index ? run.stop.state : 'running';
}
