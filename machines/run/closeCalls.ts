/**
 * The results that a run writes for calls it does not finish (docs/internals/lifecycle.md, Cancellation). Invariant:
 * after a run each of its calls has exactly one result or is suspended. A result says what is known.
 */

import {
  type HeldDecision,
  noOpenCalls,
  type OpenCalls,
  type Slot,
  type SuspendedCall,
  type ToolCallOutput,
  type ToolResultEntry,
} from '../calls.ts';
import { afterReplay, matches, withGate } from '../tools/openCalls.ts';
import { RESULT_TEXTS, UNSTARTED } from '../transcript/texts.ts';
import type { NewEntry } from '../vocabulary.ts';
import type { Lost, RunContext } from './context.ts';

type Code = keyof typeof RESULT_TEXTS;

function result(runId: string, callId: string, code: Code): ToolResultEntry {
  const isUnknown = code === 'unknown';
  const content = [{ type: 'text' as const, text: RESULT_TEXTS[code] }];
  const outcome = isUnknown ? code : 'cancelled';
  return { runId, type: 'tool-result', callId, outcome, content, ...(!isUnknown && { code }) };
}

/** The result of a call that never started. The call cannot have had an effect. */
export function ofUnstarted(entry: ToolResultEntry): ToolResultEntry {
  const { runId, callId, outcome, code } = entry;
  if (outcome === 'unknown' && runId !== null) return result(runId, callId, 'skipped');
  return outcome === code && code === 'cancelled' ? { ...entry, content: [{ type: 'text', text: UNSTARTED }] } : entry;
}

export const syntheticResults = (runId: string, callIds: readonly string[], code: Code): NewEntry[] =>
  callIds.map((callId) => result(runId, callId, code));

/** The calls that a failed append affects. */
function lostOf(lost: Lost) {
  const ids = (type: NewEntry['type']): Set<string> => {
    const found = new Set<string>();
    for (const entry of lost) {
      if (entry.type !== type) continue;
      if (entry.type === 'agent-output') {
        if (entry.item.type === 'tool-call') found.add(entry.item.callId);
      } else if ('callId' in entry && entry.callId !== undefined) found.add(entry.callId);
    }
    return found;
  };
  return {
    decisions: ids('decision'),
    calls: ids('agent-output'),
    starts: ids('tool-started'),
    suspensions: ids('tool-suspended'),
  };
}

function codeOf(slot: Slot, ends: 'cancelled' | 'kept', lost: ReturnType<typeof lostOf>): Code | undefined {
  const { callId } = slot.call;
  if (lost.calls.has(callId)) return undefined;
  if (lost.starts.has(callId)) return 'skipped';
  if (lost.suspensions.has(callId)) return 'unknown';
  if (slot.status === 'running')
    return ends === 'kept' && slot.output?.outcome === 'suspended' ? undefined : 'cancelled';
  if (slot.status === 'queued') return 'skipped';
  return slot.status === 'suspended' && ends === 'cancelled' ? 'cancelled' : undefined;
}

/**
 * Results for calls whose result was lost. A result that says that a call did not run is written again, together with the use
 * of the durable decision that denied it. The result of a tool itself is unknown.
 */
function lostResults(runId: string, lost: Lost, { decisions }: ReturnType<typeof lostOf>) {
  const denied = new Set<string>();
  return lost.flatMap((entry): Extract<NewEntry, { type: 'tool-result' | 'decision-consumed' }>[] => {
    if (entry.type === 'decision-consumed') return denied.has(entry.callId) ? [entry] : [];
    if (entry.type !== 'tool-result') return [];
    const { callId, outcome, code } = entry;
    if (code === 'denied' && !decisions.has(callId)) denied.add(callId);
    return [outcome === 'cancelled' || code === 'denied' ? entry : result(runId, callId, 'unknown')];
  });
}

/** Replayed calls with an outcome that plugins have not handled yet. */
export const heardOf = ({ concluded, replaying }: RunContext): readonly ToolCallOutput[] =>
  concluded.filter(({ callId }) => replaying.includes(callId));

/** The decision with which a call was replayed counts as used. */
function consumed({ runId, suspended, reruns, decisions }: RunContext, callId: string): NewEntry[] {
  const again = reruns.find(({ call, decision }) => decision && call.callId === callId);
  const decided = suspended.find(({ call }) => call.callId === callId);
  const used = again ?? (decided && decisions.find((candidate) => matches(candidate, decided)));
  return used ? [{ runId, type: 'decision-consumed', callId, suspension: used.suspension }] : [];
}

/**
 * Results for every call that is open when a run ends early, in call order. A cancel also ends suspended calls; an error
 * leaves them waiting.
 */
export function closeCalls(context: RunContext, ends: 'cancelled' | 'kept', lost: Lost = []): NewEntry[] {
  const { runId, suspended, kept, replaying, reruns, calls } = context;
  const gone = lostOf(lost);
  const waiting = new Set(suspended.map(({ call }) => call.callId));
  // A collected round has passed on its queued calls: those that still wait are kept, or were suspended since.
  const slots = calls.length > 0 ? context.slots : context.slots.filter(({ status }) => status !== 'queued');
  const inRound = new Set(slots.map((slot) => slot.call.callId));
  const again = lostResults(runId, lost, gone);
  const told = new Set(again.map(({ callId }) => callId));
  const entries: NewEntry[] = [...again];
  const close = (callId: string, code: Code): void => {
    if (told.has(callId)) return;
    const known = heardOf(context).find((known) => known.callId === callId);
    const waits = known && !known.result && ends === 'kept' && !gone.suspensions.has(callId);
    if (!waits) entries.push(known?.result ?? result(runId, callId, code));
    // A retry of a call with an unknown outcome uses the earlier decision.
    if (known && code !== 'unknown') entries.push(...consumed(context, callId));
  };
  for (const {
    call: { callId },
  } of suspended) {
    if (inRound.has(callId)) continue;
    if (ends === 'kept' && gone.decisions.has(callId)) continue;
    if (gone.suspensions.has(callId)) close(callId, 'unknown');
    else if (ends === 'cancelled' || replaying.includes(callId)) close(callId, 'cancelled');
  }
  for (const { call } of reruns) close(call.callId, replaying.includes(call.callId) ? 'cancelled' : 'unknown');
  for (const slot of slots) {
    const { callId } = slot.call;
    if (ends === 'kept' && slot.status === 'suspended' && gone.decisions.has(callId)) continue;
    const decided = slot.status === 'suspended' && !waiting.has(callId);
    // The call has ended, and only a plugin had not handled it yet.
    if (slot.output?.result && !gone.calls.has(callId)) {
      entries.push(slot.output.result);
      continue;
    }
    const code = replaying.includes(callId) ? 'cancelled' : decided ? undefined : codeOf(slot, ends, gone);
    if (code) close(callId, code);
  }
  for (const call of calls) {
    if (!inRound.has(call.callId) && !gone.calls.has(call.callId)) close(call.callId, 'skipped');
  }
  for (const { call } of kept) close(call.callId, replaying.includes(call.callId) ? 'cancelled' : 'skipped');
  return entries;
}

/** Without the decisions of calls that were suspended and have ended. Those are used or stale, and not early. */
function withoutStale(context: RunContext, decisions: OpenCalls['decisions'], waiting: readonly SuspendedCall[]) {
  const came = [...context.suspended, ...waitingInRound(context)];
  const isOf = (calls: readonly SuspendedCall[], held: HeldDecision): boolean =>
    calls.some((call) => matches(held, call));
  return decisions.filter((held) => !isOf(came, held) || isOf(waiting, held));
}

/** Nothing stays open when a run is cancelled. */
export const nothingLeft = (context: RunContext): OpenCalls => ({
  ...noOpenCalls,
  decisions: withoutStale(context, afterReplay(context, heardOf(context)).decisions, []),
});

/** Calls of a round that was stopped while plugins handled their suspension. */
const waitingInRound = ({ slots }: RunContext): SuspendedCall[] =>
  slots.flatMap(({ status, call, output }) =>
    status === 'running' && output?.outcome === 'suspended'
      ? [{ call: withGate(call), suspension: output.suspension }]
      : [],
  );

/** What stays open when a run ends with an error: suspended calls that were not being replayed. */
export function leftWaiting(context: RunContext): OpenCalls {
  const gone = lostOf(context.end.lost ?? []);
  const heard = heardOf(context);
  const open = afterReplay(context, heard);
  const stays = ({ call: { callId } }: SuspendedCall): boolean =>
    gone.decisions.has(callId) || heard.some((known) => known.callId === callId) || !context.replaying.includes(callId);
  const waiting = [...open.suspended.filter(stays), ...waitingInRound(context)];
  const suspended = waiting.filter(({ call }) => !gone.suspensions.has(call.callId));
  const decisions = open.decisions.filter(({ callId }) => !gone.decisions.has(callId));
  return { ...noOpenCalls, suspended, decisions: withoutStale(context, decisions, waiting) };
}
