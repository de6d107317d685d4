/**
 * The facts around a RUN that its context does not contain: the calls that were made and reported, and the messages and decisions that
 * arrived. Invariant: a path contains no event that a round, gate or host would not send next.
 */
import type { AnyMachineSnapshot } from 'xstate';
import type { HeldDecision, ToolCallOutput } from '../calls.ts';
import type { AppendFailed } from '../ports.ts';
import type { RunContext, RunEvent, RunInput } from '../run/runContext.ts';
import type { ToolRoundOutput } from '../tools/toolRound.machine.ts';
import type { Surroundings } from './cases.ts';

export interface RunWorld {
  /** Calls of all replies. */
  made: readonly string[];
  /** Calls of the round under way that it has reported suspended. */
  reported: readonly string[];
  steered: readonly string[];
  /** The steer that arrived in the current round, where the policy lets it start nothing more; empty without one. */
  cut: string;
  decided: readonly string[];
  cancelled: boolean;
  /** The event that arrived in the last states of the run. One decision, by its key, is enough. */
  late: string;
}
const nothing: RunWorld = { made: [], reported: [], steered: [], cut: '', decided: [], cancelled: false, late: '' };

const idsOf = (calls: readonly { call: { callId: string } }[]): string[] => calls.map(({ call }) => call.callId);
const keyOf = ({ callId, suspension }: HeldDecision): string => `${callId}#${suspension}`;
const contextOf = (state: AnyMachineSnapshot): RunContext => state.context as RunContext;
const inTail = (state: AnyMachineSnapshot): boolean => typeof state.value === 'string';
const at = (state: AnyMachineSnapshot, ...names: string[]): boolean =>
  names.some((active) => state.matches({ active } as never));

function answers(world: RunWorld, { value }: Extract<RunEvent, { type: 'effect.done' }>, state: AnyMachineSnapshot) {
  if (value.kind === 'terminate') return at(state, 'StepPrepare', 'AfterInference');
  if (value.kind === 'continue' || value.kind === 'answer') return at(state, 'CommitAssistant');
  if (value.kind === 'done') return !value.writes || at(state, 'RunStart');
  if (value.kind !== 'reply') return true;
  const ids = value.calls.map(({ callId }) => callId);
  const { toolCallsPerTurn } = contextOf(state).settings.policies.limits;
  return ids.length <= toolCallsPerTurn && !ids.some((id) => world.made.includes(id));
}

/** Its calls run; after that the round may be failing. */
const inRound = (state: AnyMachineSnapshot): boolean => state.matches({ active: { ToolRound: 'running' } } as never);
/** The round stops and reports it in the same step; nothing comes between. */
const stopping = (state: AnyMachineSnapshot): boolean =>
  inRound(state) && contextOf(state).end.termination !== 'NaturalEnd';

/** A failure is reported under every policy and read under one. */
const mayFail = (output: ToolCallOutput | undefined, state: AnyMachineSnapshot): boolean =>
  output?.failure === undefined || contextOf(state).settings.policies.onToolFailure === 'failRun';

function roundEnds(world: RunWorld, { kind, slots, steered }: ToolRoundOutput, state: AnyMachineSnapshot): boolean {
  const { calls, settings } = contextOf(state);
  const cut = kind === 'collected' ? world.cut : '';
  if ((steered ?? '') !== cut || !slots.every(({ output }) => mayFail(output, state))) return false;
  if ((kind === 'stopped') !== stopping(state)) return false;
  if (idsOf(slots).join() !== calls.map(({ callId }) => callId).join()) return false;
  const sequential = settings.policies.toolExecution === 'sequential';
  const first = slots.findIndex(({ status }) => status === 'suspended');
  return slots.every(({ status, call }, index) => {
    if ((status === 'suspended') !== world.reported.includes(call.callId)) return false;
    const behind = sequential && first >= 0 && index > first;
    const mayWait = behind || (cut !== '' && index > 0);
    if (kind === 'collected' && (status === 'running' || (status === 'queued' && !mayWait))) return false;
    return status === 'queued' || !behind;
  });
}

function callSuspends(world: RunWorld, { callId }: ToolCallOutput, state: AnyMachineSnapshot): boolean {
  const { calls, settings } = contextOf(state);
  if (world.reported.includes(callId) || !calls.some((call) => call.callId === callId)) return false;
  return settings.policies.toolExecution !== 'sequential' || world.reported.length === 0;
}

/** Calls that the open gate may still settle, in its order, without those after a call that waits again. */
function toSettle({ replaying, kept, suspended }: RunContext): string[] {
  const waiting = new Set(idsOf(suspended).filter((id) => !replaying.includes(id)));
  return replaying.filter((id) => {
    const behind = kept.find(({ call }) => call.callId === id)?.behind;
    if (behind === undefined || !waiting.has(behind)) return true;
    waiting.add(id);
    return false;
  });
}

function callSettles(output: ToolCallOutput, state: AnyMachineSnapshot): boolean {
  const { callId, outcome, suspension } = output;
  const { suspended } = contextOf(state);
  if (!mayFail(output, state)) return false;
  if (!state.children.gate || toSettle(contextOf(state))[0] !== callId) return false;
  const before = suspended.find(({ call }) => call.callId === callId)?.suspension ?? 0;
  return outcome !== 'suspended' || suspension === before + 1;
}

function decisionComes(world: RunWorld, held: HeldDecision, state: AnyMachineSnapshot): boolean {
  const { suspended, calls, replaying, decisions, settings } = contextOf(state);
  const { callId, suspension } = held;
  const current = suspended.find(({ call }) => call.callId === callId)?.suspension;
  if (inTail(state)) {
    return !world.late && suspension === current && !decisions.some((before) => keyOf(before) === keyOf(held));
  }
  if (world.decided.includes(keyOf(held)) || world.decided.length >= settings.policies.limits.decisions) return false;
  if (suspension === current) return true;
  const running = calls.some((call) => call.callId === callId) && !world.reported.includes(callId);
  const early = current === undefined ? running : replaying.includes(callId);
  return early && suspension === (current ?? 0) + 1;
}

function steerComes({ steered, late }: RunWorld, messageId: string, state: AnyMachineSnapshot): boolean {
  const { queue } = contextOf(state).settings.policies.limits;
  return inTail(state) ? queue > 0 && !late : !steered.includes(messageId) && steered.length < queue;
}

/** While a run's end is stored, an entry of the host may be lost as well; a late decision may come in all of the last states. */
function appendFails({ late }: RunWorld, { lost }: AppendFailed, state: AnyMachineSnapshot): boolean {
  const decision = lost.find((entry) => entry.type === 'decision');
  if (decision)
    return inTail(state) && late === keyOf(decision) && contextOf(state).decisions.some((held) => keyOf(held) === late);
  const { queue } = contextOf(state).settings.policies.limits;
  const ofHost = lost.some(({ type }) => type === 'message-queued');
  return lost.length === 0 || (state.matches('CommitFinished' as never) && (queue > 0 || !ofHost));
}

function cancelComes(world: RunWorld, partial: string | undefined, state: AnyMachineSnapshot): boolean {
  const { partialReply } = contextOf(state).settings.policies;
  return !world.cancelled && (partial === undefined) === (partialReply === 'discard' || !at(state, 'LlmCall'));
}

function lateBy(event: RunEvent): string {
  if (event.type === 'decision.arrived') return keyOf(event.held);
  return event.type === 'message.steered' ? event.message.messageId : '';
}

export const runSurroundings: Surroundings<RunWorld> = {
  start: (input) => {
    const { suspended, kept, reruns, decisions, steers } = input as RunInput;
    return {
      ...nothing,
      made: idsOf([...suspended, ...kept, ...reruns]),
      steered: steers.map(({ messageId }) => messageId),
      decided: decisions.map(keyOf),
    };
  },
  can: (world, next, state) => {
    const event = next as RunEvent;
    if (stopping(state) && event.type !== 'xstate.done.actor.round') return false;
    switch (event.type) {
      case 'effect.done':
        return answers(world, event, state);
      case 'xstate.done.actor.round':
        return roundEnds(world, event.output, state);
      case 'xstate.done.actor.gate':
        return toSettle(contextOf(state)).length === 0;
      case 'call.suspended':
        return callSuspends(world, event.output, state);
      case 'call.concluded':
        return !!state.children.gate && toSettle(contextOf(state))[0] === event.output.callId;
      case 'call.settled':
        return callSettles(event.output, state);
      case 'decision.arrived':
        return decisionComes(world, event.held, state);
      case 'message.steered':
        return steerComes(world, event.message.messageId, state);
      case 'message.returned':
        return contextOf(state).steers.some(({ messageId }) => messageId === event.messageId);
      case 'run.cancelled':
        return cancelComes(world, event.partial, state);
      case 'sub-agent.changed':
        return at(state, 'ToolRound');
      case 'append.failed':
        return appendFails(world, event, state);
      case 'effect.failed':
        return state.children.gate !== undefined || !at(state, 'CommitUser', 'CommitAssistant', 'CommitTool');
      default:
        return true;
    }
  },
  after: (world, next, state) => {
    const event = next as RunEvent;
    const late = world.late || lateBy(event);
    const cancelled = world.cancelled || event.type === 'run.cancelled';
    if (inTail(state)) return { ...nothing, cancelled, late };
    switch (event.type) {
      case 'effect.done': {
        const calls = event.value.kind === 'reply' ? event.value.calls.map(({ callId }) => callId) : [];
        return { ...world, made: [...world.made, ...calls] };
      }
      case 'call.suspended':
        return { ...world, reported: [...world.reported, event.output.callId].sort() };
      case 'xstate.done.actor.round':
        return { ...world, reported: [], cut: '' };
      case 'decision.arrived':
        return { ...world, decided: [...world.decided, keyOf(event.held)].sort() };
      case 'message.steered': {
        const { messageId } = event.message;
        const cuts = inRound(state) && contextOf(state).settings.policies.steerAt === 'afterTool';
        const cut = cuts && world.cut === '' ? messageId : world.cut;
        return { ...world, steered: [...world.steered, messageId].sort(), cut };
      }
      case 'run.cancelled':
        return { ...world, cancelled };
      default:
        return world;
    }
  },
};
