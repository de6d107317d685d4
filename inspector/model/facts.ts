/**
 * What a log says, folded once: runs, turns of the model, calls and what became of them, sums. Rule: every fact holds the
 * indexes of the entries that made it, so the page as of any entry is a comparison of numbers and no second fold.
 */
import type { Decision, Json, LogEntry, ToolOutcome } from '../../machines/vocabulary.ts';

export type RunState = 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled';

export interface Stop {
  /** Index of the entry. */
  readonly at: number;
  readonly state: Exclude<RunState, 'running'>;
  readonly cause: string;
}

export interface RunFacts {
  readonly runId: string;
  readonly number: number;
  /** Indexes of its first entry and, once it is over, of its last. */
  readonly from: number;
  to: number;
  readonly isResumed: boolean;
  words: string;
  stop?: Stop;
  turns: TurnFacts[];
}

export interface TurnFacts {
  readonly turn: number;
  /** Index of the entry behind which the model was called. */
  readonly from: number;
  /** Index of its reply; missing while it answers, and where it never did. */
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
  readonly group: string;
  /** Number of the run, place of the round in the log. */
  readonly run: number;
  readonly said: number;
  readonly starts: { at: number; key: string; args?: Json }[];
  readonly suspensions: Suspension[];
  result?: { at: number; outcome: ToolOutcome; code?: string; text: string };
  readonly children: SubAgent[];
}

/** A sub-agent that a call began. */
export interface SubAgent {
  /** Its conversation. */
  readonly id: string;
  /** What the call names it by. */
  readonly name: string;
  readonly task: string;
  /** Indexes of the entries that say when it began and ended. */
  readonly from: number;
  to?: number;
}

export interface Sums {
  readonly input: number;
  readonly output: number;
  readonly cost: number;
  /** Milliseconds in which a run was at work. */
  readonly worked: number;
}

export interface LogFacts {
  readonly runs: readonly RunFacts[];
  /** Run by entry: index into `runs`, -1 outside. */
  readonly runAt: readonly number[];
  readonly calls: ReadonlyMap<string, CallFacts>;
  readonly sums: readonly Sums[];
  /** By entry: the index of the last entry that was made durable together with it, and its place among them. */
  readonly steps: readonly { readonly end: number; readonly place: number; readonly of: number }[];
}

export const textOf = (content: unknown): string =>
  Array.isArray(content)
    ? content
        .map((part: { type?: string; text?: string }) => (part.type === 'text' ? (part.text ?? '') : '[image]'))
        .join('\n')
    : '';

const GROUPS: Readonly<Record<string, string>> = {
  Read: 'read-group',
  Ls: 'read-group',
  Glob: 'read-group',
  Grep: 'read-group',
  Write: 'write-group',
  Edit: 'write-group',
  Bash: 'bash-group',
};

export function foldLog(entries: readonly LogEntry[]): LogFacts {
  const fold = new Fold();
  for (const [index, entry] of entries.entries()) fold.take(entry, index);
  return { runs: fold.runs, runAt: fold.runAt, calls: fold.calls, sums: fold.sums, steps: stepsOf(entries) };
}

function stepsOf(entries: readonly LogEntry[]): LogFacts['steps'] {
  const steps: LogFacts['steps'][number][] = [];
  let from = 0;
  for (const [index, entry] of entries.entries()) {
    const next = entries[index + 1];
    const goesOn = entry.type !== 'checkpoint' && next?.at === entry.at && next.runId === entry.runId;
    if (goesOn && entry.runId !== null) continue;
    // Only a checkpoint says that what stands before it was stored with it.
    const first = entry.type === 'checkpoint' ? from : index;
    for (let place = from; place < first; place++) steps.push({ end: place, place: 1, of: 1 });
    const of = index - first + 1;
    for (let place = first; place <= index; place++) steps.push({ end: index, place: place - first + 1, of });
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
  #cost = 0;
  #worked = 0;
  #begin = 0;
  #cycle = 0;
  #round = -1;

  take(entry: LogEntry, index: number): void {
    const begins = entry.type === 'run-started' || entry.type === 'run-resumed';
    if (begins) this.#open(entry, index);
    const place = this.runs.length - 1;
    const run = this.runs[place];
    // What is said of a run behind its end (a decision) is no part of it.
    const isOver = run?.stop !== undefined && this.#isClosed;
    const isIn = run !== undefined && entry.runId === run.runId && !isOver;
    this.runAt.push(isIn ? place : -1);
    if (run && isIn) {
      run.to = index;
      this.#worked = this.#begin + (entry.at - this.#startedAt);
      this.#isClosed = entry.type === 'checkpoint' && entry.boundary === 'RunFinished';
    }
    this.#tell(entry, index, run);
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

  #tell(entry: LogEntry, index: number, run: RunFacts | undefined): void {
    switch (entry.type) {
      case 'user-message':
        if (run && run.words === '') run.words = textOf(entry.content);
        return;
      case 'agent-output':
        if (entry.item.type === 'tool-call') this.#called(entry.item, index);
        return;
      case 'model-reply':
        this.#input += entry.usage?.inputTokens ?? 0;
        this.#output += entry.usage?.outputTokens ?? 0;
        this.#cost += entry.costUsd ?? 0;
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
        return this.#ofCall(entry, index);
    }
  }

  #called(item: { callId: string; name: string; args: Json; argsText?: string; group?: string }, index: number): void {
    if (this.#round < 0) this.#round = index;
    const { callId, name, args, argsText } = item;
    const group = item.group ?? GROUPS[name] ?? 'other-group';
    const run = this.runs.at(-1)?.number ?? 0;
    const said = index;
    this.calls.set(callId, {
      callId,
      name,
      args,
      ...(argsText !== undefined && { argsText }),
      group,
      run,
      said,
      starts: [],
      suspensions: [],
      children: [],
    });
  }

  #ofCall(entry: LogEntry, index: number): void {
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
    } else if (entry.type === 'decision') {
      const asked = call.suspensions.find(({ number }) => number === entry.suspension);
      if (asked) asked.decision = { at: index, decision: entry.decision };
    } else if (entry.type === 'tool-result') {
      const { outcome, code, content } = entry;
      call.result = { at: index, outcome, text: textOf(content), ...(code !== undefined && { code }) };
    } else if (entry.type === 'sub-agent') this.#ofChild(call, entry.child, entry.phase === 'ended', index);
  }

  /** Tasks are begun in their order; one that goes on after a restart is the same. */
  #ofChild({ args, children }: CallFacts, id: string, hasEnded: boolean, index: number): void {
    const known = children.find((one) => one.id === id);
    if (known && hasEnded) known.to = index;
    if (known) return;
    const { tasks } = Object(args) as { tasks?: { id?: string; task?: string }[] };
    const { id: name = id, task = '' } = (Array.isArray(tasks) ? tasks[children.length] : undefined) ?? {};
    children.push({ id, name, task, from: index, ...(hasEnded && { to: index }) });
  }
}

/** Index of the last checkpoint of a run: the model is called behind one. */
const boundaries = new WeakMap<RunFacts, number>();
export const turnStart = (run: RunFacts): number => Math.max(boundaries.get(run) ?? run.from, run.from);

const stateOf = (reason: string): Stop['state'] =>
  reason === 'completed' ? 'completed' : reason === 'interrupted' ? 'cancelled' : 'failed';

export type CallState = 'queued' | 'running' | 'waiting' | 'decided' | 'done' | 'failed' | 'cancelled' | 'unknown';

/** What is known of a call at an entry. */
export function callAt(call: CallFacts, index: number): CallState {
  const { result } = call;
  if (result && result.at <= index) {
    if (result.outcome === 'succeeded') return 'done';
    if (result.outcome === 'unknown') return 'unknown';
    const denied = call.suspensions.at(-1)?.decision?.decision.action === 'deny';
    return result.outcome === 'cancelled' || denied ? 'cancelled' : 'failed';
  }
  const asked = call.suspensions.filter(({ at }) => at <= index).at(-1);
  const start = call.starts.filter(({ at }) => at <= index).at(-1);
  if (asked && (!start || start.at < asked.at)) {
    return asked.decision && asked.decision.at <= index ? 'decided' : 'waiting';
  }
  return start ? 'running' : 'queued';
}

/** The suspension that waits for a person at an entry. */
export function waitingAt(call: CallFacts, index: number): Suspension | undefined {
  return callAt(call, index) === 'waiting' ? call.suspensions.filter(({ at }) => at <= index).at(-1) : undefined;
}

export function runStateAt(run: RunFacts, index: number): RunState {
  return run.stop && run.stop.at <= index ? run.stop.state : 'running';
}
