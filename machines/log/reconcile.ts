/**
 * What may follow in a log. A run writes its end while an append before it may still fail, and its end can be lost too.
 * Rule: whatever a store lost, a run begins only behind the end of the one before it, a call has one result, which is the
 * last of it and true of what never started, a suspension one decision, and an unknown outcome one settlement, an end
 * belongs to a run that began, only what was queued is given back, a checkpoint is the last entry of its append, and a
 * resumption tells the model to go on only where the model's own words come last.
 */

import { ofUnstarted, syntheticResults } from '../run/closeCalls.ts';
import type { NewEntry } from '../vocabulary.ts';
import type { LogState } from './logState.ts';

/** Appends without any of these follow anything. */
const BOUND: ReadonlySet<NewEntry['type']> = new Set<NewEntry['type']>([
  'run-started',
  'run-resumed',
  'run-stop',
  'run-suspended',
  'tool-started',
  'tool-suspended',
  'tool-result',
  'decision',
  'call-settled',
  'message-returned',
]);

/** The end that the last run did not come to write, and the results of its calls. Calls that wait go on waiting. */
function lostEnd(logState: LogState): NewEntry[] {
  const { runId } = logState;
  const ids = (status: 'started' | 'called'): string[] =>
    [...logState.open].filter((callId) => logState.calls.get(callId)?.status === status);
  return [
    ...syntheticResults(runId, ids('started'), 'unknown'),
    ...syntheticResults(runId, ids('called'), 'skipped'),
    { runId, type: 'run-stop', reason: 'error', cause: 'store' },
  ];
}

class Reconciler {
  readonly entries: NewEntry[] = [];
  readonly #logState: LogState;
  readonly #modelSpokeLast: boolean;
  /** Made with the first: most appends have none. */
  #answered: Set<string> | undefined;
  #runId: string;
  #cycle: LogState['cycle'];
  /** The last end was left out. */
  #endless = false;

  constructor(logState: LogState, modelSpokeLast: boolean) {
    this.#logState = logState;
    this.#modelSpokeLast = modelSpokeLast;
    this.#runId = logState.runId;
    this.#cycle = logState.cycle;
  }

  add(entry: NewEntry): void {
    switch (entry.type) {
      case 'run-started':
      case 'run-resumed':
        return this.#begin(entry);
      case 'run-stop':
      case 'run-suspended':
        this.#endless = !this.#ends(entry);
        if (this.#endless) return;
        this.#cycle = entry.type === 'run-stop' ? 'stopped' : 'suspended';
        break;
      case 'tool-started':
      case 'tool-suspended':
        if (!this.#awaited(entry.callId)) return;
        break;
      case 'tool-result':
        if (!this.#awaited(entry.callId)) return;
        this.#answered ??= new Set();
        this.#answered.add(entry.callId);
        this.entries.push(this.#hasStarted(entry.callId) ? entry : ofUnstarted(entry));
        return;
      case 'decision':
        if (this.#isDecided(entry)) return;
        break;
      case 'call-settled':
        if (!this.#logState.unsettled.has(entry.callId)) return;
        break;
      case 'message-returned':
        if (!this.#isQueued(entry.messageId)) return;
        break;
      case 'continuation':
        if (entry.why === 'resume' && !this.#leavesOff()) return;
        break;
      case 'checkpoint':
        if (this.#endless && entry.boundary === 'RunFinished') return;
    }
    this.entries.push(entry);
  }

  /** A new request closes a cycle that waits; a resumption goes on with it. */
  #begin(entry: NewEntry): void {
    const open = this.#cycle === 'running' || (this.#cycle === 'suspended' && entry.type === 'run-started');
    if (open) for (const end of lostEnd(this.#logState)) this.add(end);
    this.#runId = entry.runId ?? '';
    this.#cycle = 'running';
    this.entries.push(entry);
  }

  #ends({ runId, type }: NewEntry): boolean {
    if (runId !== this.#runId) return false;
    return this.#cycle === 'running' || (this.#cycle === 'suspended' && type === 'run-stop');
  }

  /** By one that was given up while a cancel was in a hurry, and has landed since, or stands before it in the append. */
  #isDecided({ callId, suspension }: Extract<NewEntry, { type: 'decision' }>): boolean {
    if (this.#logState.calls.get(callId)?.decisions.has(suspension)) return true;
    return this.entries.some(
      (entry) => entry.type === 'decision' && entry.callId === callId && entry.suspension === suspension,
    );
  }

  #isQueued(messageId: string): boolean {
    const known = this.#logState.queue.some((message) => message.messageId === messageId);
    return known || this.entries.some((entry) => isQueuing(entry, messageId));
  }

  #hasStarted(callId: string): boolean {
    if (this.#logState.calls.get(callId)?.ran) return true;
    return this.entries.some((entry) => entry.type === 'tool-started' && entry.callId === callId);
  }

  /** The model spoke last, and nobody waits for a person: it has to be told to go on. */
  #leavesOff(): boolean {
    const { open, calls } = this.#logState;
    const waits = [...open].some((id) => calls.get(id)?.status === 'suspended' && !this.#answered?.has(id));
    return !waits && (this.#modelSpokeLast || this.entries.some(({ type }) => type === 'agent-output'));
  }

  #awaited(callId: string): boolean {
    if (this.#answered?.has(callId)) return false;
    const record = this.#logState.calls.get(callId);
    if (!record) return this.entries.some((entry) => isCall(entry, callId));
    return record.status !== 'ended' || record.settled === 'retry';
  }
}

const isQueuing = (entry: NewEntry, messageId: string): boolean =>
  entry.type === 'message-queued' && entry.messageId === messageId;
const isCall = (entry: NewEntry, callId: string): boolean =>
  entry.type === 'agent-output' && entry.item.type === 'tool-call' && entry.item.callId === callId;

/** A checkpoint marks the append that it is in. Where a step came by several, the last one stands for all of them. */
function marked(entries: readonly NewEntry[]): readonly NewEntry[] {
  const first = entries.findIndex(isMark);
  if (first < 0 || first === entries.length - 1) return entries;
  return [...entries.filter((entry) => !isMark(entry)), ...entries.filter(isMark).slice(-1)];
}

const isMark = ({ type }: NewEntry): boolean => type === 'checkpoint';

/** The entries as they may stand behind what is durable. `modelSpokeLast`: its words are the last of the messages. */
export function reconcile(
  logState: LogState,
  entries: readonly NewEntry[],
  modelSpokeLast: boolean,
): readonly NewEntry[] {
  if (!entries.some(({ type }) => BOUND.has(type))) return marked(entries);
  const made = new Reconciler(logState, modelSpokeLast);
  for (const entry of entries) made.add(entry);
  return marked(made.entries);
}
