/**
 * RESUME_TOOL_CALL (run-lifecycle, Decision Replay): the one gate that applies decisions to suspended calls. It gets
 * what it has to do as a list in call-id order: decided calls, calls that kept their turn behind one, calls that may
 * run again after a crash. Each is settled or suspended anew; one checkpoint closes the gate. A decision is durable
 * before it gets here, so nothing this gate starts can outrun it.
 */
import { type AnyActorRef, assign, type DoneActorEvent, enqueueActions, sendTo, setup } from 'xstate';
import type { ToolRetry } from './policies.ts';
import { door, type EffectDone, type EffectRequest, type Phases, type RoundCall } from './ports.ts';
import { type CallConcluded, type ToolCallOutput, type ToolResultEntry, toolCallMachine } from './toolCall.machine.ts';
import type { Decision, NewEntry, StoredPart } from './vocabulary.ts';
import { writesOf } from './writes.ts';

/** One thing to do at the gate. Without a decision the call is started for the first time, or again. */
export interface Replay {
  call: RoundCall;
  suspension: number;
  /** Where it was started before. */
  idempotencyKey?: string;
  decision?: Decision;
  /** Do this only if the call with this id is settled: it kept its turn behind it. */
  behind?: string;
}

export interface ResumeToolCallInput {
  conversationId: string;
  runId: string;
  /** Prefix of the ids of everything this gate asks for. */
  id: string;
  replays: readonly Replay[];
  suspensionsMax: number;
  retry: false | ToolRetry;
  phases: Phases;
}

export interface ResumeToolCallOutput {
  outputs: readonly ToolCallOutput[];
}

export interface ResumeToolCallContext extends Omit<ResumeToolCallInput, 'replays'> {
  /** What is still to do, the current one first. */
  rest: readonly Replay[];
  /** What became of the calls so far. */
  outputs: readonly ToolCallOutput[];
}

type CallDone = DoneActorEvent<ToolCallOutput, string>;
export type ResumeToolCallEvent = EffectDone | CallConcluded | CallDone;
type Args = { context: ResumeToolCallContext; event: ResumeToolCallEvent };

const DENIED = 'The user did not allow this call. It was not run.';

function denial(replay: Replay): StoredPart[] {
  const { decision } = replay;
  const reason = decision?.action === 'deny' ? decision.reason : undefined;
  return [{ type: 'text', text: reason ? `${DENIED} Reason: ${reason}` : DENIED }];
}

function denied({ context }: Args): Partial<ResumeToolCallContext> {
  const [replay] = context.rest;
  if (!replay) return {};
  const { callId, name, print } = replay.call;
  const { suspension } = replay;
  const code = 'denied';
  const output: ToolCallOutput = { callId, name, outcome: 'failed', code, print: `${print}:denied`, suspension };
  return { outputs: [...context.outputs, output] };
}

function deniedRequest({ context }: Args): EffectRequest | undefined {
  const [replay] = context.rest;
  if (!replay || !context.phases.afterToolExecute) return undefined;
  const { runId, id } = context;
  const { callId } = replay.call;
  const content = denial(replay);
  return { kind: 'afterTool', id: `${id}/${callId}/after`, runId, callId, outcome: 'failed', content, code: 'denied' };
}

function denialOf({ rest, runId }: ResumeToolCallContext, shown?: StoredPart[]): ToolResultEntry[] {
  const [replay] = rest;
  if (!replay) return [];
  const { callId } = replay.call;
  const content = shown ?? denial(replay);
  return [{ runId, type: 'tool-result', callId, outcome: 'failed', content, code: 'denied' }];
}

const deniedResult = ({ context, event }: Args): ToolResultEntry[] =>
  denialOf(context, event.type === 'effect.done' && event.value.kind === 'shown' ? event.value.content : undefined);

function settled({ context, event }: Args): Partial<ResumeToolCallContext> {
  return event.type !== 'xstate.done.actor.replay' ? {} : { outputs: [...context.outputs, event.output] };
}

function consumed({ context }: Args): NewEntry[] {
  const [replay] = context.rest;
  if (!replay?.decision) return [];
  const { runId } = context;
  return [{ runId, type: 'decision-consumed', callId: replay.call.callId, suspension: replay.suspension }];
}

/** A call that kept its turn does not follow a call that was suspended again, nor one that was left out so. */
function advance({ context }: { context: ResumeToolCallContext }): Partial<ResumeToolCallContext> {
  const waiting = new Set(context.outputs.filter((o) => o.outcome === 'suspended').map((o) => o.callId));
  const rest: Replay[] = [];
  for (const replay of context.rest.slice(1)) {
    if (replay.behind !== undefined && waiting.has(replay.behind)) waiting.add(replay.call.callId);
    else rest.push(replay);
  }
  return { rest };
}

/** The run learns of each call as it is settled: it may have to end the gate half-way. */
const report = sendTo(
  ({ self }: { self: AnyActorRef }) => self._parent ?? self,
  ({ context }: { context: ResumeToolCallContext }) => ({ type: 'call.settled', output: context.outputs.at(-1) }),
);

const isDenied = (replay: Replay | undefined): boolean => replay?.decision?.action === 'deny';

export const resumeToolCallMachine = setup({
  types: {} as {
    context: ResumeToolCallContext;
    events: ResumeToolCallEvent;
    input: ResumeToolCallInput;
    output: ResumeToolCallOutput;
  },
  actors: { toolCall: toolCallMachine },
  actions: {
    ...door,
    deny: assign(denied),
    /** The run learns of a result before the plugins do: it may be cut while they hear of it. */
    conclude: enqueueActions(({ context, event, self, enqueue }) => {
      // Alone it has nobody to tell; to tell itself would never end.
      if (!self._parent || !context.phases.afterToolExecute) return;
      const [result] = denialOf(context);
      const denial = { type: 'call.concluded', output: { ...context.outputs.at(-1), result } };
      enqueue.sendTo(self._parent, event.type === 'call.concluded' ? event : denial);
    }),
    report,
    settle: assign(settled),
    advance: assign(advance),
  },
  guards: {
    nothingToDo: ({ context }) => context.rest.length === 0,
    cancels: ({ context }) => isDenied(context.rest[0]),
    suspendsAgain: ({ event }) => event.type === 'xstate.done.actor.replay' && event.output.outcome === 'suspended',
    nobodyAfter: ({ context }) => !context.phases.afterToolExecute,
    moreToDo: ({ context }) => context.rest.length > 0,
  },
}).createMachine({
  id: 'RESUME_TOOL_CALL',
  context: ({ input }) => ({
    conversationId: input.conversationId,
    runId: input.runId,
    id: input.id,
    rest: input.replays,
    suspensionsMax: input.suspensionsMax,
    retry: input.retry,
    phases: input.phases,
    outputs: [],
  }),
  output: ({ context }) => ({ outputs: context.outputs }),
  initial: 'DrainDecisionChannel',
  states: {
    DrainDecisionChannel: {
      always: [{ guard: 'nothingToDo', target: 'NoDecision' }, { target: 'ResolveDecision' }],
    },
    NoDecision: { always: { target: 'Done' } },
    ResolveDecision: { always: { target: 'PersistResumeDecision' } },
    PersistResumeDecision: { always: { target: 'Replay' } },
    Replay: { always: [{ guard: 'cancels', target: 'ReplayCancel' }, { target: 'ReplayResume' }] },
    ReplayCancel: {
      entry: ['deny', 'conclude', { type: 'ask', params: deniedRequest }],
      always: { guard: 'nobodyAfter', target: 'ClearResolved', actions: { type: 'log', params: deniedResult } },
      on: { 'effect.done': { target: 'ClearResolved', actions: { type: 'log', params: deniedResult } } },
    },
    ReplayResume: { always: { target: 'ExecuteReplayedTool' } },
    ExecuteReplayedTool: {
      invoke: {
        src: 'toolCall',
        id: 'replay',
        input: ({ context }) => {
          const [replay] = context.rest;
          if (!replay) throw new Error('a gate executes what it resolved');
          const { call, suspension, idempotencyKey, decision } = replay;
          return {
            conversationId: context.conversationId,
            runId: context.runId,
            id: `${context.id}/${call.callId}`,
            call,
            suspension,
            suspensionsMax: context.suspensionsMax,
            retry: context.retry,
            after: context.phases.afterToolExecute,
            ...(idempotencyKey !== undefined && { idempotencyKey }),
            ...(decision && { decision }),
          };
        },
      },
      on: {
        'call.concluded': { actions: 'conclude' },
        'xstate.done.actor.replay': [
          { guard: 'suspendsAgain', target: 'SetNextSuspended', actions: 'settle' },
          { target: 'ClearResolved', actions: 'settle' },
        ],
      },
    },
    SetNextSuspended: { always: { target: 'ClearResolved' } },
    ClearResolved: {
      entry: [{ type: 'log', params: consumed }, 'report', 'advance'],
      always: [{ guard: 'moreToDo', target: 'ResolveDecision' }, { target: 'SnapshotIfStateChanged' }],
    },
    SnapshotIfStateChanged: {
      entry: {
        type: 'log',
        params: ({ context }) => writesOf(context.runId, context.outputs),
      },
      always: { target: 'CommitReplay' },
    },
    CommitReplay: {
      entry: [
        {
          type: 'log',
          params: ({ context: { runId } }) => [{ runId, type: 'checkpoint', boundary: 'ToolResultsCommitted' }],
        },
        {
          type: 'ask',
          params: ({ context }) => ({
            kind: 'commit',
            id: `${context.id}/commit`,
            boundary: 'ToolResultsCommitted',
          }),
        },
      ],
      on: { 'effect.done': { target: 'Done' } },
    },
    Done: { type: 'final' },
  },
});
