/**
 * The history of a CONVERSATION, from its events alone: its queue, the waiting calls, and the run that must begin.
 * Invariant: nothing is read from the chart's own context.
 */
import type { Continued } from '../../machines/conversation/context.ts';
import type {
  ConversationInput,
  Counters,
  HeldDecision,
  NewEntry,
  QueuedMessage,
  RunChartOutput,
  RunInput,
} from '../../machines/index.ts';
import type { Trace } from './edgeTrace.ts';
import { hold } from './invariants.ts';

export const inputOf = ({ input }: Trace): ConversationInput => input as ConversationInput;
export const json = (value: unknown): string => JSON.stringify(value) ?? 'undefined';
export const same = (what: string, is: unknown, due: unknown): void =>
  hold(json(is) === json(due), `${what}: ${json(is)}, and ${json(due)} is due`);
/** `late`: the cancel no longer waits for the stop, which may still be stored or refused. */
type Place = 'opening' | 'idle' | 'busy' | 'waiting' | 'closing' | 'late' | 'superseding';
export const placeOf = ({ state }: Trace): Place =>
  state.matches({ closing: 'late' } as never)
    ? 'late'
    : ((typeof state.value === 'string' ? state.value : Object.keys(state.value)[0]) as Place);
/** Returns the state of the conversation when the event arrived. */
export const wasIn = ({ before }: Trace): Place => (before ? placeOf(before) : 'opening');

type Sent = {
  type: 'message.sent';
  messageId: string;
  content: [];
  kind: 'direct' | 'steer' | 'followUp';
  whileSuspended?: string;
};
export type Came = { type: string } & Record<string, unknown>;
export const cameOf = ({ event }: Trace): Came => (event ?? { type: 'start' }) as Came;
/** The act was withdrawn before its delivery. It leaves a trace only if it starts a run. */
export function isGivenBack(trace: Trace): boolean {
  const { type, withdrawn } = cameOf(trace);
  const at = wasIn(trace);
  return withdrawn === true && at !== 'idle' && at !== 'late' && (at !== 'waiting' || type === 'message.sent');
}
/** Returns the message that arrived, unless it was returned. */
export const sentOf = (trace: Trace): Sent | undefined =>
  trace.event?.type === 'message.sent' && !isGivenBack(trace) ? (trace.event as unknown as Sent) : undefined;
/** Returns true for a decision or settlement that is new to the log. */
export const isAccepted = (trace: Trace): boolean => ['applied', 'held'].includes(String(cameOf(trace).receipt));
export const startOf = ({ spawned: [first] }: Trace): RunInput | undefined => first?.input as RunInput | undefined;
export const sentTo = ({ sentEvents }: Trace, to: string): readonly { type: string }[] =>
  sentEvents.flatMap((sent) => (sent.to === to ? [sent.event] : []));
export const endOf = ({ event }: Trace): RunChartOutput | undefined =>
  event?.type === 'xstate.done.actor.run' ? (event as unknown as { output: RunChartOutput }).output : undefined;
export const idsOf = (calls: readonly { call: { callId: string } }[]): string[] => calls.map(({ call }) => call.callId);

/** Returns the facts of the log that a chart may have lost. The event that starts a run contains them. */
const waitsOf = (trace: Trace): Continued['waits'] => (cameOf(trace) as Came & { of?: Continued }).of?.waits;

/** Returns the queued messages that were neither delivered, promoted nor returned. */
export function queueOf(trace: Trace): QueuedMessage[] {
  const { steps: all } = trace;
  const from = all.map((step) => waitsOf(step) !== undefined).lastIndexOf(true);
  const steps = all.slice(Math.max(0, from));
  const start = all[from]?.before;
  const ids = (type: 'message-queued' | 'message-returned'): Set<string> =>
    new Set(start?.all(type).map(({ messageId }) => messageId));
  const [before, returned] = [ids('message-queued'), ids('message-returned')];
  const initial = (all[from] && waitsOf(all[from])?.queue) ?? inputOf(trace).queue;
  const queued = [...initial, ...trace.all('message-queued').filter(({ messageId }) => !before.has(messageId))];
  const removed = new Set(trace.all('message-returned').map(({ messageId }) => messageId));
  for (const messageId of returned) removed.delete(messageId);
  for (const step of steps) {
    const { trigger } = startOf(step) ?? {};
    if (trigger?.kind === 'message') removed.add(trigger.message.messageId);
    const { type, messages } = cameOf(step) as { type: string; messages?: QueuedMessage[] };
    if (type === 'steers.delivered') for (const { messageId } of messages ?? []) removed.add(messageId);
  }
  return queued.filter(({ messageId }) => !removed.has(messageId));
}

interface Calls {
  suspended: RunInput['suspended'];
  kept: RunInput['kept'];
  reruns: RunInput['reruns'];
  decisions: readonly HeldDecision[];
}
const none: Calls = { suspended: [], kept: [], reruns: [], decisions: [] };
/** Returns the calls that are open after a step and belong to no run. */
export function openOf(trace: Trace | undefined): Calls {
  if (!trace?.before) return (trace ? inputOf(trace).open : none) as Calls;
  const before = openOf(trace.before);
  const end = endOf(trace);
  if (end) {
    const { suspended, reruns, decisions } = end;
    return { suspended, reruns: end.durable ? reruns : [], kept: end.durable ? end.kept : [], decisions };
  }
  const { type, held, lost } = cameOf(trace) as { type: string; held?: HeldDecision; lost?: NewEntry[] };
  if (type === 'decision.arrived' && held && isAccepted(trace) && wasIn(trace) !== 'busy')
    return { ...before, decisions: [...before.decisions, held] };
  if (type === 'append.failed') {
    const gone = (lost ?? []).flatMap((entry) => (entry.type === 'decision' ? [entry.callId] : []));
    return { ...before, decisions: before.decisions.filter(({ callId }) => !gone.includes(callId)) };
  }
  const ended = trace.answer?.kind === 'committed' && ['closing', 'late', 'superseding'].includes(wasIn(trace));
  if (ended || (wasIn(trace) === 'late' && startOf(trace)) || rewindsAtRest(trace)) return none;
  return sentOf(trace) && wasIn(trace) === 'idle' ? { ...before, reruns: [] } : before;
}
/** Returns true for a rewind while no cycle waits. */
export const rewindsAtRest = (trace: Trace): boolean =>
  cameOf(trace).type === 'rewind.requested' && ['idle', 'late'].includes(wasIn(trace));

/**
 * Returns the calls that are open when an event arrives. A decision is unchanged here, but the log may contain it
 * without its secrets.
 */
export function openAt(trace: Trace): Calls {
  const open = openOf(trace.before);
  const waits = waitsOf(trace);
  if (!waits) return open;
  const withSecrets = (held: HeldDecision): HeldDecision =>
    open.decisions.find(
      ({ callId, suspension }) => `${callId} ${suspension}` === `${held.callId} ${held.suspension}`,
    ) ?? held;
  return { ...open, ...waits, decisions: waits.decisions.map(withSecrets) };
}

const isUndecided = ({ suspended, decisions }: Calls): boolean =>
  suspended.some(
    ({ call, suspension }) => !decisions.some((held) => held.callId === call.callId && held.suspension === suspension),
  );

/** Returns the calls that a host wants to run again and that no run has started. */
export function retriesOf(trace: Trace): string[] {
  const { before } = trace;
  if (!before) return idsOf(inputOf(trace).retries ?? []);
  const { trigger } = startOf(trace) ?? {};
  if (trigger && trigger.kind !== 'message') return [];
  const retries = retriesOf(before);
  const { type, callId, retry, lost } = cameOf(trace) as {
    type: string;
    callId?: string;
    retry?: object;
    lost?: NewEntry[];
  };
  if (type === 'outcome.settled' && callId && retry && isAccepted(trace))
    return [...retries.filter((id) => id !== callId), callId];
  if (type === 'rewind.requested' && ['idle', 'late', 'waiting'].includes(wasIn(trace))) return [];
  const gone =
    type === 'append.failed'
      ? (lost ?? []).flatMap((entry) => (entry.type === 'call-settled' ? [entry.callId] : []))
      : [];
  return retries.filter((id) => !gone.includes(id));
}

const followUpIn = (queue: readonly QueuedMessage[]): QueuedMessage | undefined =>
  queue.find(({ kind }) => kind === 'followUp');
const REASONS: Record<string, 'completed' | 'interrupted' | 'error'> = {
  NaturalEnd: 'completed',
  // This occurs only after a retry of a single call, so its conversation waits for nobody.
  Suspended: 'completed',
  PluginRequested: 'completed',
  Stopped: 'error',
  Cancelled: 'interrupted',
  Error: 'error',
};
/** Returns the followUp that begins now, by the reason for the end of the previous cycle. */
function promoted(trace: Trace, reason: 'completed' | 'interrupted' | 'error'): QueuedMessage | undefined {
  const allowed = inputOf(trace).settings.policies.promoteFollowUpOn.includes(reason);
  return allowed && trace.before ? followUpIn(queueOf(trace.before)) : undefined;
}

/** Returns the run that must begin in this step: for a message, a resumption, or none. */
export function dueRun(trace: Trace): { message?: string; resume?: true } | undefined {
  const at = wasIn(trace);
  const { type } = cameOf(trace);
  const message = sentOf(trace);
  if (at === 'opening') return undefined;
  if (at === 'idle' || (at === 'late' && !trace.answer)) {
    if (message) return { message: message.messageId };
    if (type === 'resume.requested') return { resume: true };
    const queue = waitsOf(trace)?.queue ?? (trace.before ? queueOf(trace.before) : []);
    const next = type === 'promotion.requested' ? followUpIn(queue) : undefined;
    return next && { message: next.messageId };
  }
  if (at === 'waiting') {
    if (type === 'resume.requested') return { resume: true };
    return message && !supersedes(trace) && !isUndecided(openOf(trace.before)) ? { resume: true } : undefined;
  }
  if (at === 'superseding' && trace.answer?.kind === 'committed')
    return { message: superseder(trace)?.messageId ?? '' };
  if ((at === 'closing' || at === 'late') && trace.answer?.kind === 'committed') {
    const next = promoted(trace, 'interrupted');
    return next && { message: next.messageId };
  }
  const end = endOf(trace);
  if (!end) return undefined;
  const { termination, cause } = end.end;
  if (isCut(trace)) return undefined;
  const isSuspended = termination === 'Suspended';
  if (isSuspended && isDecidedInTail(end)) return { resume: true };
  if (isSuspended && !onlyRetries(trace)) return undefined;
  const next = end.durable
    ? promoted(trace, cause === 'timeout' ? 'error' : (REASONS[termination] ?? 'error'))
    : undefined;
  return next && { message: next.messageId };
}
/** Returns true for a run that was cancelled during its suspension, so its cycle waits for nobody. */
export const isCut = (trace: Trace): boolean =>
  trace.before?.state.matches({ busy: 'cancelling' } as never) === true &&
  endOf(trace)?.end.termination === 'Suspended' &&
  !onlyRetries(trace);
/** A decision that the run accepted after its last gate is applied without a request. */
const isDecidedInTail = ({ suspended, decisions, kept, reruns }: RunChartOutput): boolean =>
  suspended.length + kept.length + reruns.length > 0 &&
  (reruns.length > 0 ||
    suspended.some(({ call, suspension }) =>
      decisions.some((held) => held.callId === call.callId && held.suspension === suspension),
    ));

export function supersedes(trace: Trace): boolean {
  const sent = sentOf(trace);
  const { whileSuspended } = inputOf(trace).settings.policies;
  return (
    wasIn(trace) === 'waiting' && sent?.kind === 'direct' && (sent.whileSuspended ?? whileSuspended) === 'denyAndRun'
  );
}

/** Returns the message that replaces the waiting cycle, unless that message was withdrawn. */
export const superseder = (trace: Trace): Sent | undefined => {
  const step = [...trace.steps].reverse().find(supersedes);
  return step && sentOf(step);
};

/** Returns true if the run of this step only repeats calls of ended cycles. No log contains such a run. */
export function onlyRetries(trace: Trace): boolean {
  for (let step = trace.before; step; step = step.before) {
    const run = startOf(step);
    if (run) return run.trigger.kind === 'retry';
  }
  return false;
}

/** Returns the id of the last run in a log. */
export function lastLogged(trace: Trace): string {
  for (let step: Trace | undefined = trace; step; step = step.before) {
    const run = startOf(step);
    if (run) return run.trigger.kind === 'retry' ? run.trigger.of : run.runId;
  }
  return inputOf(trace).runId;
}

/** Returns the id of the last run that began. */
export function lastRun(trace: Trace): string {
  for (let step: Trace | undefined = trace; step; step = step.before) {
    const run = startOf(step);
    if (run) return run.runId;
  }
  return inputOf(trace).runId;
}

/** Returns true if a message learned that its stop was not stored, or if the stop was lost. */
export function lostSince(trace: Trace): boolean {
  const from = trace.steps.map(supersedes).lastIndexOf(true);
  return trace.steps.slice(from + 1).some(({ event, answer }) => {
    const { type, lost } = (event ?? { type: '' }) as { type: string; lost?: NewEntry[] };
    if (answer?.kind === 'committed' && event !== trace.event) return true;
    return (
      type === 'append.failed' && (lost?.length === 0 || lost?.some((entry) => entry.type === 'run-stop') === true)
    );
  });
}

type Sums = [tokens: number, costUsd: number, unpriced: number];
export const sumsOf = ({ tokens, costUsd, unpriced }: Counters): Sums => [tokens, costUsd, unpriced];

/** Returns tokens and cost after the last run, with those of later sub-agents. */
export function spentOf(trace: Trace): Sums {
  let [tokens, costUsd, unpriced] = sumsOf(inputOf(trace).counters);
  for (const step of trace.steps) {
    const end = endOf(step);
    if (end) [tokens, costUsd, unpriced] = sumsOf(end.counters);
    const { type, spent } = cameOf(step) as {
      type: string;
      spent?: { usage: { inputTokens: number; outputTokens: number }; costUsd: number | null };
    };
    if (type !== 'sub-agent.changed' || !spent) continue;
    tokens += spent.usage.inputTokens + spent.usage.outputTokens;
    costUsd += spent.costUsd ?? 0;
    if (spent.costUsd === null) unpriced += 1;
  }
  return [tokens, costUsd, unpriced];
}
