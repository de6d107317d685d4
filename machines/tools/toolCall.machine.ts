/**
 * TOOL_CALL (docs/internals/lifecycle.md, TOOL_CALL): one per tool call. It ends with exactly one outcome, or
 * suspended. It takes no event from outside: a cancelled round stops this actor, and the run drops its requests. A
 * result goes from the event that carries it into the log and is not held here. During AfterToolExecute the round holds
 * it, because a run that ends meanwhile writes it. ExecuteTool holds the executions of the call and the waits between
 * them: one start, one idempotency key, one outcome.
 */

import { setup } from 'xstate';
import type { CallConcluded, RoundCall, ToolCallOutput, ToolResultEntry } from '../calls.ts';
import { resultFingerprint } from '../fingerprint.ts';
import { backoffMs, type ToolRetry } from '../policies.ts';
import type { EffectDone, EffectRequest, EffectValue, TimerElapsed, ToolValue } from '../ports.ts';
import { suspendedTooOften } from '../transcript/texts.ts';
import {
  ask,
  type Chart,
  type ConfigOf,
  type FinalEvent,
  type Guards,
  log,
  type Message,
  tell,
  update,
} from '../verbs.ts';
import type { Decision, Failure, NewEntry, StoredPart } from '../vocabulary.ts';
import { verbs } from '../xstateVerbs.ts';

export interface ToolAttempts {
  runId: string;
  /** Prefix of the ids of this call's requests. */
  id: string;
  call: RoundCall;
  retry: false | ToolRetry;
  /** Counts from 1. */
  attempt: number;
}
type RetryArgs = { context: ToolAttempts; event: EffectDone | TimerElapsed };
type Erred = Extract<ToolValue, { kind: 'erred' }>;

/** A failure that the host allows to be repeated. */
function repeatable(event: RetryArgs['event']): Erred | undefined {
  return event.type === 'effect.done' && event.value.kind === 'erred' && event.value.retry ? event.value : undefined;
}

/** The tool failed, and another execution is allowed. */
export const retries = ({ context: { retry, attempt }, event }: RetryArgs): boolean =>
  repeatable(event) !== undefined && retry !== false && attempt < retry.attempts;

/** `attempt` already includes the next execution. */
function waitMs({ retry, attempt }: ToolAttempts, { retry: allowed }: Erred): number {
  return retry === false ? 0 : backoffMs(retry, attempt - 1, allowed?.random ?? 0);
}

export function retryNotice({ context, event }: RetryArgs): NewEntry[] {
  const { runId, call, retry, attempt } = context;
  const erred = repeatable(event);
  if (!erred || retry === false) return [];
  const again = `attempt ${attempt} of ${retry.attempts} follows in ${waitMs(context, erred)} ms`;
  const text = `The tool ${call.name} failed in call ${call.callId} (${erred.code}); ${again}.`;
  return [{ runId, type: 'notice', code: 'tool_retry', text }];
}

const waitId = ({ id, attempt }: ToolAttempts): string => `${id}/wait/${attempt}`;

/** The timer is the wait that this call asked for. */
export const waitIsOver = ({ context, event }: RetryArgs): boolean =>
  event.type === 'timer.elapsed' && event.id === waitId(context);

export function askWait({ context, event }: RetryArgs): EffectRequest | undefined {
  const erred = repeatable(event);
  return erred && { kind: 'timer', id: waitId(context), ms: waitMs(context, erred) };
}

export interface ToolCallInput {
  conversationId: string;
  runId: string;
  /** Prefix of the ids of this call's requests. */
  id: string;
  call: RoundCall;
  /** The number of earlier suspensions of the call. */
  suspension: number;
  suspensionsMax: number;
  retry: false | ToolRetry;
  /** Whether a plugin takes part in AfterToolExecute. */
  after: boolean;
  /** The idempotency key of the start that this one repeats. */
  idempotencyKey?: string;
  /** Present when this is the replay of a suspended call. */
  decision?: Decision;
}

export interface ToolCallContext extends ToolCallInput {
  /** Number of the execution, from 1. */
  attempt: number;
  /** Set by the transition that decides the outcome. */
  output: ToolCallOutput | undefined;
}
export type ToolCallEvent = EffectDone | TimerElapsed;

type Args = { context: ToolCallContext; event: ToolCallEvent };

const text = (words: string): StoredPart[] => [{ type: 'text', text: words }];

const answerOf = (event: ToolCallEvent): EffectValue | undefined =>
  event.type === 'effect.done' ? event.value : undefined;
const suspends = (event: ToolCallEvent): boolean => {
  const kind = answerOf(event)?.kind;
  return kind === 'suspend' || kind === 'pending';
};
/** The sub-agents' calls wait for a person, not this call. Their suspensions are limited one by one. */
function waitsWithin(event: ToolCallEvent): boolean {
  const value = answerOf(event);
  return value?.kind === 'pending' && value.within === true;
}

/** The run keeps the failure of a tool, not its result. */
const MESSAGE_LONGEST = 1_000;

function failureOf({ code, content }: { code: string; content: readonly StoredPart[] }): Failure {
  const words = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  return { code, message: words.slice(0, MESSAGE_LONGEST) };
}

/** The result that the deciding event carries; empty for a suspension. */
function contentOf({ context, event }: Args): StoredPart[] {
  const value = answerOf(event);
  if (!value) return text(context.call.refused?.text ?? '');
  if (value.kind === 'succeeded' || value.kind === 'erred' || value.kind === 'shown') return value.content;
  if (value.kind === 'block' || value.kind === 'refuse') return text(value.text);
  return text(suspendedTooOften(context.suspensionsMax));
}

/** The outcome by the deciding event. A transition may decide and end in one step. */
function outputOf({ context, event }: Args): ToolCallOutput {
  if (context.output) return context.output;
  const { callId, name, fingerprint, refused } = context.call;
  const base = { callId, name, fingerprint, suspension: context.suspension };
  const value = answerOf(event);
  if (!value) {
    const code = refused?.code ?? 'error';
    return { ...base, outcome: 'failed', code };
  }
  switch (value.kind) {
    case 'succeeded':
      return { ...base, outcome: 'succeeded', ...(value.writes && { writes: value.writes }) };
    case 'erred':
      return { ...base, outcome: 'failed', code: value.code, failure: failureOf(value) };
    case 'block':
    case 'refuse':
      return { ...base, outcome: 'failed', code: value.code };
    default:
      return { ...base, outcome: 'failed', code: 'suspend_limit' };
  }
}

const decided = (args: Args): Partial<ToolCallContext> => ({ output: outputOf(args) });
const nextExecution = ({ context }: Args): Partial<ToolCallContext> => ({ attempt: context.attempt + 1 });

function suspended({ context, event }: Args): Partial<ToolCallContext> {
  const { callId, name, fingerprint } = context.call;
  const value = answerOf(event);
  const reason = value && 'reason' in value ? value.reason : '';
  const suspension = context.suspension + 1;
  return { output: { callId, name, outcome: 'suspended', fingerprint, suspension, reason } };
}

function started({ context, event }: Args): NewEntry[] {
  const { runId, call, suspension } = context;
  const { callId } = call;
  const idempotencyKey = keyOf(context);
  const value = answerOf(event);
  const verdict = value?.kind === 'allow' ? value : undefined;
  const entry: NewEntry = { runId, type: 'tool-started', callId, idempotencyKey };
  if (verdict?.args !== undefined) entry.args = verdict.args;
  const by = verdict?.by ?? (suspension > 0 ? 'decision' : undefined);
  return by === undefined ? [entry] : [{ runId, type: 'tool-allowed', callId, by }, entry];
}

/** Ids are any text. The separator is escaped in each of them, so that two calls never share a key. */
const partOf = (id: string): string => (/[%/]/.test(id) ? id.replaceAll('%', '%25').replaceAll('/', '%2F') : id);

/** The key is the same over retries and crashes, and new after a new suspension. */
const keyOf = ({ conversationId, call, suspension, idempotencyKey }: ToolCallContext): string =>
  idempotencyKey ?? `${partOf(conversationId)}/${partOf(call.callId)}/${suspension}`;

function gateRequest({ context }: { context: ToolCallContext }): EffectRequest | undefined {
  const { call, decision, id, runId, suspension } = context;
  if (call.refused || !call.gated) return undefined;
  return { kind: 'gate', id: `${id}/gate`, runId, callId: call.callId, suspension, ...(decision && { decision }) };
}

function toolRequest({ context }: { context: ToolCallContext }): EffectRequest {
  const { call, decision, runId, suspension, attempt } = context;
  const { callId } = call;
  const idempotencyKey = keyOf(context);
  const id = attempt === 1 ? `${context.id}/tool` : `${context.id}/tool/${attempt}`;
  const request = { kind: 'tool' as const, id, runId, callId, suspension, idempotencyKey };
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

function resultEntries(args: Args): ToolResultEntry[] {
  const { runId, call } = args.context;
  const { outcome, code } = outputOf(args);
  if (outcome === 'suspended') return [];
  const entry = { runId, type: 'tool-result' as const, callId: call.callId, outcome, content: contentOf(args) };
  return [code === undefined ? entry : { ...entry, code }];
}

/** The outcome of the call, as it is logged and compared. */
function concludedOf(args: Args): ToolCallOutput {
  const [result] = resultEntries(args);
  const output = outputOf(args);
  return result ? { ...output, fingerprint: resultFingerprint(args.context.call.fingerprint, result) } : output;
}

function suspendedEntries({ context, event }: Args): NewEntry[] {
  const { runId, call, output } = context;
  const value = answerOf(event);
  if (value?.kind !== 'suspend' && value?.kind !== 'pending') return [];
  const suspension = output?.suspension ?? 1;
  const { reason, payload } = value;
  const args = value.kind === 'suspend' ? value.args : undefined;
  const entry = { runId, type: 'tool-suspended' as const, callId: call.callId, suspension, reason };
  return [{ ...entry, ...(payload !== undefined && { payload }), ...(args !== undefined && { args }) }];
}

/** While plugins handle the call, the round holds its outcome. */
function concluded(args: Args): Message<'parent', CallConcluded> | undefined {
  if (!args.context.after) return undefined;
  const [result] = resultEntries(args);
  return { to: 'parent', event: { type: 'call.concluded', output: { ...concludedOf(args), result } } };
}

const mayNot = ({ context }: { context: ToolCallContext }): boolean => context.suspension >= context.suspensionsMax;

const guards = {
  refused: ({ context }) => context.call.refused !== undefined,
  ungated: ({ context }) => !context.call.gated,
  blocked: ({ event }) => answerOf(event)?.kind === 'block',
  suspends: ({ event }) => suspends(event),
  suspendsTooOften: (args) => mayNot(args) && suspends(args.event) && !waitsWithin(args.event),
  refusedByGate: ({ event }) => answerOf(event)?.kind === 'refuse',
  retries,
  waitIsOver,
  erred: ({ event }) => answerOf(event)?.kind === 'erred',
  nobodyAfter: ({ context }) => !context.after,
} satisfies Guards<ToolCallContext, ToolCallEvent>;

const toolCallSetup = () =>
  setup({
    types: {} as {
      context: ToolCallContext;
      events: ToolCallEvent;
      input: ToolCallInput;
      output: ToolCallOutput;
    },
    actions: verbs<ToolCallContext, ToolCallEvent, never, Message<'parent', CallConcluded>>(),
    guards,
  });

const config = {
  id: 'TOOL_CALL',
  context: ({ input }) => ({ ...input, attempt: 1, output: undefined }),
  output: ({ event }) => (event as FinalEvent<ToolCallOutput>).output,
  initial: 'BeforeToolExecute',
  states: {
    BeforeToolExecute: {
      entry: ask(gateRequest),
      always: [
        { guard: 'refused', target: 'Failed', actions: update(decided) },
        { guard: 'ungated', target: 'ExecuteTool' },
      ],
      on: {
        'effect.done': [
          { guard: 'blocked', target: 'Blocked', actions: update(decided) },
          { guard: 'suspendsTooOften', target: 'Failed', actions: update(decided) },
          { guard: 'suspends', target: 'Suspended', actions: update(suspended) },
          { guard: 'refusedByGate', target: 'Failed', actions: update(decided) },
          { target: 'ExecuteTool' },
        ],
      },
    },
    ExecuteTool: {
      entry: log(started),
      initial: 'attempting',
      states: {
        attempting: {
          entry: ask(toolRequest),
          on: { 'effect.done': { guard: 'retries', target: 'backingOff', actions: update(nextExecution) } },
        },
        backingOff: {
          entry: [log(retryNotice), ask(askWait)],
          on: { 'timer.elapsed': { guard: 'waitIsOver', target: 'attempting' } },
        },
      },
      on: {
        'effect.done': [
          { guard: 'suspendsTooOften', target: 'Failed', actions: update(decided) },
          { guard: 'suspends', target: 'Suspended', actions: update(suspended) },
          { guard: 'erred', target: 'Failed', actions: update(decided) },
          { target: 'Succeeded', actions: update(decided) },
        ],
      },
    },
    Succeeded: { always: { target: 'AfterToolExecute' } },
    Failed: { always: { target: 'AfterToolExecute' } },
    Blocked: { always: { target: 'AfterToolExecute' } },
    Suspended: {
      entry: log(suspendedEntries),
      always: { target: 'AfterToolExecute' },
    },
    AfterToolExecute: {
      entry: [tell(concluded), ask(afterRequest)],
      always: { guard: 'nobodyAfter', target: 'Done', actions: log(resultEntries) },
      on: {
        'effect.done': { target: 'Done', actions: log(resultEntries) },
      },
    },
    Done: { type: 'final', output: concludedOf },
  },
} satisfies ConfigOf<typeof toolCallSetup>;

export const toolCallChart: Chart = { id: config.id, config, implementations: { guards, actors: {} } };
/** The chart TOOL_CALL: gate, execution and result of one call. */
export const toolCallMachine = /* @__PURE__ */ (() => toolCallSetup().createMachine(config))();
