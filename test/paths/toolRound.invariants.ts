/** The rules of TOOL_ROUND (docs/internals/lifecycle.md, TOOL_ROUND). */

import type { ToolCallOutput } from '../../machines/calls.ts';
import type { ToolCallInput } from '../../machines/tools/toolCall.machine.ts';
import type { ToolRoundInput, ToolRoundOutput } from '../../machines/tools/toolRound.machine.ts';
import type { ChartInvariant, Trace } from './edgeTrace.ts';
import { hold } from './invariants.ts';

const inputOf = ({ input }: Trace): ToolRoundInput => input as ToolRoundInput;
const json = (value: unknown): string => JSON.stringify(value);

const startsOf = ({ steps }: Trace): ToolCallInput[] =>
  steps.flatMap(({ spawned }) => spawned.map(({ input }) => input as ToolCallInput));
/** Returns the outcomes of calls, in the order of their ends. */
const endsOf = ({ steps }: Trace): ToolCallOutput[] =>
  steps.flatMap(({ event }) =>
    event?.type.startsWith('xstate.done.actor.') ? [(event as unknown as { output: ToolCallOutput }).output] : [],
  );
const steersOf = ({ steps }: Trace): string[] =>
  steps.flatMap(({ event }) =>
    event?.type === 'round.steered' ? [(event as unknown as { messageId: string }).messageId] : [],
  );
const isStopped = ({ steps }: Trace): boolean => steps.some(({ event }) => event?.type === 'round.stopped');
const outputOf = ({ state }: Trace): ToolRoundOutput => state.output as ToolRoundOutput;

/** Returns true if no further call may start: after a steer, or after a suspended call of a sequential round. */
function isClosed(trace: Trace): boolean {
  const waits = endsOf(trace).some(({ outcome }) => outcome === 'suspended');
  return steersOf(trace).length > 0 || isStopped(trace) || (inputOf(trace).sequential && waits);
}

export const toolRoundInvariants: readonly ChartInvariant[] = [
  {
    says: 'semantics 2, toolExecution: calls start in call order, each once, within the launch window',
    holds: (trace) => {
      const { calls, window, sequential } = inputOf(trace);
      const started = startsOf(trace).map(({ call }) => call.callId);
      hold(
        started.join() ===
          calls
            .slice(0, started.length)
            .map(({ callId }) => callId)
            .join(),
        `started: ${started}`,
      );
      const running = started.length - endsOf(trace).length;
      hold(running <= (sequential ? 1 : window), `${running} run at once`);
    },
  },
  {
    says: 'semantics 2, maxParallelTools: a call starts as soon as it may',
    holds: (trace) => {
      const { calls, window, sequential } = inputOf(trace);
      if (isClosed(trace)) return;
      const [started, ended] = [startsOf(trace).length, endsOf(trace).length];
      const due = Math.min(calls.length, ended + (sequential ? 1 : window));
      hold(started === due, `${started} of ${calls.length} calls are started, ${ended} have ended`);
    },
  },
  {
    says: 'semantics 6: in sequential execution nothing starts after a suspended call; with steerAt afterTool nothing starts after a steer',
    holds: (trace) =>
      hold(!isClosed(trace) || trace.spawned.length === 0, `${json(trace.spawned.map(({ id }) => id))} starts`),
  },
  {
    says: 'run-lifecycle, TOOL_CALL: each call gets its conversation, run, policies and phases, and is not suspended yet',
    holds: (trace) => {
      const { conversationId, runId, id, suspensionsMax, retry, phases } = inputOf(trace);
      for (const { input } of trace.spawned) {
        const call = input as ToolCallInput;
        hold(call.conversationId === conversationId && call.runId === runId, 'another run');
        hold(call.id.startsWith(`${id}/`) && call.suspension === 0, `${call.id}, suspension ${call.suspension}`);
        hold(call.suspensionsMax === suspensionsMax && json(call.retry) === json(retry), 'another policy');
        hold(call.after === phases.afterToolExecute, 'another phase');
      }
      const ids = startsOf(trace).map((call) => call.id);
      hold(new Set(ids).size === ids.length, `two calls ask under one id: ${ids}`);
    },
  },
  {
    says: 'semantics 14: the run receives a suspension immediately, and nothing else',
    holds: ({ event, sentEvents }) => {
      const output = event?.type.startsWith('xstate.done.actor.')
        ? (event as unknown as { output: ToolCallOutput }).output
        : undefined;
      const due = output?.outcome === 'suspended' ? [output] : [];
      const heard = sentEvents.map((sent) =>
        sent.event.type === 'call.suspended' && sent.to === 'parent'
          ? (sent.event as unknown as { output: unknown }).output
          : sent,
      );
      hold(json(heard) === json(due), `the run received ${json(heard)}`);
    },
  },
  {
    says: 'run-lifecycle, ToolRound: it ends when it is stopped, or when no call runs and none may start',
    holds: (trace) => {
      const { calls } = inputOf(trace);
      const [started, ended] = [startsOf(trace).length, endsOf(trace).length];
      const collected = started === ended && (started === calls.length || isClosed(trace));
      hold((trace.state.status === 'done') === (collected || isStopped(trace)), json(trace.state.value));
      if (trace.state.status === 'done')
        hold(outputOf(trace).kind === (isStopped(trace) ? 'stopped' : 'collected'), outputOf(trace).kind);
    },
  },
  {
    says: 'CommitTool granularity: the batch contains every call in call order with its outcome; a sequential round starts a prefix',
    holds: (trace) => {
      if (trace.state.status !== 'done') return;
      const { slots, steered } = outputOf(trace);
      const { calls } = inputOf(trace);
      hold(
        slots.map(({ call }) => call.callId).join() === calls.map(({ callId }) => callId).join(),
        `of ${json(slots)}`,
      );
      const started = startsOf(trace).length;
      for (const [index, { call, status, output }] of slots.entries()) {
        const end = endsOf(trace).find(({ callId }) => callId === call.callId);
        const due = end ? (end.outcome === 'suspended' ? 'suspended' : 'done') : index < started ? 'running' : 'queued';
        hold(status === due, `${call.callId} is ${status}, and ${due} is due`);
        hold(end === undefined || json(output) === json(end), `${call.callId} has another output`);
      }
      const kept = isStopped(trace) ? undefined : steersOf(trace)[0];
      hold(steered === kept || isStopped(trace), `steered by ${steered}, and ${kept} came first`);
    },
  },
  {
    says: 'semantics 7: the round has the result of a call that only plugins still handle',
    holds: (trace) => {
      if (trace.state.status !== 'done' || !isStopped(trace)) return;
      const concluded = trace.steps.filter(({ event }) => event?.type === 'call.concluded');
      for (const { event } of concluded) {
        const { output } = event as unknown as { output: ToolCallOutput };
        const slot = outputOf(trace).slots.find(({ call }) => call.callId === output.callId);
        hold(slot?.status === 'queued' || slot?.output !== undefined, `${output.callId} has no output`);
      }
    },
  },
  {
    says: 'semantics 1.4: a finished call is stopped, so that a long round keeps no actors',
    holds: ({ event, situation, state }) => {
      if (state.status !== 'active' || !event?.type.startsWith('xstate.done.actor.')) return;
      const { actorId } = event as unknown as { actorId: string };
      const stopped = situation.effects.some((effect) => effect.type === 'stop' && effect.id === actorId);
      hold(stopped, `${actorId} stays`);
    },
  },
];
