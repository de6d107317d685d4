/**
 * The sub-agents that a place of a log knows, for whoever copies the log. Rule: a copy holds all that was done before
 * the place, so that nothing is done twice: where it is not known how far a sub-agent was, the copy goes on to where
 * its parent's log says so next. What waited there for a person waits in the copy.
 */
import { applyEntry, type CallRecord, emptyLogState, type LogEntry, subAgentUsageOf } from '../../machines/internal.ts';
import { WAITS } from '../runtime/subAgentPort.ts';
import { fieldsOf, waitingPlace } from './subAgentRecords.ts';
import { childIdOf, tasksOf } from './tasks.ts';

export interface ForkedSubAgent {
  callId: string;
  taskId: string;
  from: string;
  to: string;
  ended: boolean;
}

/** By their ids in the log, which is that of `from`; a sub-agent that none of a call's tasks leads to is nobody's. */
export type ForkedSubAgents = ReadonlyMap<string, ForkedSubAgent>;

interface ForkedFamily {
  family: ForkedSubAgents;
  /** How many entries of a sub-agent's log belong to the copy; all where nothing says so. */
  placeOf(forked: ForkedSubAgent, log: readonly LogEntry[]): number;
}

/** What a person had decided about the sub-agent when the call was decided is known there. */
function withDecision(place: number, { suspension, decisions }: CallRecord, log: readonly LogEntry[]): number {
  const decision = decisions.get(suspension);
  const { decided } = fieldsOf(decision?.action === 'answer' ? decision.payload : undefined);
  const next = log[place];
  return next?.type === 'decision' && next.callId === decided ? place + 1 : place;
}

/** Where the entries behind the place say of the sub-agent how far it is. */
function nextPlace(rest: readonly LogEntry[], { callId, taskId, from }: ForkedSubAgent): number | undefined {
  for (const entry of rest) {
    if (entry.type === 'sub-agent' && entry.child === from && entry.phase === 'ended') return undefined;
    if (entry.type === 'tool-suspended' && entry.callId === callId) return waitingPlace(entry.payload, taskId);
    const counted = subAgentUsageOf(entry);
    if (counted?.conversationId === from) return counted.upTo;
  }
  return undefined;
}

/** Those that the first `place` entries know of, under the ids that they have as sub-agents of `to`. */
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
  const placeOf = (forked: ForkedSubAgent, own: readonly LogEntry[]): number => {
    const record = logState.calls.get(forked.callId);
    if (place >= log.length || forked.ended || !record || record.status === 'ended') return own.length;
    const waits = record.status === 'suspended' && record.reason === WAITS;
    const until = waits ? waitingPlace(record.payload, forked.taskId) : nextPlace(log.slice(place), forked);
    if (until === undefined) return own.length;
    return Math.min(waits ? withDecision(until, record, own) : until, own.length);
  };
  return { family, placeOf };
}

/** An entry of the log, with the ids that its sub-agents have in the copy. */
export function withForkedIds(entry: LogEntry, family: ForkedSubAgents): LogEntry {
  const counted = subAgentUsageOf(entry);
  const forked = family.get(entry.type === 'sub-agent' ? entry.child : (counted?.conversationId ?? ''));
  if (!forked) return entry;
  if (entry.type === 'sub-agent') return { ...entry, child: forked.to };
  if (entry.type !== 'extension') return entry;
  return { ...entry, value: { ...fieldsOf(entry.value), conversationId: forked.to } };
}
