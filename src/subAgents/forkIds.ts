/**
 * Finds the sub-agents that exist at a position of a log, for a fork of that log. Rule: the fork contains everything
 * done before the position, so nothing runs twice. If the parent's log does not record the position of a sub-agent, its
 * copy extends to the next position that the log records. A call that waited for a person waits in the copy too.
 */
import { applyEntry, type CallRecord, emptyLogState, type LogEntry, subAgentUsageOf } from '../../machines/internal.ts';
import { WAITS } from '../runtime/subAgentPort.ts';
import { childIdOf, tasksOf } from './spawnTasks.ts';
import { fieldsOf, waitingPlace } from './subAgentRecords.ts';

export interface ForkedSubAgent {
  callId: string;
  taskId: string;
  from: string;
  to: string;
  ended: boolean;
}

/** By the sub-agent's id in the log of `from`. A sub-agent without a task in any call has no entry. */
export type ForkedSubAgents = ReadonlyMap<string, ForkedSubAgent>;

interface ForkedFamily {
  family: ForkedSubAgents;
  /** The number of entries of a sub-agent's log that belong to the copy; all of them if nothing limits it. */
  placeOf(forked: ForkedSubAgent, log: readonly LogEntry[]): number;
}

/** Extends the copy by the decision that led to the decision on the outer call. */
function withDecision(place: number, { suspension, decisions }: CallRecord, log: readonly LogEntry[]): number {
  const decision = decisions.get(suspension);
  const { decided } = fieldsOf(decision?.action === 'answer' ? decision.payload : undefined);
  const next = log[place];
  return next?.type === 'decision' && next.callId === decided ? place + 1 : place;
}

/** The position that a later entry of the parent's log records for the sub-agent. */
function nextPlace(rest: readonly LogEntry[], { callId, taskId, from }: ForkedSubAgent): number | undefined {
  for (const entry of rest) {
    if (entry.type === 'sub-agent' && entry.child === from && entry.phase === 'ended') return undefined;
    if (entry.type === 'tool-suspended' && entry.callId === callId) return waitingPlace(entry.payload, taskId);
    const usageChange = subAgentUsageOf(entry);
    if (usageChange?.conversationId === from) return usageChange.upTo;
  }
  return undefined;
}

/** The sub-agents that the first `place` entries mention, with their ids as sub-agents of `to`. */
export function forkedSubAgents(log: readonly LogEntry[], place: number, from: string, to: string): ForkedFamily {
  const logState = emptyLogState();
  const family = new Map<string, ForkedSubAgent>();
  for (const entry of log.slice(0, place)) {
    applyEntry(logState, entry);
    if (entry.type !== 'sub-agent') continue;
    const { callId, child: id } = entry;
    const task = tasksOf(logState.calls.get(callId)?.args ?? null).find(
      (each) => childIdOf(from, callId, each.id) === id,
    );
    const forked = family.get(id);
    if (forked) forked.ended ||= entry.phase === 'ended';
    else if (task) {
      const ended = entry.phase === 'ended';
      family.set(id, { callId, taskId: task.id, from: id, to: childIdOf(to, callId, task.id), ended });
    }
  }
  const placeOf = (forked: ForkedSubAgent, childLog: readonly LogEntry[]): number => {
    const record = logState.calls.get(forked.callId);
    if (place >= log.length || forked.ended || !record || record.status === 'ended') return childLog.length;
    const waits = record.status === 'suspended' && record.reason === WAITS;
    const until = waits ? waitingPlace(record.payload, forked.taskId) : nextPlace(log.slice(place), forked);
    if (until === undefined) return childLog.length;
    return Math.min(waits ? withDecision(until, record, childLog) : until, childLog.length);
  };
  return { family, placeOf };
}

/** Replaces the ids of sub-agents in an entry by their ids in the copy. */
export function withForkedIds(entry: LogEntry, family: ForkedSubAgents): LogEntry {
  const usageChange = subAgentUsageOf(entry);
  const forked = family.get(entry.type === 'sub-agent' ? entry.child : (usageChange?.conversationId ?? ''));
  if (!forked) return entry;
  if (entry.type === 'sub-agent') return { ...entry, child: forked.to };
  if (entry.type !== 'extension') return entry;
  return { ...entry, value: { ...fieldsOf(entry.value), conversationId: forked.to } };
}
