/**
 * TOOL_ROUND: the calls of one reply (run-lifecycle, ToolRound). Spawns one TOOL_CALL a call within its launch window
 * and collects what became of each in call order. Ends Collected, or Stopped where the run ends it from outside; it
 * writes no result for calls it stopped: the run does, since it knows why.
 */
import { type DoneActorEvent, sendTo, setup, stopChild } from 'xstate';
import { door, type Phases, type RoundCall } from './ports.ts';
import { type ToolCallOutput, toolCallMachine } from './toolCall.machine.ts';

export interface Slot {
  call: RoundCall;
  status: 'queued' | 'running' | 'done' | 'suspended';
  output?: ToolCallOutput;
}

export interface ToolRoundInput {
  conversationId: string;
  runId: string;
  /** Prefix of the ids of everything this round asks for. */
  id: string;
  calls: readonly RoundCall[];
  /** How many calls may run at once. */
  window: number;
  /** One after the other; the first suspended call ends the round. */
  sequential: boolean;
  suspensionsMax: number;
  phases: Phases;
}

export interface ToolRoundOutput {
  kind: 'collected' | 'stopped';
  slots: readonly Slot[];
}

export interface ToolRoundContext extends Omit<ToolRoundInput, 'calls'> {
  slots: readonly Slot[];
  /** Index of the next call to launch. */
  next: number;
  /** How many calls run now. */
  live: number;
}

type CallDone = DoneActorEvent<ToolCallOutput, string>;
export type ToolRoundEvent = CallDone | { type: 'round.stopped' };

type Args = { context: ToolRoundContext; event: ToolRoundEvent };

const childId = (index: number): string => `call-${index}`;

/** Where a finished child stands in the round. */
const indexOf = (event: CallDone): number => Number(event.actorId.slice('call-'.length));

/** A sequential round launches nothing behind a suspended call. */
const closed = (context: ToolRoundContext, last?: ToolCallOutput): boolean =>
  context.next >= context.slots.length || (context.sequential && last?.outcome === 'suspended');

function callInput(context: ToolRoundContext, index: number, call: RoundCall) {
  return {
    conversationId: context.conversationId,
    runId: context.runId,
    id: `${context.id}/${index}`,
    call,
    suspension: 0,
    suspensionsMax: context.suspensionsMax,
    after: context.phases.afterToolExecute,
  };
}

const round = setup({
  types: {} as {
    context: ToolRoundContext;
    events: ToolRoundEvent;
    input: ToolRoundInput;
    output: ToolRoundOutput;
  },
  actors: { toolCall: toolCallMachine },
  actions: {
    ...door,
    /** A finished child stays until it is stopped. */
    forget: stopChild(({ event }) => (event.type === 'round.stopped' ? '' : event.actorId)),
    // The run wants to know of a suspension at once: a decision may be waiting for it.
    report: sendTo(
      ({ self }) => self._parent ?? self,
      ({ event }) => ({ type: 'call.suspended', output: event.type === 'round.stopped' ? undefined : event.output }),
    ),
  },
  guards: {
    suspends: ({ event }) => event.type !== 'round.stopped' && event.output.outcome === 'suspended',
    lastSuspends: ({ context, event }) =>
      event.type !== 'round.stopped' &&
      event.output.outcome === 'suspended' &&
      context.live === 1 &&
      closed(context, event.output),
    lastCall: ({ context, event }) =>
      event.type !== 'round.stopped' && context.live === 1 && closed(context, event.output),
  },
});

/** The round after one more call has ended: its slot, and the next call launched where one may be. */
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

const launch = round.enqueueActions(({ context, enqueue }) => {
  for (let index = 0; index < context.next; index++) {
    const slot = context.slots[index];
    if (slot) enqueue.spawnChild('toolCall', { id: childId(index), input: callInput(context, index, slot.call) });
  }
});

const collect = round.assign(({ context, event, spawn }) => {
  if (event.type === 'round.stopped') return {};
  const after = collected(context, event);
  const following = after.next > context.next ? context.slots[context.next] : undefined;
  if (following) {
    spawn('toolCall', { id: childId(context.next), input: callInput(context, context.next, following.call) });
  }
  return after;
});

export const toolRoundMachine = round.createMachine({
  id: 'TOOL_ROUND',
  context: ({ input }) => {
    const { conversationId, runId, id, sequential, suspensionsMax, phases, calls } = input;
    const window = sequential ? 1 : input.window;
    const live = Math.min(window, calls.length);
    const slots = calls.map((call, index): Slot => ({ call, status: index < live ? 'running' : 'queued' }));
    return { conversationId, runId, id, window, sequential, suspensionsMax, phases, slots, next: live, live };
  },
  output: ({ event }) => (event as unknown as { output: ToolRoundOutput }).output,
  initial: 'Running',
  on: { 'round.stopped': { target: '.Stopped' } },
  states: {
    Running: {
      entry: launch,
      on: {
        'xstate.done.actor.*': [
          { guard: 'lastSuspends', target: 'Collected', actions: 'report' },
          { guard: 'lastCall', target: 'Collected' },
          { guard: 'suspends', actions: ['report', 'forget', collect] },
          { actions: ['forget', collect] },
        ],
      },
    },
    Collected: {
      type: 'final',
      output: ({ context, event }: Args): ToolRoundOutput => ({
        kind: 'collected',
        slots: event.type === 'round.stopped' ? context.slots : collected(context, event).slots,
      }),
    },
    Stopped: {
      type: 'final',
      output: ({ context }: Args): ToolRoundOutput => ({ kind: 'stopped', slots: context.slots }),
    },
  },
});
