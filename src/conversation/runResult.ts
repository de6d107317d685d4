/** The result of a run, read off its entries. Rule: it says nothing that the log does not say. */
import {
  type Knowledge,
  type LogEntry,
  nothingSpent,
  type PendingCall,
  type RunOutput,
  spentIn,
  stopReason,
  together,
} from '../../machines/internal.ts';
import type { SubAgents } from '../runtime/subAgentPort.ts';
import type { RunResult } from './run.ts';

const SUBTYPES: { [cause: string]: RunResult['subtype'] } = {
  max_turns: 'error_max_turns',
  max_budget: 'error_max_budget_usd',
};

function subtypeOf({ termination, cause }: RunOutput): RunResult['subtype'] {
  if (termination === 'NaturalEnd' || termination === 'PluginRequested') return 'success';
  if (termination === 'Suspended') return 'suspended';
  return (termination === 'Stopped' && cause !== undefined && SUBTYPES[cause]) || 'error_during_execution';
}

/** Calls that wait for a decision, those of sub-agents behind the conversation's own. */
export function pendingCalls(known: Knowledge, subAgents?: SubAgents): PendingCall[] {
  const pending: PendingCall[] = [];
  for (const callId of known.open) {
    const record = known.calls.get(callId);
    if (record?.status !== 'suspended' || record.decisions.has(record.suspension)) continue;
    if (subAgents?.waitsWithin(record)) continue;
    const { name, args, reason, payload, suspension } = record;
    const call = { callId, name, args, reason, suspension, path: [callId] };
    pending.push(payload === undefined ? call : { ...call, payload });
  }
  return subAgents ? [...pending, ...subAgents.pending] : pending;
}

/** Calls whose outcome is unknown and not settled, those of sub-agents behind the conversation's own. */
export function unsettledCalls(known: Knowledge, subAgents?: SubAgents): PendingCall[] {
  const own = [...known.unsettled].flatMap((callId) => {
    const record = known.calls.get(callId);
    if (!record) return [];
    const { name, args, suspension } = record;
    return [{ callId, name, args, reason: 'unknown', suspension, path: [callId] }];
  });
  return [...own, ...(subAgents?.unsettled ?? [])];
}

/** A run whose message was given back before it began. */
export const givenBack = (runId: string): RunOutput => ({
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
  known: Knowledge,
  subAgents: SubAgents | undefined,
): RunResult {
  const { runId, termination, cause, error } = output;
  let spent = nothingSpent;
  let turns = 0;
  let text = '';
  let open = '';
  const callIds = new Set<string>();
  for (const entry of entries) {
    const cost = spentIn(entry);
    if (cost) spent = together(spent, cost);
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
    const record = known.calls.get(callId);
    if (!record) return [];
    const { name, outcome, code, status } = record;
    // Behind a call that waits, one that has not begun waits for its turn.
    if (status === 'called' && termination === 'Suspended') {
      return [{ callId, name, outcome: 'suspended', code: 'not_started' }];
    }
    const said = status === 'ended' ? (outcome ?? 'unknown') : status === 'suspended' ? 'suspended' : 'unknown';
    return [{ callId, name, outcome: said, ...(code !== undefined && status === 'ended' && { code }) }];
  });
  return {
    runId,
    termination,
    ...(cause !== undefined && { cause }),
    reason: stopReason({ termination, ...(cause !== undefined && { cause }) }),
    subtype: subtypeOf(output),
    text: open === '' ? text : open,
    turns,
    ...spent,
    pending: pendingCalls(known, subAgents),
    ...(error && { error }),
    calls,
  };
}
