/**
 * Entries for the projector's tests, and views as short texts. Invariant: a message's id is its text, so that stories
 * are easy to read.
 */
import type { GroupName, Json, StoredPart, ToolOutcome } from '../../machines/vocabulary.ts';
import type { ConversationView, ResolutionStep, ToolCallView } from '../../src/projector/index.ts';

export const parts = (text: string): StoredPart[] => [{ type: 'text', text }];

/** A user message; without a kind the receiver classifies it. */
export const U = (text: string, kind?: 'direct' | 'steer' | 'followUp') => ({
  type: 'user-message' as const,
  messageId: text,
  ...(kind && { kind }),
  content: parts(text),
});
export const A = (text: string) => ({ type: 'agent-output' as const, item: { type: 'assistant' as const, text } });
export const R = (text: string) => ({ type: 'agent-output' as const, item: { type: 'reasoning' as const, text } });
export const C = (callId: string, name = 'read', args: Json = {}, group?: GroupName) => ({
  type: 'agent-output' as const,
  item: { type: 'tool-call' as const, callId, name, args, ...(group && { group }) },
});
export const T = (callId: string, text = `result of ${callId}`, outcome: ToolOutcome = 'succeeded') => ({
  type: 'tool-result' as const,
  callId,
  outcome,
  content: parts(text),
});
export const S = (reason: 'completed' | 'interrupted' | 'error' = 'completed', cause?: string) => ({
  type: 'run-stop' as const,
  reason,
  ...(cause && { cause }),
});
export const started = (callId: string, changed: { args?: Json } = {}) => ({
  type: 'tool-started' as const,
  callId,
  idempotencyKey: `c/${callId}/0`,
  ...changed,
});
export const suspendedCall = (callId: string, suspension = 1) => ({
  type: 'tool-suspended' as const,
  callId,
  suspension,
  reason: 'permission',
});
export const decided = (callId: string, suspension = 1, who: { by?: string } = {}) => ({
  type: 'decision' as const,
  callId,
  suspension,
  decision: { callId, action: 'approve' as const, ...who },
});
export const queued = (text: string, kind: 'steer' | 'followUp' = 'followUp') => ({
  type: 'message-queued' as const,
  messageId: text,
  kind,
  content: parts(text),
});
export const reply = (outputTokens = 1) => ({
  type: 'model-reply' as const,
  turn: 1,
  model: 'm',
  finish: 'stop' as const,
  usage: { inputTokens: 10, outputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
  costUsd: null,
});

/** Entries as a log contains them. */
export const stamped = <E extends object>(events: readonly E[], runId = 'r1', from = 0) =>
  events.map((event, i) => ({ seq: from + i, at: i, conversationId: 'c', runId, ...event }));

const calls = (list: readonly ToolCallView[]): string => list.map(({ callId }) => callId).join(' ');

/** A step in a line: `assistant x [read a b] [bash c]`. */
export function inWords(step: ResolutionStep): string {
  if (step.type !== 'ai-block') return `${step.type} ${step.messageId}`;
  const groups = step.groups.map((group) => ` [${group.kind.replace('-group', '')} ${calls(group.calls)}]`);
  return (step.text === null ? 'no text' : `${step.text.kind} ${step.text.text}`) + groups.join('');
}

/** The steps of a cycle, of the last one by default. */
export const stepsOf = (view: ConversationView, cycle = view.cycles.length - 1): string[] =>
  view.cycles[cycle]?.steps.map(inWords) ?? [];

/** Diagnostics, by code. */
export const codes = (view: ConversationView): string[] => view.diagnostics.map(({ code }) => code);

export const callsOf = (view: ConversationView): ToolCallView[] =>
  view.cycles.flatMap(({ steps }) =>
    steps.flatMap((step) => (step.type === 'ai-block' ? step.groups.flatMap((group) => group.calls) : [])),
  );
/** The call in the steps. */
export const callIn = (view: ConversationView, callId: string): ToolCallView | undefined =>
  callsOf(view).find((call) => call.callId === callId);

/** Rounds as text: the new part of the input, and the reply of the model. */
export const roundsOf = (view: ConversationView, cycle = 0) =>
  view.cycles[cycle]?.rounds.map(({ input, output }) => ({
    messages: input.messages.map(({ messageId }) => messageId),
    results: input.results.map(({ callId }) => callId),
    texts: output.texts.map(({ text }) => text),
    calls: output.calls.map(({ callId }) => callId),
  }));
