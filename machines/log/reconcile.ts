/**
 * Fits new entries to the log. A run may write its end while an earlier append can still fail, and its end can be lost too.
 * Invariant, whatever a store lost: a run begins only after the end of the one before it. A call has one result, which is
 * its last entry, and which is true of a call that never started. A suspension has one decision; an unknown outcome has one
 * settlement. An end belongs to a run that began. Only queued messages are returned. A checkpoint is the last entry of its
 * append. A resumption tells the model to continue only where the model's own words come last.
 */

import type { ToolResultEntry } from '../calls.ts';
import { RESULT_TEXTS, UNSTARTED } from '../transcript/texts.ts';
import type { NewEntry } from '../vocabulary.ts';
import { isOver } from './callRecord.ts';
import type { LogState } from './logState.ts';

/** The codes of results that the library writes. */
export type ResultCode = keyof typeof RESULT_TEXTS;

/** The result that the library writes for a call that no tool has ended. */
export function syntheticResult(runId: string | null, callId: string, code: ResultCode): ToolResultEntry {
  const isUnknown = code === 'unknown';
  const content = [{ type: 'text' as const, text: RESULT_TEXTS[code] }];
  const outcome = isUnknown ? code : 'cancelled';
  return { runId, type: 'tool-result', callId, outcome, content, ...(!isUnknown && { code }) };
}

/** The result of a call that never started. The call cannot have had an effect. */
export function ofUnstarted(entry: ToolResultEntry): ToolResultEntry {
  const { runId, callId, outcome, code } = entry;
  if (outcome === 'unknown' && runId !== null) return syntheticResult(runId, callId, 'skipped');
  return outcome === code && code === 'cancelled' ? { ...entry, content: [{ type: 'text', text: UNSTARTED }] } : entry;
}

export const syntheticResults = (runId: string | null, callIds: readonly string[], code: ResultCode): NewEntry[] =>
  callIds.map((callId) => syntheticResult(runId, callId, code));

/** Appends without any of these types need no check. */
const CHECKED_TYPES: ReadonlySet<NewEntry['type']> = new Set<NewEntry['type']>([
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
  'rewound',
]);

/** The end that the last run did not write, and the results of its calls. Suspended calls keep waiting. */
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
  /** Made when first needed; most appends need none. */
  #answered: Set<string> | undefined;
  #runId: string;
  #cycle: LogState['cycle'];
  /** The last end was skipped. */
  #skippedEnd = false;

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
      case 'rewound':
        this.#closeCycle(true);
        this.#cycle = 'none';
        break;
      case 'run-stop':
      case 'run-suspended':
        this.#skippedEnd = !this.#ends(entry);
        if (this.#skippedEnd) return;
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
        if (entry.why === 'resume' && !this.#needsContinuation()) return;
        break;
      case 'checkpoint':
        if (this.#skippedEnd && entry.boundary === 'RunFinished') return;
    }
    this.entries.push(entry);
  }

  /** A new request closes a waiting cycle; a resumption continues it. */
  #begin(entry: NewEntry): void {
    this.#closeCycle(entry.type === 'run-started');
    this.#runId = entry.runId ?? '';
    this.#cycle = 'running';
    this.entries.push(entry);
  }

  /** Writes the end that the last run did not write. */
  #closeCycle(isWaitOver: boolean): void {
    const open = this.#cycle === 'running' || (this.#cycle === 'suspended' && isWaitOver);
    if (open) for (const end of lostEnd(this.#logState)) this.add(end);
  }

  #ends({ runId, type }: NewEntry): boolean {
    if (runId !== this.#runId) return false;
    return this.#cycle === 'running' || (this.#cycle === 'suspended' && type === 'run-stop');
  }

  /** The same entry from an append that a cancel gave up: it was stored since, or comes earlier in this append. */
  #isDecided({ callId, suspension }: Extract<NewEntry, { type: 'decision' }>): boolean {
    if (this.#logState.calls.get(callId)?.decisions.has(suspension)) return true;
    return this.entries.some(
      (entry) => entry.type === 'decision' && entry.callId === callId && entry.suspension === suspension,
    );
  }

  #isQueued(messageId: string): boolean {
    const isStored = this.#logState.queue.some((message) => message.messageId === messageId);
    return isStored || this.entries.some((entry) => isQueuing(entry, messageId));
  }

  #hasStarted(callId: string): boolean {
    if (this.#logState.calls.get(callId)?.ran) return true;
    return this.entries.some((entry) => entry.type === 'tool-started' && entry.callId === callId);
  }

  /** The model spoke last and no call waits, so the continuation text is needed. */
  #needsContinuation(): boolean {
    const { open, calls } = this.#logState;
    const waits = [...open].some((id) => calls.get(id)?.status === 'suspended' && !this.#answered?.has(id));
    return !waits && (this.#modelSpokeLast || this.entries.some(({ type }) => type === 'agent-output'));
  }

  #awaited(callId: string): boolean {
    if (this.#answered?.has(callId)) return false;
    const record = this.#logState.calls.get(callId);
    if (!record) return this.entries.some((entry) => isCall(entry, callId));
    return !isOver(record);
  }
}

const isQueuing = (entry: NewEntry, messageId: string): boolean =>
  entry.type === 'message-queued' && entry.messageId === messageId;
const isCall = (entry: NewEntry, callId: string): boolean =>
  entry.type === 'agent-output' && entry.item.type === 'tool-call' && entry.item.callId === callId;

/** A checkpoint marks its append. If a step took several appends, the last checkpoint marks all of them. */
function withOneCheckpoint(entries: readonly NewEntry[]): readonly NewEntry[] {
  const first = entries.findIndex(isCheckpoint);
  if (first < 0 || first === entries.length - 1) return entries;
  return [...entries.filter((entry) => !isCheckpoint(entry)), ...entries.filter(isCheckpoint).slice(-1)];
}

const isCheckpoint = ({ type }: NewEntry): boolean => type === 'checkpoint';

/** The entries that can follow the durable ones. `modelSpokeLast`: the last message is the model's. */
export function reconcile(
  logState: LogState,
  entries: readonly NewEntry[],
  modelSpokeLast: boolean,
): readonly NewEntry[] {
  if (!entries.some(({ type }) => CHECKED_TYPES.has(type))) return withOneCheckpoint(entries);
  const reconciler = new Reconciler(logState, modelSpokeLast);
  for (const entry of entries) reconciler.add(entry);
  return withOneCheckpoint(reconciler.entries);
}
