/**
 * One run: a handle that can be iterated, awaited and cancelled, and its result, read from its entries. Invariant: `result`
 * always resolves and agrees with the log. Iteration starts at the run's first entry. Live signals are collected only during
 * an iteration.
 */
import {
  addUsage,
  type CallRecord,
  type LogEntry,
  type LogState,
  originOf,
  type PendingCall,
  type RunOutput,
  type StopReason,
  stopReason,
  type Termination,
  type ToolOutcome,
  type Usage,
  usageOf,
  withOrigin,
  zeroUsage,
} from '../../machines/internal.ts';
import { RunchartError } from '../errors.ts';
import type { Live } from '../live.ts';
import { onDemand } from '../onDemand.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { SubAgents } from '../runtime/subAgentPort.ts';

/** The end of a run. Every run has one. `Output`: the type of a final answer that its schema took. */
export interface RunResult<Output = unknown> {
  /** The id of the run. */
  runId: string;
  /** The end state of the run's chart. */
  termination: Termination;
  /** The reason for the end, for example `max_turns`. docs/errors.md lists the causes. */
  cause?: string;
  /** The reason of the stop in the log; null while the run is suspended. */
  reason: StopReason | null;
  /** The end of the run in one word, for programs. */
  subtype: 'success' | 'suspended' | 'error_max_turns' | 'error_max_budget_usd' | 'error_during_execution';
  /** The text of the last reply. */
  text: string;
  /** The final answer as parsed by its schema, where it has one. */
  output?: Output;
  /** The number of model replies in the run. */
  turns: number;
  /** The tokens of the run. */
  usage: Usage;
  /** Null where a price is unknown. */
  costUsd: number | null;
  /** The calls that wait for a decision. */
  pending: PendingCall[];
  /** The failure that ended the run. */
  error?: { code: string; message: string };
  /** The state of each call of the run. */
  calls: { callId: string; name: string; outcome: ToolOutcome | 'suspended'; code?: string }[];
}

/** A run did not complete; `result` contains its end. */
export class RunError extends RunchartError {
  /** The result of the run that did not complete. */
  readonly result: RunResult;

  constructor(result: RunResult) {
    const why = result.error ? `${result.error.code}: ${result.error.message}` : (result.cause ?? result.termination);
    super('run', `the run ended as ${result.termination} (${why})`);
    this.result = result;
  }
}

/** The work that a message begins. It is also an async iterable of its log entries and live signals. */
export interface Run<Output = unknown> extends AsyncIterable<LogEntry | Live> {
  /** The id of the run. The entries of the run in the log contain it. */
  readonly id: string;
  /** Always resolves. */
  readonly result: Promise<RunResult<Output>>;
  /**
   * The final answer as JSON while it streams, as far as it has come; the last value is `result.output`. It ends without an error,
   * however the run ends.
   */
  readonly partialOutput: AsyncIterable<unknown>;
  /** Rejects with RunError unless the run completed. */
  readonly text: Promise<string>;
  /** Cancels the run; resolves when its end is durable. */
  cancel(): Promise<void>;
}

/** Loaded where somebody reads a final answer while it streams. */
const loadPartial = onDemand(() => import('./partialOutput.ts'));

async function* partialOutput(items: AsyncIterator<Item>, result: Promise<RunResult>): AsyncGenerator<unknown, void> {
  const { partialOutputOf } = await loadPartial();
  yield* partialOutputOf({ [Symbol.asyncIterator]: () => items }, result);
}

type Item = LogEntry | Live;
type Take = (item: Item) => void;
export class RunHandle implements Run {
  id: string;
  readonly result: Promise<RunResult>;
  /** Seq of the run's first entry, and of the first entry after its last. */
  since: number | undefined;
  until: number | undefined;
  readonly #source: RunFeed;
  readonly #cancel: (handle: RunHandle) => Promise<void>;
  #resolve: (result: RunResult) => void = () => {};
  #onFinished = new Set<() => void>();
  #text: Promise<string> | undefined;
  #ended = false;

  constructor(id: string, source: RunFeed, cancel: (handle: RunHandle) => Promise<void>) {
    this.id = id;
    this.#source = source;
    this.#cancel = cancel;
    this.result = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  get text(): Promise<string> {
    this.#text ??= this.result.then((result) => {
      if (result.reason === 'completed') return result.text;
      throw new RunError(result);
    });
    return this.#text;
  }

  get partialOutput(): AsyncIterable<unknown> {
    // The items are collected from here on, before the module is loaded.
    return { [Symbol.asyncIterator]: () => partialOutput(this[Symbol.asyncIterator](), this.result) };
  }

  get ended(): boolean {
    return this.#ended;
  }

  cancel(): Promise<void> {
    return this.#cancel(this);
  }

  /** Calls back when the run is over. */
  onFinished(act: () => void): void {
    if (this.#ended) act();
    else this.#onFinished.add(act);
  }

  /** Calls back if the signal is aborted before the run is over. The listener is removed then. */
  bindSignal(signal: AbortSignal | undefined, aborted: () => void): void {
    if (!signal || signal.aborted) return;
    signal.addEventListener('abort', aborted, { once: true });
    this.onFinished(() => signal.removeEventListener('abort', aborted));
  }

  finish(result: RunResult): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#resolve(result);
    for (const act of this.#onFinished) act();
    this.#onFinished.clear();
  }

  [Symbol.asyncIterator](): AsyncIterator<Item> {
    const stored = this.#source.entriesOf(this);
    return new RunIterator(this, stored, (take) => this.#source.follow(this, take));
  }
}

/** A buffer between a run and one reader. */
class RunIterator implements AsyncIterator<Item> {
  #buffer: Item[];
  #head = 0;
  /** Reads that wait for the run. */
  #waiting: ((result: IteratorResult<Item>) => void)[] = [];
  #over = false;
  readonly #stop: () => void;

  constructor(run: RunHandle, stored: readonly LogEntry[], follow: (take: (item: Item) => void) => () => void) {
    this.#buffer = [...stored];
    this.#stop = follow((item) => this.#take(item));
    run.onFinished(() => this.#end());
  }

  next(): Promise<IteratorResult<Item>> {
    if (this.#head < this.#buffer.length) {
      const value = this.#buffer[this.#head] as Item;
      this.#head += 1;
      if (this.#head === this.#buffer.length) {
        this.#buffer = [];
        this.#head = 0;
      }
      return Promise.resolve({ done: false, value });
    }
    if (this.#over) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  return(): Promise<IteratorResult<Item>> {
    this.#end();
    this.#buffer = [];
    this.#head = 0;
    return Promise.resolve({ done: true, value: undefined });
  }

  #take(item: Item): void {
    const waiting = this.#waiting.shift();
    if (waiting) waiting({ done: false, value: item });
    else this.#buffer.push(item);
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#stop();
    for (const waiting of this.#waiting.splice(0)) waiting({ done: true, value: undefined });
  }
}

/** The entries and signals of a conversation of this process or of a server. */
export interface RunSource {
  readonly log: Pick<Runtime['log'], 'entries' | 'listen'>;
  readonly live: Pick<Runtime['live'], 'signals$'>;
  readonly logState: Pick<LogState, 'open'>;
  /** The active run. */
  readonly runId: string | undefined;
}

export class RunFeed {
  readonly #runtime: RunSource;
  readonly #followers = new Map<string, Set<Take>>();

  constructor(runtime: RunSource) {
    this.#runtime = runtime;
    runtime.log.listen((entry) => {
      if (entry.runId !== null) this.#tell(entry.runId, entry);
    });
  }

  /** The run's entries so far. */
  entriesOf({ id, since, until }: RunHandle): readonly LogEntry[] {
    if (since === undefined) return [];
    return this.#runtime.log.entries.slice(since, until).filter((entry) => entry.runId === id);
  }

  /** Calls `take` with each later entry and signal of the run; the returned function ends it. */
  follow({ id }: RunHandle, take: Take): () => void {
    const followers = this.#followers.get(id) ?? new Set<Take>();
    this.#followers.set(id, followers);
    followers.add(take);
    const signals = this.#runtime.live.signals$.subscribe((signal) => {
      if (this.#runOf(signal) === id) take(signal);
    });
    return () => {
      signals.unsubscribe();
      followers.delete(take);
      if (followers.size === 0) this.#followers.delete(id);
    };
  }

  /** Signals of a sub-agent belong to the run with its open call. */
  #runOf(signal: Live): string | undefined {
    if (!signal.path) return 'runId' in signal ? signal.runId : undefined;
    const { logState, runId } = this.#runtime;
    return logState.open.has(signal.path[0] ?? '') ? runId : undefined;
  }

  #tell(runId: string, item: Item): void {
    const followers = this.#followers.get(runId);
    if (followers) for (const take of followers) take(item);
  }
}

const SUBTYPES: { [cause: string]: RunResult['subtype'] } = {
  max_turns: 'error_max_turns',
  max_budget: 'error_max_budget_usd',
};

function subtypeOf({ termination, cause }: RunOutput): RunResult['subtype'] {
  if (termination === 'NaturalEnd' || termination === 'PluginRequested') return 'success';
  if (termination === 'Suspended') return 'suspended';
  return (termination === 'Stopped' && cause !== undefined && SUBTYPES[cause]) || 'error_during_execution';
}

/** A call as a host receives it. */
export function pendingCall(
  record: CallRecord,
  path: string[] = [record.callId],
  origin = originOf(record.request),
): PendingCall {
  const { callId, name, args, reason, payload, suspension } = record;
  const call = { callId, name, args, reason, suspension, path, ...(payload !== undefined && { payload }) };
  return withOrigin(call, origin);
}

/** Calls that wait for a decision: the conversation's own first, then those of sub-agents. */
export function pendingCalls(
  logState: Pick<LogState, 'calls' | 'open'>,
  subAgents?: Pick<SubAgents, 'pending' | 'waitsWithin'>,
): PendingCall[] {
  const pending: PendingCall[] = [];
  for (const callId of logState.open) {
    const record = logState.calls.get(callId);
    if (record?.status !== 'suspended' || record.decisions.has(record.suspension)) continue;
    if (subAgents?.waitsWithin(record)) continue;
    pending.push(pendingCall(record));
  }
  return subAgents ? [...pending, ...subAgents.pending] : pending;
}

/** Calls with an unknown outcome that are not settled: the conversation's own first, then those of sub-agents. */
export function unsettledCalls(logState: LogState, subAgents?: SubAgents): PendingCall[] {
  const own = [...logState.unsettled].flatMap((callId) => {
    const record = logState.calls.get(callId);
    if (!record) return [];
    const { payload: _, ...call } = pendingCall(record);
    return [{ ...call, reason: 'unknown' }];
  });
  return [...own, ...(subAgents?.unsettled ?? [])];
}

/** A run whose message was returned before it began. */
export const returnedOutput = (runId: string): RunOutput => ({
  runId,
  termination: 'Cancelled',
  cause: 'cancelled',
  durable: true,
});
/** A run that could not begin. */
export const notBegun = (runId: string, code: string, message: string): RunOutput => ({
  runId,
  termination: 'Error',
  cause: code,
  error: { code, message },
  durable: false,
});

/** A run that had nothing to do. */
export const nothingDone = (runId: string): RunOutput => ({
  runId,
  termination: 'NaturalEnd',
  cause: 'end_turn',
  durable: true,
});

export function runResult(
  output: RunOutput,
  entries: readonly LogEntry[],
  logState: LogState,
  subAgents: SubAgents | undefined,
): RunResult {
  const { runId, termination, cause, error } = output;
  let spent = zeroUsage;
  let turns = 0;
  let text = '';
  let open = '';
  let answer: Pick<RunResult, 'output'> = {};
  const callIds = new Set<string>();
  for (const entry of entries) {
    const cost = usageOf(entry);
    if (cost) spent = addUsage(spent, cost);
    if (entry.type === 'extension' && entry.name === 'output') answer = { output: entry.value };
    if (entry.type === 'agent-output') {
      if (entry.item.type === 'assistant') open += entry.item.text;
      if (entry.item.type === 'tool-call') callIds.add(entry.item.callId);
    } else if (entry.type === 'model-reply') {
      text = open;
      open = '';
      turns += 1;
    } else if (entry.type === 'tool-result' || entry.type === 'tool-suspended') callIds.add(entry.callId);
  }
  const calls = [...callIds].flatMap((callId): RunResult['calls'] => {
    const record = logState.calls.get(callId);
    if (!record) return [];
    const { name, outcome, code, status } = record;
    // A call that has not begun waits for its turn after a call that waits.
    if (status === 'called' && termination === 'Suspended') {
      return [{ callId, name, outcome: 'suspended', code: 'not_started' }];
    }
    const callOutcome = status === 'ended' ? (outcome ?? 'unknown') : status === 'suspended' ? 'suspended' : 'unknown';
    return [{ callId, name, outcome: callOutcome, ...(code !== undefined && status === 'ended' && { code }) }];
  });
  return {
    runId,
    termination,
    ...(cause !== undefined && { cause }),
    reason: stopReason({ termination, ...(cause !== undefined && { cause }) }),
    subtype: subtypeOf(output),
    text: open === '' ? text : open,
    ...answer,
    turns,
    ...spent,
    pending: pendingCalls(logState, subAgents),
    ...(error && { error }),
    calls,
  };
}
