/**
 * Rules of every durable log, checked on its entries alone: calls and results, runs and their ends, messages.
 * Invariant: the checks use none of the library's folds, so they can disagree with them.
 */
import type { LogEntry } from '../../src/index.ts';

interface Call {
  runId: string | null;
  state: 'called' | 'started' | 'suspended' | 'ended';
  results: number;
  /** Number of retries that the host requested. */
  retries: number;
}

class Reader {
  readonly faults: string[] = [];
  readonly calls = new Map<string, Call>();
  readonly queued = new Set<string>();
  readonly delivered = new Set<string>();
  cycle: 'none' | 'running' | 'suspended' | 'stopped' = 'none';
  #runId: string | null = null;

  read(entry: LogEntry): void {
    const say = (fault: string): void => void this.faults.push(`${entry.seq} ${entry.type}: ${fault}`);
    switch (entry.type) {
      case 'run-started':
      case 'run-resumed':
        if (this.cycle === 'running') say(`the run ${this.#runId} has no end`);
        if (entry.type === 'run-started' && this.cycle === 'suspended') say('the cycle before has no stop');
        this.cycle = 'running';
        this.#runId = entry.runId;
        return;
      case 'run-stop':
      case 'run-suspended':
        if (entry.runId !== this.#runId) say(`belongs to ${entry.runId}, not to ${this.#runId}`);
        if (this.cycle !== 'running' && !(this.cycle === 'suspended' && entry.type === 'run-stop')) say('ends nothing');
        this.cycle = entry.type === 'run-stop' ? 'stopped' : 'suspended';
        return;
      case 'user-message':
        if (this.delivered.has(entry.messageId)) say(`${entry.messageId} was delivered before`);
        this.delivered.add(entry.messageId);
        this.queued.delete(entry.messageId);
        return;
      case 'message-queued':
        if (this.queued.has(entry.messageId)) say(`${entry.messageId} was queued before`);
        this.queued.add(entry.messageId);
        return;
      case 'message-returned':
        if (!this.queued.delete(entry.messageId)) say(`${entry.messageId} was not queued`);
        return;
      case 'agent-output':
        if (entry.item.type !== 'tool-call') return;
        if (this.calls.has(entry.item.callId)) say(`${entry.item.callId} was called before`);
        this.calls.set(entry.item.callId, { runId: entry.runId, state: 'called', results: 0, retries: 0 });
        return;
      case 'tool-started':
      case 'tool-suspended':
      case 'tool-result':
      case 'call-settled':
        this.#ofCall(entry, say);
    }
  }

  #ofCall(
    entry: Extract<LogEntry, { type: `tool-${string}` | 'call-settled'; callId: string }>,
    say: (fault: string) => void,
  ) {
    const call = this.calls.get(entry.callId);
    if (!call) return say(`${entry.callId} was never called`);
    if (entry.type === 'call-settled') {
      if ('retry' in entry.how) call.retries += 1;
      return;
    }
    if (call.results > call.retries) say(`${entry.callId} has its result`);
    if (entry.type === 'tool-result') call.results += 1;
    if (entry.type !== 'tool-allowed')
      call.state = entry.type === 'tool-started' ? 'started' : entry.type === 'tool-result' ? 'ended' : 'suspended';
  }
}

/** Faults of a log that may still grow. */
export function logFaults(log: readonly LogEntry[]): string[] {
  return read(log).faults;
}

/** Faults of a log without a running run. `mayRunAgain`: calls with this name may have been interrupted. */
export function restFaults(log: readonly LogEntry[], mayRunAgain: (name: string) => boolean = () => false): string[] {
  const reader = read(log);
  const { faults, calls, cycle } = reader;
  if (cycle === 'running') faults.push('the last run has no end');
  const names = new Map(
    log.flatMap((entry) =>
      entry.type === 'agent-output' && entry.item.type === 'tool-call' ? [[entry.item.callId, entry.item.name]] : [],
    ),
  );
  for (const [callId, { state, results }] of calls) {
    const open =
      state === 'suspended' ||
      (state === 'called' && cycle === 'suspended') ||
      (state === 'started' && mayRunAgain(names.get(callId) ?? ''));
    if (results === 0 && !open) faults.push(`${callId} (${state}) has no result`);
  }
  return faults;
}

/** Faults of the appends: a checkpoint is the last entry of its append. */
export function appendFaults(appends: readonly (readonly LogEntry[])[]): string[] {
  return appends.flatMap((entries) => {
    const at = entries.findIndex(({ type }) => type === 'checkpoint');
    if (at < 0 || at === entries.length - 1) return [];
    return [`a checkpoint is ${at + 1} of ${entries.length}: ${entries.map(({ type }) => type).join(' ')}`];
  });
}

/** Ids of messages in the queue. */
export const queuedIn = (log: readonly LogEntry[]): string[] => [...read(log).queued];

function read(log: readonly LogEntry[]): Reader {
  const reader = new Reader();
  log.forEach((entry, index) => {
    if (entry.seq !== index) reader.faults.push(`entry ${index} has the number ${entry.seq}`);
    reader.read(entry);
  });
  return reader;
}
