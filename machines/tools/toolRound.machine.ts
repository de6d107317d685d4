/**
 * TOOL_ROUND: the calls of one reply (docs/internals/lifecycle.md, TOOL_ROUND). It spawns one TOOL_CALL for each call
 * within its launch window and collects the outcomes in call order. After a steer it launches no further call. It ends
 * Collected, or Stopped where the run ends it. It writes no result for calls that it did not finish: the run does,
 * because the run has the reason.
 */

import { type DoneActorEvent, setup } from 'xstate';
import type { CallConcluded, RoundCall, Slot, ToolCallOutput } from '../calls.ts';
import { canonical } from '../fingerprint.ts';
import type { ToolRetry } from '../policies.ts';
import type { Phases } from '../ports.ts';
import {
  type Chart,
  type ConfigOf,
  type FinalEvent,
  type Guards,
  type Message,
  type SpawnRequest,
  spawn,
  stop,
  tell,
  update,
} from '../verbs.ts';
import type { NewEntry } from '../vocabulary.ts';
import { verbs } from '../xstateVerbs.ts';
import { type ToolCallInput, toolCallChart, toolCallMachine } from './toolCall.machine.ts';

type Outputs = readonly (ToolCallOutput | undefined)[];

export function conflicts(outputs: Outputs): boolean {
  let written: Map<string, string> | undefined;
  for (const output of outputs) {
    for (const [key, value] of output?.writes ? Object.entries(output.writes) : []) {
      const form = canonical(value);
      written ??= new Map();
      if ((written.get(key) ?? form) !== form) return true;
      written.set(key, form);
    }
  }
  return false;
}

export const writesOf = (runId: string, outputs: Outputs): NewEntry[] =>
  outputs.flatMap((output) =>
    output?.writes ? [{ runId, type: 'state-changed' as const, callId: output.callId, writes: output.writes }] : [],
  );

export interface ToolRoundInput {
  conversationId: string;
  runId: string;
  /** Prefix of the ids of this round's requests. */
  id: string;
  calls: readonly RoundCall[];
  /** The maximum number of calls that run at once. */
  window: number;
  /** Calls run one after the other; the first suspended call ends the round. */
  sequential: boolean;
  suspensionsMax: number;
  retry: false | ToolRetry;
  phases: Phases;
}

/** The output of `toolRoundMachine`. */
export interface ToolRoundOutput {
  /** `collected` if every call has an outcome, `stopped` if the run ended first. */
  kind: 'collected' | 'stopped';
  /** The calls of the round with their outcomes. */
  slots: readonly Slot[];
  /** Id of the message that kept the queued calls from being started. */
  steered?: string;
}

export interface ToolRoundContext extends Omit<ToolRoundInput, 'calls'> {
  slots: readonly Slot[];
  /** Index of the next call to launch. */
  next: number;
  /** The number of calls that run now. */
  live: number;
  /** Id of the first message to be delivered after the running calls; nothing more is started. */
  steered: string | undefined;
}

type CallDone = DoneActorEvent<ToolCallOutput, string>;
export type ToolRoundEvent =
  | CallDone
  | CallConcluded
  | { type: 'round.stopped' }
  | { type: 'round.steered'; messageId: string };

type Args = { context: ToolRoundContext; event: ToolRoundEvent };

const hasEnded = (event: ToolRoundEvent): event is CallDone =>
  event.type !== 'round.stopped' && event.type !== 'round.steered' && event.type !== 'call.concluded';

const childId = (index: number): string => `call-${index}`;

/** The position of a finished child in the round. */
const indexOf = (event: CallDone): number => Number(event.actorId.slice('call-'.length));

/** A sequential round launches nothing after a suspended call. No round starts a call after a steer. */
const closed = ({ next, slots, steered, sequential }: ToolRoundContext, last?: ToolCallOutput): boolean =>
  next >= slots.length || steered !== undefined || (sequential && last?.outcome === 'suspended');

type CallSpawn = SpawnRequest<'toolCall', ToolCallInput>;

/** Starts the calls from one index up to another. */
const startOf = (context: ToolRoundContext, from: number, to: number): CallSpawn[] =>
  context.slots.slice(from, to).map(({ call }, offset) => ({
    src: 'toolCall',
    id: childId(from + offset),
    input: {
      conversationId: context.conversationId,
      runId: context.runId,
      id: `${context.id}/${from + offset}`,
      call,
      suspension: 0,
      suspensionsMax: context.suspensionsMax,
      retry: context.retry,
      after: context.phases.afterToolExecute,
    },
  }));

const concluded = (slot: Slot, { output }: CallConcluded): Slot =>
  slot.call.callId === output.callId && slot.status === 'running' ? { ...slot, output } : slot;

/** The round after one more call has ended: its slot, and the next call if one may be launched. */
function collected(context: ToolRoundContext, event: CallDone): Pick<ToolRoundContext, 'slots' | 'next' | 'live'> {
  const { output } = event;
  const slots = context.slots.slice();
  const index = indexOf(event);
  const slot = slots[index];
  if (slot) slots[index] = { call: slot.call, status: output.outcome === 'suspended' ? 'suspended' : 'done', output };
  const following = slots[context.next];
  if (!following || closed(context, output)) return { slots, next: context.next, live: context.live - 1 };
  slots[context.next] = { ...following, status: 'running' };
  return { slots, next: context.next + 1, live: context.live };
}

const firstCalls = ({ context }: Args): CallSpawn[] => startOf(context, 0, context.next);

/** The call that takes the place of one that has ended. */
const nextCall = ({ context, event }: Args): CallSpawn[] =>
  hasEnded(event) ? startOf(context, context.next, collected(context, event).next) : [];

const callCollected = ({ context, event }: Args): Partial<ToolRoundContext> =>
  hasEnded(event) ? collected(context, event) : {};

/** A finished child stays until it is stopped. */
const finishedChild = ({ event }: Args): string => (hasEnded(event) ? event.actorId : '');

const messageSteered = ({ context, event }: Args): Partial<ToolRoundContext> =>
  event.type === 'round.steered' ? { steered: context.steered ?? event.messageId } : {};

const callConcluded = ({ context: { slots }, event }: Args): Partial<ToolRoundContext> =>
  event.type === 'call.concluded' ? { slots: slots.map((slot) => concluded(slot, event)) } : {};

type CallSuspended = { type: 'call.suspended'; output: ToolCallOutput };
/** The run needs a suspension at once, because a decision may exist for it already. */
const callSuspended = ({ event }: Args): Message<'parent', CallSuspended> | undefined =>
  hasEnded(event) ? { to: 'parent', event: { type: 'call.suspended', output: event.output } } : undefined;

const collectCall = [stop(finishedChild), spawn(nextCall), update(callCollected)] as const;

function contextOf(input: ToolRoundInput): ToolRoundContext {
  const { calls, ...rest } = input;
  const { sequential } = rest;
  const window = sequential ? 1 : input.window;
  const live = Math.min(window, calls.length);
  const slots = calls.map((call, index): Slot => ({ call, status: index < live ? 'running' : 'queued' }));
  return { ...rest, window, slots, next: live, live, steered: undefined };
}

const collectedOutput = ({ context, event }: Args): ToolRoundOutput => ({
  kind: 'collected',
  slots: hasEnded(event) ? collected(context, event).slots : context.slots,
  ...(context.steered !== undefined && { steered: context.steered }),
});
const stoppedOutput = ({ context }: Args): ToolRoundOutput => ({ kind: 'stopped', slots: context.slots });

const guards = {
  suspends: ({ event }) => hasEnded(event) && event.output.outcome === 'suspended',
  lastSuspends: ({ context, event }) =>
    hasEnded(event) && event.output.outcome === 'suspended' && context.live === 1 && closed(context, event.output),
  lastCall: ({ context, event }) => hasEnded(event) && context.live === 1 && closed(context, event.output),
} satisfies Guards<ToolRoundContext, ToolRoundEvent>;

const toolRoundSetup = () =>
  setup({
    types: {} as {
      context: ToolRoundContext;
      events: ToolRoundEvent;
      input: ToolRoundInput;
      output: ToolRoundOutput;
    },
    actors: { toolCall: toolCallMachine },
    actions: verbs<ToolRoundContext, ToolRoundEvent, CallSpawn, Message<'parent', CallSuspended>>(),
    guards,
  });

const config = {
  id: 'TOOL_ROUND',
  context: ({ input }) => contextOf(input),
  output: ({ event }) => (event as FinalEvent<ToolRoundOutput>).output,
  initial: 'Running',
  on: { 'round.stopped': { target: '.Stopped' } },
  states: {
    Running: {
      entry: spawn(firstCalls),
      on: {
        'round.steered': { actions: update(messageSteered) },
        'call.concluded': { actions: update(callConcluded) },
        'xstate.done.actor.*': [
          { guard: 'lastSuspends', target: 'Collected', actions: tell(callSuspended) },
          { guard: 'lastCall', target: 'Collected' },
          { guard: 'suspends', actions: [tell(callSuspended), ...collectCall] },
          { actions: collectCall },
        ],
      },
    },
    Collected: { type: 'final', output: collectedOutput },
    Stopped: { type: 'final', output: stoppedOutput },
  },
} satisfies ConfigOf<typeof toolRoundSetup>;

export const toolRoundChart: Chart = {
  id: config.id,
  config,
  implementations: { guards, actors: { toolCall: toolCallChart } },
};
/** The chart TOOL_ROUND: the calls of one reply, in parallel or in order. */
export const toolRoundMachine = /* @__PURE__ */ (() => toolRoundSetup().createMachine(config))();
