/**
 * What the run makes of a round: what it is given, what of its end is logged, and what is left of it. Rule: each takes
 * context and event and returns data; a call that was not started keeps its turn, or gets a result that says why not.
 */

import type { Slot, ToolCallOutput } from './calls.ts';
import { closed } from './closing.ts';
import { countOutputs } from './counters.ts';
import type { RunContext, RunEvent } from './runContext.ts';
import type { ToolRoundInput, ToolRoundOutput } from './toolRound.machine.ts';
import type { Failure, NewEntry } from './vocabulary.ts';
import { writesOf } from './writes.ts';

type Args = { context: RunContext; event: RunEvent };

export function roundInput({ context }: { context: RunContext }): ToolRoundInput {
  const { runId, turn, calls, settings } = context;
  const { conversationId, policies, phases } = settings;
  const { toolExecution, toolRetry: retry } = policies;
  const together =
    toolExecution === 'parallel' || (toolExecution === 'parallelIfReadOnly' && calls.every((call) => call.readOnly));
  const [sequential, window] = together ? [false, policies.maxParallelTools] : [true, 1];
  const { suspensionsPerCall: suspensionsMax } = policies.limits;
  const id = `${runId}/t${turn}/call`;
  return { conversationId, runId, id, calls, window, sequential, suspensionsMax, retry, phases };
}

export const outputsIn = ({ slots }: ToolRoundOutput): (ToolCallOutput | undefined)[] =>
  slots.map(({ output }) => output);

/** The failure of a tool that ends the run: the first one, where the policy says so. */
export function failureOf(context: RunContext, outputs: readonly (ToolCallOutput | undefined)[]): Failure | undefined {
  if (context.settings.policies.onToolFailure !== 'failRun') return undefined;
  return context.failure ?? outputs.find((output) => output?.failure)?.failure;
}
export const failureInRound = (context: RunContext, round: ToolRoundOutput): Failure | undefined =>
  failureOf(context, outputsIn(round));

export const roundOf = (event: RunEvent): ToolRoundOutput =>
  event.type === 'xstate.done.actor.round' ? event.output : { kind: 'stopped', slots: [] };

const skippedText = (messageId: string): string =>
  `This call was skipped: a queued message of the user (${messageId}) goes first. It follows the results.`;

/** The results of calls that are answered without being started, then what the round's calls write. */
export function roundEntries(args: Args): NewEntry[] {
  const { runId } = args.context;
  const round = roundOf(args.event);
  const { slots, steered } = round;
  const answered = slots
    .filter((slot) => isAnswered(slot, steered))
    .map(({ call: { callId, refused } }): NewEntry => {
      const [text, how] =
        steered === undefined && refused
          ? [refused.text, { outcome: 'failed' as const, code: refused.code }]
          : [skippedText(steered ?? ''), { outcome: 'cancelled' as const, code: 'skipped' }];
      return { runId, type: 'tool-result', callId, content: [{ type: 'text', text }], ...how };
    });
  return [...answered, ...writesOf(runId, outputsIn(round))];
}

/** A steer leaves nothing waiting; what was refused needs no turn, and a later look at it would not know why it was. */
const isAnswered = ({ status, call }: Slot, steered: string | undefined): boolean =>
  status === 'queued' && (steered !== undefined || call.refused !== undefined);

/** Calls behind a suspended one keep their turn, each behind the one before; where a steer came they are answered. */
export function roundCollected({ context, event }: Args): Partial<RunContext> {
  const round = roundOf(event);
  const counters = countOutputs(context.counters, outputsIn(round));
  const slots = round.slots.map(
    (slot): Slot => (isAnswered(slot, round.steered) ? { ...slot, status: 'skipped' } : slot),
  );
  const turns = slots.filter(({ status }) => status !== 'skipped');
  const kept = turns.flatMap(({ call, status }, index) =>
    status === 'queued' ? [{ call, behind: turns[index - 1]?.call.callId ?? '' }] : [],
  );
  return { calls: [], counters, failure: failureInRound(context, round), slots, kept: [...context.kept, ...kept] };
}

/** The run goes on without the calls that kept their turn. */
export const leaveKept = ({ context }: Args): NewEntry[] =>
  closed(
    context.runId,
    context.kept.map(({ call }) => call.callId),
    'not_started',
  );
