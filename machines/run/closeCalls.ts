/**
 * The fate of the calls that are open when a run ends early (docs/internals/lifecycle.md, Cancellation). `FATES` decides,
 * one row for each standing of a call. Invariant: after a run each of its calls has exactly one result or is suspended.
 */

import {
  type HeldDecision,
  noOpenCalls,
  type OpenCalls,
  type RoundCall,
  type Slot,
  type SuspendedCall,
  type ToolCallOutput,
} from '../calls.ts';
import { syntheticResult } from '../log/reconcile.ts';
import { afterReplay, matches, withGate } from '../tools/openCalls.ts';
import type { NewEntry } from '../vocabulary.ts';
import type { Lost, RunContext } from './runContext.ts';

/** A cancel ends every call. Any other early end leaves suspended calls waiting. */
export type Ending = 'cancelled' | 'stopped';

/** The list that a call is in. A call of the round is `called` until the round has it. */
export type Place = 'called' | 'queued' | 'running' | 'suspendedInRound' | 'suspended' | 'rerun' | 'keptTurn';

/** `concluded` and `suspending`: the call has an outcome, and plugins still handle it. */
export type Progress = 'waiting' | 'executing' | 'concluded' | 'suspending';

/** `open` writes nothing. `suspended` and `concluded` keep the outcome of the call. The others are results of the run. */
export type Fate = 'open' | 'suspended' | 'concluded' | 'cancelled' | 'skipped' | 'unknown';

/** The entries whose loss changes a fate. If several of a call were lost, the first of this list counts. */
export const LOST_ENTRIES = ['decision', 'agent-output', 'tool-started', 'tool-suspended'] as const;
export type LostEntry = (typeof LOST_ENTRIES)[number];

export type FateRow = Record<Ending, Fate> & Partial<Record<LostEntry, Fate>>;

const suspendedCall = {
  waiting: { cancelled: 'cancelled', stopped: 'open', decision: 'open', 'tool-suspended': 'unknown' },
  executing: { cancelled: 'cancelled', stopped: 'cancelled', decision: 'open' },
  concluded: { cancelled: 'concluded', stopped: 'concluded', decision: 'open' },
} as const;

const callAtGate = {
  executing: { cancelled: 'cancelled', stopped: 'cancelled' },
  concluded: { cancelled: 'concluded', stopped: 'concluded' },
  suspending: { cancelled: 'cancelled', stopped: 'suspended', 'tool-suspended': 'cancelled' },
} as const;

/** The fate of a call by its place, its progress, and how the run ends or which entry of the call was lost. */
export const FATES: Record<Place, Partial<Record<Progress, FateRow>>> = {
  called: {
    waiting: { cancelled: 'skipped', stopped: 'skipped', 'agent-output': 'open' },
  },
  queued: {
    waiting: { cancelled: 'skipped', stopped: 'skipped' },
  },
  running: {
    executing: { cancelled: 'cancelled', stopped: 'cancelled', 'tool-started': 'skipped' },
    concluded: { cancelled: 'concluded', stopped: 'concluded' },
    suspending: { cancelled: 'cancelled', stopped: 'suspended', 'tool-suspended': 'unknown' },
  },
  suspendedInRound: {
    ...suspendedCall,
    suspending: { cancelled: 'cancelled', stopped: 'suspended', decision: 'open', 'tool-suspended': 'cancelled' },
  },
  suspended: {
    ...suspendedCall,
    suspending: { cancelled: 'cancelled', stopped: 'suspended', decision: 'open', 'tool-suspended': 'unknown' },
  },
  rerun: {
    waiting: { cancelled: 'unknown', stopped: 'unknown' },
    ...callAtGate,
  },
  keptTurn: {
    waiting: { cancelled: 'skipped', stopped: 'skipped' },
    ...callAtGate,
  },
};

/** The types of the lost entries of each call. */
type LostByCall = ReadonlyMap<string, ReadonlySet<string>>;

function lostByCall(lost: Lost): LostByCall {
  const types = new Map<string, Set<string>>();
  for (const entry of lost) {
    const { callId } = entry.type === 'agent-output' && entry.item.type === 'tool-call' ? entry.item : callIdIn(entry);
    if (callId !== undefined) types.set(callId, (types.get(callId) ?? new Set()).add(entry.type));
  }
  return types;
}

const callIdIn = (entry: NewEntry): { callId?: string | undefined } => ('callId' in entry ? entry : {});

interface OpenCall {
  callId: string;
  place: Place;
  progress: Progress;
  outcome?: ToolCallOutput | undefined;
}

/** Replayed calls with an outcome that plugins have not handled yet. */
export const unhandledOutcomes = ({ concluded, replaying }: RunContext): readonly ToolCallOutput[] =>
  concluded.filter(({ callId }) => replaying.includes(callId));

function openCall({ callId }: RoundCall, place: Place, active: boolean, outcome: ToolCallOutput | undefined): OpenCall {
  if (!active) return { callId, place, progress: 'waiting' };
  const progress = outcome?.result ? 'concluded' : outcome?.outcome === 'suspended' ? 'suspending' : 'executing';
  return { callId, place, progress, outcome };
}

/** The calls that are open at the end of the run, in the order of their results. */
function openCallsOf(context: RunContext): OpenCall[] {
  const { suspended, reruns, kept, calls, replaying } = context;
  const outcomes = new Map(unhandledOutcomes(context).map((output) => [output.callId, output]));
  const atGate =
    (place: Place) =>
    ({ call }: { call: RoundCall }) =>
      openCall(call, place, replaying.includes(call.callId), outcomes.get(call.callId));
  const isSuspended = idsOf(suspended);
  const inSlot = (slot: Slot): OpenCall[] => {
    if (slot.status === 'running') return [openCall(slot.call, 'running', true, slot.output)];
    if (slot.status === 'queued') return [openCall(slot.call, 'queued', false, undefined)];
    return slot.status === 'suspended' && isSuspended.has(slot.call.callId) ? [atGate('suspendedInRound')(slot)] : [];
  };
  // After a round its queued calls are in `kept`, or were suspended since.
  const slots = calls.length > 0 ? context.slots : context.slots.filter(({ status }) => status !== 'queued');
  const inRound = idsOf(slots);
  const notInRound = calls.filter(({ callId }) => !inRound.has(callId) && !isSuspended.has(callId));
  return [
    ...suspended.filter(({ call }) => !inRound.has(call.callId)).map(atGate('suspended')),
    ...reruns.map(atGate('rerun')),
    ...slots.flatMap(inSlot),
    ...notInRound.map((call) => openCall(call, 'called', false, undefined)),
    ...kept.map(atGate('keptTurn')),
  ];
}

const idsOf = (calls: readonly { call: RoundCall }[]): ReadonlySet<string> =>
  new Set(calls.map(({ call }) => call.callId));

function fateOf({ callId, place, progress }: OpenCall, ending: Ending, lost: LostByCall): Fate {
  const row = FATES[place][progress];
  const types = lost.get(callId);
  const first = LOST_ENTRIES.find((type) => types?.has(type) && row?.[type]);
  return row?.[first ?? ending] ?? 'open';
}

/** The results for every call that is open when a run ends early. */
export function closeCalls(context: RunContext, ending: Ending, lost: Lost = []): NewEntry[] {
  const lostTypes = lostByCall(lost);
  const rewritten = rewrittenResults(context.runId, lost, lostTypes);
  const hasResult = new Set(rewritten.map(({ callId }) => callId));
  const calls = openCallsOf(context).filter(({ callId }) => !hasResult.has(callId));
  return [...rewritten, ...calls.flatMap((call) => fateEntries(context, call, fateOf(call, ending, lostTypes)))];
}

function fateEntries(context: RunContext, { callId, outcome }: OpenCall, fate: Fate): NewEntry[] {
  if (fate === 'open') return [];
  // A retry of a call with an unknown outcome uses the earlier decision.
  if (fate === 'unknown') return [syntheticResult(context.runId, callId, fate)];
  const consumed = outcome ? consumedDecision(context, callId) : [];
  if (fate === 'suspended') return consumed;
  if (fate === 'concluded') return outcome?.result ? [outcome.result, ...consumed] : consumed;
  return [syntheticResult(context.runId, callId, fate), ...consumed];
}

/** The decision with which a call was replayed counts as used. */
function consumedDecision({ runId, suspended, reruns, decisions }: RunContext, callId: string): NewEntry[] {
  const rerun = reruns.find(({ call, decision }) => decision && call.callId === callId);
  const replayed = suspended.find(({ call }) => call.callId === callId);
  const used = rerun ?? (replayed && decisions.find((candidate) => matches(candidate, replayed)));
  return used ? [{ runId, type: 'decision-consumed', callId, suspension: used.suspension }] : [];
}

/**
 * Results for calls whose result was lost. A result of a call that did not run is written again, with the use of the
 * durable decision that denied it. The result of a tool becomes unknown.
 */
function rewrittenResults(runId: string, lost: Lost, lostTypes: LostByCall) {
  const denied = new Set<string>();
  return lost.flatMap((entry): Extract<NewEntry, { type: 'tool-result' | 'decision-consumed' }>[] => {
    if (entry.type === 'decision-consumed') return denied.has(entry.callId) ? [entry] : [];
    if (entry.type !== 'tool-result') return [];
    const { callId, outcome, code } = entry;
    if (code === 'denied' && !lostTypes.get(callId)?.has('decision')) denied.add(callId);
    return [outcome === 'cancelled' || code === 'denied' ? entry : syntheticResult(runId, callId, 'unknown')];
  });
}

/** The calls and decisions that stay open after the run: calls that keep waiting, and unused decisions that may still apply. */
export function openCallsAfter(context: RunContext, ending: Ending, lost: Lost = []): OpenCalls {
  const lostTypes = lostByCall(lost);
  const isLost = (callId: string, type: LostEntry): boolean => lostTypes.get(callId)?.has(type) ?? false;
  const fates = new Map(openCallsOf(context).map((call) => [call.callId, fateOf(call, ending, lostTypes)]));
  const hasFate = (callId: string, ...some: Fate[]): boolean => some.includes(fates.get(callId) ?? 'concluded');
  const open = afterReplay(context, unhandledOutcomes(context));
  const suspending = suspendingInRound(context);
  const suspended = [...open.suspended, ...suspending].filter(
    ({ call: { callId } }) => hasFate(callId, 'open', 'suspended') && !isLost(callId, 'tool-suspended'),
  );
  // Early decisions stay, and so does a decision for a suspension that was lost.
  const mayApply = (held: HeldDecision): boolean =>
    hasFate(held.callId, 'open', 'suspended', 'unknown') ||
    ![...context.suspended, ...suspending].some((call) => matches(held, call));
  const decisions = open.decisions.filter((held) => !isLost(held.callId, 'decision') && mayApply(held));
  return { ...noOpenCalls, suspended, decisions };
}

/** Calls of a stopped round whose suspension plugins have not handled yet. */
const suspendingInRound = ({ slots }: RunContext): SuspendedCall[] =>
  slots.flatMap(({ status, call, output }) =>
    status === 'running' && output?.outcome === 'suspended'
      ? [{ call: withGate(call), suspension: output.suspension }]
      : [],
  );
