/**
 * Computes the start of a restored conversation (docs/internals/model.md, Effect Records). Invariant: the last durable
 * record of a call decides. A call that may have run does not run again, unless its tool allows it or a person decides
 * so. Every repair is an entry.
 */

import type { Rerun } from '../calls.ts';
import { type ConversationInput, runOf } from '../conversation/context.ts';
import type { Settings } from '../run/runContext.ts';
import { PROCESS_ENDED, PROCESS_ENDED_BEFORE } from '../transcript/texts.ts';
import type { NewEntry } from '../vocabulary.ts';
import { type CallRecord, expiredEntries, isRetried, rerunOf } from './callRecord.ts';
import { countersOf, type LogState, openCalls } from './logState.ts';

/** The result of a call that was open when the process ended. A started call of an idempotent tool runs again instead. */
function repairOf(record: CallRecord, logState: LogState, idempotent: (name: string) => boolean): NewEntry[] {
  const { callId, runId, status } = record;
  if (status === 'started') {
    if (idempotent(record.name)) return [];
    const content = [{ type: 'text' as const, text: PROCESS_ENDED }];
    return [{ runId, type: 'tool-result', callId, outcome: 'unknown', content }];
  }
  if (status !== 'called' || logState.cycle === 'suspended') return [];
  const content = [{ type: 'text' as const, text: PROCESS_ENDED_BEFORE }];
  return [{ runId, type: 'tool-result', callId, outcome: 'cancelled', content, code: 'restart' }];
}

/** The message of a promotion whose append was interrupted: its run has begun, and it is still queued. */
function cutPromotion({ queue, runId }: LogState): NewEntry[] {
  const message = queue.find(({ messageId }) => runOf(messageId) === runId);
  return message ? [{ runId, type: 'user-message', ...message, kind: 'followUp' }] : [];
}

/** Early decisions of calls that have their result or get it from these repairs. */
function expiries({ calls, early, open, runId }: LogState, repaired: readonly NewEntry[]): NewEntry[] {
  const closed = new Set(repaired.flatMap((entry) => (entry.type === 'tool-result' ? [entry.callId] : [])));
  const over = [...early].filter((callId) => !open.has(callId) || closed.has(callId));
  return expiredEntries(
    runId,
    over.map((callId) => ({ callId, suspension: (calls.get(callId)?.suspension ?? 0) + 1 })),
  );
}

/** The entries that complete the log of a process that ended early. */
export function repairs(logState: LogState, idempotent: (name: string) => boolean): NewEntry[] {
  const entries: NewEntry[] = [];
  for (const callId of logState.open) {
    const record = logState.calls.get(callId);
    if (record) entries.push(...repairOf(record, logState, idempotent));
  }
  entries.push(...expiries(logState, entries));
  if (logState.cycle !== 'running') return entries;
  return [
    ...entries,
    ...cutPromotion(logState),
    { runId: logState.runId, type: 'run-stop', reason: 'interrupted', cause: 'crash' },
  ];
}

/** Calls with an unknown outcome that the host wants to run again. */
export const retriesOf = (logState: LogState): Rerun[] => [...logState.calls.values()].filter(isRetried).map(rerunOf);

/** The input of the conversation's chart, from a log at rest. */
export const restored = (logState: LogState, settings: Settings): ConversationInput => ({
  settings,
  open: openCalls(logState),
  retries: retriesOf(logState),
  counters: countersOf(logState),
  queue: logState.queue,
  runId: logState.runId,
  waiting: logState.cycle === 'suspended',
});

/** A crash ended the last run, and no run has continued its cycle. A run without its message opened no cycle. */
export const isCutOff = ({ asked, cycle, stop }: LogState): boolean =>
  asked && cycle === 'stopped' && stop?.cause === 'crash';
