/**
 * RESUME_TOOL_CALL (docs/internals/lifecycle.md, Decision Replay): the one gate that applies decisions to suspended
 * calls. Its input is a list in call-id order: decided calls, calls that kept their turn, calls that may run again
 * after a crash. Each call is settled or suspended again; one checkpoint closes the gate. Invariant: a decision is
 * durable before it reaches the gate, so nothing starts before the decision that permits it.
 */

import { type DoneActorEvent, setup } from 'xstate';
import type { CallConcluded, Replay, ToolCallOutput, ToolResultEntry } from '../calls.ts';
import { resultFingerprint } from '../fingerprint.ts';
import type { ToolRetry } from '../policies.ts';
import type { EffectDone, EffectRequest, Phases } from '../ports.ts';
import { deniedText } from '../transcript/texts.ts';
import { ask, type Chart, type ConfigOf, type Guards, log, type Message, tell, update } from '../verbs.ts';
import type { NewEntry, StoredPart } from '../vocabulary.ts';
import { verbs } from '../xstateVerbs.ts';
import { type ToolCallInput, toolCallChart, toolCallMachine } from './toolCall.machine.ts';
import { writesOf } from './toolRound.machine.ts';

export interface ResumeToolCallInput {
  conversationId: string;
  runId: string;
  /** Prefix of the ids of this gate's requests. */
  id: string;
  replays: readonly Replay[];
  suspensionsMax: number;
  retry: false | ToolRetry;
  phases: Phases;
}

/** The output of `resumeToolCallMachine`. */
export interface ResumeToolCallOutput {
  /** The outcomes of the calls. */
  outputs: readonly ToolCallOutput[];
}

export interface ResumeToolCallContext extends Omit<ResumeToolCallInput, 'replays'> {
  /** The remaining calls, the current one first. */
  rest: readonly Replay[];
  /** The outcomes of the calls so far. */
  outputs: readonly ToolCallOutput[];
}

type CallDone = DoneActorEvent<ToolCallOutput, string>;
export type ResumeToolCallEvent = EffectDone | CallConcluded | CallDone;
type Args = { context: ResumeToolCallContext; event: ResumeToolCallEvent };

function denial(replay: Replay): StoredPart[] {
  const { decision } = replay;
  const reason = decision?.action === 'deny' ? decision.reason : undefined;
  return [{ type: 'text', text: deniedText(reason) }];
}

function denied({ context }: Args): Partial<ResumeToolCallContext> {
  const [replay] = context.rest;
  if (!replay) return {};
  const { callId, name, fingerprint } = replay.call;
  const { suspension } = replay;
  const [result] = denialOf(context);
  const as = result ? resultFingerprint(fingerprint, result) : fingerprint;
  const output: ToolCallOutput = { callId, name, outcome: 'failed', code: 'denied', fingerprint: as, suspension };
  return { outputs: [...context.outputs, output] };
}

/** A plugin changed the logged result of a denial. */
function shown(args: Args): Partial<ResumeToolCallContext> {
  const { outputs, rest } = args.context;
  const [last, [result], fingerprint] = [outputs.at(-1), deniedResult(args), rest[0]?.call.fingerprint ?? ''];
  return last && result
    ? { outputs: [...outputs.slice(0, -1), { ...last, fingerprint: resultFingerprint(fingerprint, result) }] }
    : {};
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

/** A kept call does not run if the call before it was suspended again or skipped. */
function advance({ context }: { context: ResumeToolCallContext }): Partial<ResumeToolCallContext> {
  const waiting = new Set(context.outputs.filter((o) => o.outcome === 'suspended').map((o) => o.callId));
  const rest: Replay[] = [];
  for (const replay of context.rest.slice(1)) {
    if (replay.behind !== undefined && waiting.has(replay.behind)) waiting.add(replay.call.callId);
    else rest.push(replay);
  }
  return { rest };
}

type CallSettled = { type: 'call.settled'; output: ToolCallOutput };
type Sent = Message<'parent', CallSettled | CallConcluded>;

/** The run receives each call as it is settled, because it may have to end the gate early. */
function callSettled({ context }: Args): Sent | undefined {
  const output = context.outputs.at(-1);
  return output && { to: 'parent', event: { type: 'call.settled', output } };
}

/** The run receives a result before the plugins handle it, because the run may be interrupted meanwhile. */
function callConcluded({ context, event }: Args): Sent | undefined {
  const output = context.outputs.at(-1);
  if (event.type === 'call.concluded') return { to: 'parent', event };
  if (!context.phases.afterToolExecute || !output) return undefined;
  const [result] = denialOf(context);
  return { to: 'parent', event: { type: 'call.concluded', output: { ...output, result } } };
}

const gateWrites = ({ context }: Args): NewEntry[] => writesOf(context.runId, context.outputs);
const gateCheckpoint = ({ context: { runId } }: Args): NewEntry[] => [
  { runId, type: 'checkpoint', boundary: 'ToolResultsCommitted' },
];
const askGateCommit = ({ context }: Args): EffectRequest => ({
  kind: 'commit',
  id: `${context.id}/commit`,
  boundary: 'ToolResultsCommitted',
});

function replayInput({ context }: { context: ResumeToolCallContext }): ToolCallInput {
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
}

const isDenied = (replay: Replay | undefined): boolean => replay?.decision?.action === 'deny';

const guards = {
  nothingToDo: ({ context }) => context.rest.length === 0,
  cancels: ({ context }) => isDenied(context.rest[0]),
  suspendsAgain: ({ event }) => event.type === 'xstate.done.actor.replay' && event.output.outcome === 'suspended',
  nobodyAfter: ({ context }) => !context.phases.afterToolExecute,
  moreToDo: ({ context }) => context.rest.length > 0,
} satisfies Guards<ResumeToolCallContext, ResumeToolCallEvent>;

const resumeToolCallSetup = () =>
  setup({
    types: {} as {
      context: ResumeToolCallContext;
      events: ResumeToolCallEvent;
      input: ResumeToolCallInput;
      output: ResumeToolCallOutput;
    },
    actors: { toolCall: toolCallMachine },
    actions: verbs<ResumeToolCallContext, ResumeToolCallEvent, never, Sent>(),
    guards,
  });

const config = {
  id: 'RESUME_TOOL_CALL',
  context: ({ input: { replays, ...rest } }) => ({ ...rest, rest: replays, outputs: [] }),
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
      entry: [update(denied), tell(callConcluded), ask(deniedRequest)],
      always: { guard: 'nobodyAfter', target: 'ClearResolved', actions: log(deniedResult) },
      on: { 'effect.done': { target: 'ClearResolved', actions: [log(deniedResult), update(shown)] } },
    },
    ReplayResume: { always: { target: 'ExecuteReplayedTool' } },
    ExecuteReplayedTool: {
      invoke: {
        src: 'toolCall',
        id: 'replay',
        input: replayInput,
      },
      on: {
        'call.concluded': { actions: tell(callConcluded) },
        'xstate.done.actor.replay': [
          { guard: 'suspendsAgain', target: 'SetNextSuspended', actions: update(settled) },
          { target: 'ClearResolved', actions: update(settled) },
        ],
      },
    },
    SetNextSuspended: { always: { target: 'ClearResolved' } },
    ClearResolved: {
      entry: [log(consumed), tell(callSettled), update(advance)],
      always: [{ guard: 'moreToDo', target: 'ResolveDecision' }, { target: 'SnapshotIfStateChanged' }],
    },
    SnapshotIfStateChanged: {
      entry: log(gateWrites),
      always: { target: 'CommitReplay' },
    },
    CommitReplay: {
      entry: [log(gateCheckpoint), ask(askGateCommit)],
      on: { 'effect.done': { target: 'Done' } },
    },
    Done: { type: 'final' },
  },
} satisfies ConfigOf<typeof resumeToolCallSetup>;

export const resumeToolCallChart: Chart = {
  id: config.id,
  config,
  implementations: { guards, actors: { toolCall: toolCallChart } },
};
/** The chart RESUME_TOOL_CALL: it replays calls whose decisions have come. */
export const resumeToolCallMachine = /* @__PURE__ */ (() => resumeToolCallSetup().createMachine(config))();
