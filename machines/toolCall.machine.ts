/**
 * TOOL_CALL (run-lifecycle, TOOL_CALL Sub-State Machine): one per tool call; ends with exactly one outcome, or
 * suspended. It takes no event from outside: a cancelled round stops this actor, and what it asked for is dropped by
 * the run. Results go from the event that brings them into the log and are not kept here.
 */
import { assign, setup } from 'xstate';
import { door, type EffectDone, type EffectRequest, type RoundCall } from './ports.ts';
import type { Decision, Json, NewEntry, StoredPart, ToolOutcome } from './vocabulary.ts';

export interface ToolCallInput {
  conversationId: string;
  runId: string;
  /** Prefix of the ids of everything this call asks for. */
  id: string;
  call: RoundCall;
  /** How often the call was suspended before. */
  suspension: number;
  suspensionsMax: number;
  /** Whether somebody takes part in AfterToolExecute. */
  after: boolean;
  /** Set when this is the replay of a suspended call. */
  decision?: Decision;
}

export interface ToolCallOutput {
  callId: string;
  name: string;
  outcome: ToolOutcome | 'suspended';
  code?: string;
  print: string;
  writes?: { [key: string]: Json };
  /** Number of the last suspension. */
  suspension: number;
  reason?: string;
}

export interface ToolCallContext extends ToolCallInput {
  /** Set by the transition that decides the outcome. */
  output: ToolCallOutput | undefined;
}
export type ToolCallEvent = EffectDone;

type Args = { context: ToolCallContext; event: ToolCallEvent };

const text = (words: string): StoredPart[] => [{ type: 'text', text: words }];

/** The result that the deciding event brings; empty for a suspension. */
function contentOf({ context, event }: Args): StoredPart[] {
  if (context.call.refused && event.type !== 'effect.done') return text(context.call.refused.text);
  const { value } = event;
  if (value.kind === 'succeeded' || value.kind === 'erred' || value.kind === 'shown') return value.content;
  if (value.kind === 'block' || value.kind === 'refuse') return text(value.text);
  return text(`suspended more than ${context.suspensionsMax} times`);
}

/** What the deciding event makes of the call, once it has decided; a transition may decide and end in one step. */
function outputOf({ context, event }: Args): ToolCallOutput {
  if (context.output) return context.output;
  const { callId, name, print, refused } = context.call;
  const base = { callId, name, suspension: context.suspension };
  if (event.type !== 'effect.done') {
    const code = refused?.code ?? 'error';
    return { ...base, outcome: 'failed', code, print: `${print}:${code}` };
  }
  const { value } = event;
  switch (value.kind) {
    case 'succeeded':
      return {
        ...base,
        outcome: 'succeeded',
        print: `${print}:${value.print}`,
        ...(value.writes && { writes: value.writes }),
      };
    case 'erred':
      return { ...base, outcome: 'failed', code: value.code, print: `${print}:${value.print}` };
    case 'block':
    case 'refuse':
      return { ...base, outcome: 'failed', code: value.code, print: `${print}:${value.code}` };
    default:
      return { ...base, outcome: 'failed', code: 'suspend_limit', print: `${print}:suspend_limit` };
  }
}

function suspended({ context, event }: Args): Partial<ToolCallContext> {
  const { callId, name, print } = context.call;
  const reason = 'reason' in event.value ? event.value.reason : '';
  const suspension = context.suspension + 1;
  return { output: { callId, name, outcome: 'suspended', print, suspension, reason } };
}

function started({ context, event }: Args): NewEntry[] {
  const { runId, call, suspension } = context;
  const { callId } = call;
  const idempotencyKey = keyOf(context);
  const verdict = event.type === 'effect.done' && event.value.kind === 'allow' ? event.value : undefined;
  const entry: NewEntry = { runId, type: 'tool-started', callId, idempotencyKey };
  if (verdict?.args !== undefined) entry.args = verdict.args;
  const by = verdict?.by ?? (suspension > 0 ? 'decision' : undefined);
  return by === undefined ? [entry] : [{ runId, type: 'tool-allowed', callId, by }, entry];
}

/** The same over retries and crashes, a new one after a new suspension. */
const keyOf = (context: ToolCallContext): string =>
  `${context.conversationId}/${context.call.callId}/${context.suspension}`;

function gateRequest({ context }: { context: ToolCallContext }): EffectRequest | undefined {
  const { call, decision, id, runId, suspension } = context;
  if (call.refused || !call.gated) return undefined;
  return { kind: 'gate', id: `${id}/gate`, runId, callId: call.callId, suspension, ...(decision && { decision }) };
}

function toolRequest({ context }: { context: ToolCallContext }): EffectRequest {
  const { call, decision, id, runId, suspension } = context;
  const idempotencyKey = keyOf(context);
  const request = { kind: 'tool' as const, id: `${id}/tool`, runId, callId: call.callId, suspension, idempotencyKey };
  return decision ? { ...request, decision } : request;
}

function afterRequest(args: Args): EffectRequest | undefined {
  const { after, id, runId, call, output } = args.context;
  if (!after || !output) return undefined;
  const { outcome, code } = output;
  const content = outcome === 'suspended' ? [] : contentOf(args);
  const request = { kind: 'afterTool' as const, id: `${id}/after`, runId, callId: call.callId, outcome, content };
  return code === undefined ? request : { ...request, code };
}

function resultEntries(args: Args): NewEntry[] {
  const { runId, call } = args.context;
  const { outcome, code } = outputOf(args);
  if (outcome === 'suspended') return [];
  const entry = { runId, type: 'tool-result' as const, callId: call.callId, outcome, content: contentOf(args) };
  return [code === undefined ? entry : { ...entry, code }];
}

function suspendedEntries({ context, event }: Args): NewEntry[] {
  const { runId, call, output } = context;
  const { value } = event;
  if (value.kind !== 'suspend' && value.kind !== 'pending') return [];
  const suspension = output?.suspension ?? 1;
  const { reason, payload } = value;
  const entry = { runId, type: 'tool-suspended' as const, callId: call.callId, suspension, reason };
  return [payload === undefined ? entry : { ...entry, payload }];
}

const mayNot = ({ context }: { context: ToolCallContext }): boolean => context.suspension >= context.suspensionsMax;

export const toolCallMachine = setup({
  types: {} as {
    context: ToolCallContext;
    events: ToolCallEvent;
    input: ToolCallInput;
    output: ToolCallOutput;
  },
  actions: {
    ...door,
    decide: assign((args) => ({ output: outputOf(args) })),
    suspend: assign(suspended),
  },
  guards: {
    refused: ({ context }) => context.call.refused !== undefined,
    ungated: ({ context }) => !context.call.gated,
    blocked: ({ event }) => event.value.kind === 'block',
    suspends: ({ event }) => event.value.kind === 'suspend' || event.value.kind === 'pending',
    suspendsTooOften: (args) =>
      mayNot(args) && (args.event.value.kind === 'suspend' || args.event.value.kind === 'pending'),
    refusedByGate: ({ event }) => event.value.kind === 'refuse',
    erred: ({ event }) => event.value.kind === 'erred',
    nobodyAfter: ({ context }) => !context.after,
    succeedsUnheard: ({ context, event }) => !context.after && event.value.kind === 'succeeded',
  },
}).createMachine({
  id: 'TOOL_CALL',
  context: ({ input }) => ({ ...input, output: undefined }),
  output: ({ event }) => (event as unknown as { output: ToolCallOutput }).output,
  initial: 'BeforeToolExecute',
  states: {
    BeforeToolExecute: {
      entry: { type: 'ask', params: gateRequest },
      always: [
        { guard: 'refused', target: 'Failed', actions: 'decide' },
        { guard: 'ungated', target: 'ExecuteTool' },
      ],
      on: {
        'effect.done': [
          { guard: 'blocked', target: 'Blocked', actions: 'decide' },
          { guard: 'suspendsTooOften', target: 'Failed', actions: 'decide' },
          { guard: 'suspends', target: 'Suspended', actions: 'suspend' },
          { guard: 'refusedByGate', target: 'Failed', actions: 'decide' },
          { target: 'ExecuteTool' },
        ],
      },
    },
    ExecuteTool: {
      entry: [
        { type: 'log', params: started },
        { type: 'ask', params: toolRequest },
      ],
      on: {
        'effect.done': [
          { guard: 'suspendsTooOften', target: 'Failed', actions: 'decide' },
          { guard: 'suspends', target: 'Suspended', actions: 'suspend' },
          {
            guard: 'succeedsUnheard',
            target: 'Done',
            actions: { type: 'log', params: resultEntries },
            meta: { via: ['Succeeded', 'AfterToolExecute'] },
          },
          { guard: 'erred', target: 'Failed', actions: 'decide' },
          { target: 'Succeeded', actions: 'decide' },
        ],
      },
    },
    Succeeded: { always: { target: 'AfterToolExecute' } },
    Failed: { always: { target: 'AfterToolExecute' } },
    Blocked: { always: { target: 'AfterToolExecute' } },
    Suspended: {
      entry: { type: 'log', params: suspendedEntries },
      always: { target: 'AfterToolExecute' },
    },
    AfterToolExecute: {
      entry: { type: 'ask', params: afterRequest },
      always: { guard: 'nobodyAfter', target: 'Done', actions: { type: 'log', params: resultEntries } },
      on: {
        'effect.done': { target: 'Done', actions: { type: 'log', params: resultEntries } },
      },
    },
    Done: { type: 'final', output: (args: Args) => outputOf(args) },
  },
});
