/**
 * TOOL_ROUND: the calls of one reply (run-lifecycle, ToolRound). Spawns one TOOL_CALL a call within its launch window
 * and collects what became of each in call order. Ends Collected, or Stopped where the run ends it from outside; it
 * writes no result for calls it stopped: the run does, since it knows why.
 */
import { type DoneActorEvent, setup } from 'xstate';
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
  actions: door,
  guards: {
    lastCall: ({ context, event }) =>
      event.type !== 'round.stopped' && context.live === 1 && closed(context, event.output),
  },
});

const launch = round.enqueueActions(({ context, enqueue }) => {
  const count = Math.min(context.window, context.slots.length);
  for (let index = 0; index < count; index++) {
    const slot = context.slots[index];
    if (slot) enqueue.spawnChild('toolCall', { id: childId(index), input: callInput(context, index, slot.call) });
  }
  const slots = context.slots.map((slot, index) => (index < count ? { ...slot, status: 'running' as const } : slot));
  enqueue.assign({ slots, next: count, live: count });
});

const collect = round.enqueueActions(({ context, event, enqueue }) => {
  if (event.type === 'round.stopped') return;
  const { output } = event;
  const slots = context.slots.slice();
  const index = indexOf(event);
  const slot = slots[index];
  if (!slot) return;
  slots[index] = { call: slot.call, status: output.outcome === 'suspended' ? 'suspended' : 'done', output };
  enqueue.stopChild(event.actorId);
  let { next, live } = context;
  live -= 1;
  const following = slots[next];
  if (following && !closed(context, output)) {
    enqueue.spawnChild('toolCall', { id: childId(next), input: callInput(context, next, following.call) });
    slots[next] = { ...following, status: 'running' };
    next += 1;
    live += 1;
  }
  enqueue.assign({ slots, next, live });
  if (output.outcome === 'suspended') {
    // The run wants to know at once: a decision may be waiting for this call.
    enqueue.sendTo(({ self }) => self._parent ?? self, { type: 'call.suspended', output });
  }
});

export const toolRoundMachine = round.createMachine({
  id: 'TOOL_ROUND',
  context: ({ input }) => ({
    conversationId: input.conversationId,
    runId: input.runId,
    id: input.id,
    window: input.sequential ? 1 : input.window,
    sequential: input.sequential,
    suspensionsMax: input.suspensionsMax,
    phases: input.phases,
    slots: input.calls.map((call) => ({ call, status: 'queued' as const })),
    next: 0,
    live: 0,
  }),
  output: ({ event, context }) => ({
    kind: (event as unknown as { output: ToolRoundOutput['kind'] }).output,
    slots: context.slots,
  }),
  initial: 'Running',
  on: { 'round.stopped': { target: '.Stopped' } },
  states: {
    Running: {
      entry: launch,
      on: {
        'xstate.done.actor.*': [{ guard: 'lastCall', target: 'Collected', actions: collect }, { actions: collect }],
      },
    },
    Collected: { type: 'final', output: 'collected' },
    Stopped: { type: 'final', output: 'stopped' },
  },
});
