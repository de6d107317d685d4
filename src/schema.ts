/**
 * `runchart/schema`: the wire events and the log entries as zod schemas, for edges that want to refuse. Rule: a wire
 * event is taken as any backend may send it (a message without kind, several items in one event), a log entry only as
 * the runtime writes it. The projector is tolerant and does not use them.
 */
import { z } from 'zod';
import type { Json } from '../machines/vocabulary.ts';
import { isJson } from './projector/collections.ts';

const json = z.custom<Json>(isJson, 'expected JSON, at most 512 levels deep');
const record = z.record(z.string(), json);
const count = z.number().nonnegative();
const ordinal = z.int().nonnegative();

const part = z.union([
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('image'), mediaType: z.string(), data: z.string() }),
]);
const content = z.array(part);
const group = z.enum(['read-group', 'write-group', 'bash-group', 'other-group']);

const text = z.object({
  type: z.enum(['assistant', 'reasoning']),
  text: z.string(),
  flag: z.enum(['interrupted', 'refusal']).optional(),
});
const call = z.object({
  type: z.literal('tool-call'),
  callId: z.string(),
  name: z.string(),
  args: json,
  argsText: z.string().optional(),
  group: group.optional(),
  extra: json.optional(),
});
const item = z.union([text, call]);
/** A group of a later version must not cost the call. */
const wireItem = z.union([text, call.extend({ group: group.optional().catch(undefined) })]);

const message = { messageId: z.string(), content };
const kind = z.enum(['direct', 'steer', 'followUp']);
const userMessage = z.object({ type: z.literal('user-message'), ...message, kind });
const agentOutput = z.object({ type: z.literal('agent-output'), item, extra: json.optional() });
const toolResult = z.object({
  type: z.literal('tool-result'),
  callId: z.string(),
  outcome: z.enum(['succeeded', 'failed', 'cancelled', 'unknown']),
  content,
  code: z.string().optional(),
});
const runStop = z.object({
  type: z.literal('run-stop'),
  reason: z.enum(['completed', 'interrupted', 'error']),
  cause: z.string().optional(),
});

/** The four wire events. An `agent-output` may hold one `item` or several, under `item` or `items`. */
export const wireEventSchema = z.union([
  userMessage.extend({ kind: kind.optional() }),
  agentOutput.extend({ item: z.union([wireItem, z.array(wireItem)]) }),
  z.object({ type: z.literal('agent-output'), items: z.array(wireItem) }),
  toolResult,
  runStop,
]);

const callId = z.string();
const suspension = z.int().positive();
const decision = z.intersection(
  z.object({ callId, suspension: suspension.optional(), by: z.string().optional() }),
  z.discriminatedUnion('action', [
    z.object({ action: z.literal('approve') }),
    z.object({ action: z.literal('deny'), reason: z.string().optional() }),
    z.object({ action: z.literal('edit'), args: json }),
    z.object({ action: z.literal('answer'), payload: json }),
  ]),
);
const settlement = z.union([
  z.strictObject({ ran: json }),
  z.strictObject({ didNotRun: z.literal(true) }),
  z.strictObject({ retry: z.literal(true) }),
]);
const usage = z.object({
  inputTokens: count,
  outputTokens: count,
  cachedInputTokens: count,
  cacheWriteTokens: count,
  reasoningTokens: count,
});
const queuedKind = z.enum(['steer', 'followUp']);
const parent = z.object({ conversationId: z.string(), callId });

const earlierMessage = z.discriminatedUnion('role', [
  z.object({ role: z.literal('user'), content }),
  z.object({
    role: z.literal('assistant'),
    content,
    toolCalls: z.array(call.omit({ type: true })),
    extra: json.optional(),
  }),
  z.object({ role: z.literal('tool'), callId, content, isError: z.boolean() }),
]);

const entries = [
  userMessage,
  agentOutput,
  toolResult,
  runStop,
  z.object({
    type: z.literal('conversation'),
    schema: ordinal,
    cwd: z.string(),
    createdAt: z.number(),
    parent: parent.optional(),
  }),
  z.object({ type: z.literal('history'), messages: z.array(earlierMessage) }),
  z.object({ type: z.literal('run-started') }),
  z.object({ type: z.literal('run-resumed'), of: z.string() }),
  z.object({ type: z.literal('run-suspended'), waiting: z.array(z.string()) }),
  z.object({ type: z.literal('message-queued'), ...message, kind: queuedKind }),
  z.object({ type: z.literal('message-returned'), messageId: z.string(), why: z.string() }),
  z.object({ type: z.literal('tool-allowed'), callId, by: z.string() }),
  z.object({ type: z.literal('tool-started'), callId, idempotencyKey: z.string(), args: json.optional() }),
  z.object({
    type: z.literal('tool-suspended'),
    callId,
    suspension,
    reason: z.string(),
    payload: json.optional(),
    args: json.optional(),
  }),
  z.object({ type: z.literal('decision'), callId, suspension, decision }),
  z.object({ type: z.literal('decision-consumed'), callId, suspension }),
  z.object({ type: z.literal('call-settled'), callId, how: settlement }),
  z.object({ type: z.literal('state-changed'), callId: callId.optional(), writes: record }),
  z.object({ type: z.literal('continuation'), text: z.string(), why: z.string() }),
  z.object({
    type: z.literal('model-reply'),
    turn: ordinal,
    model: z.string(),
    finish: z.enum(['stop', 'tool-calls', 'length', 'content-filter', 'pause']),
    usage,
    costUsd: count.nullable(),
  }),
  z.object({
    type: z.literal('model-retry'),
    turn: ordinal,
    attempt: ordinal,
    waitMs: count,
    model: z.string(),
    reason: z.string(),
  }),
  z.object({
    type: z.literal('compaction'),
    upToSeq: ordinal,
    summary: z.string(),
    usage: usage.optional(),
    costUsd: count.nullable().optional(),
    model: z.string().optional(),
  }),
  z.object({ type: z.literal('context-warning'), used: count, limit: count }),
  z.object({
    type: z.literal('sub-agent'),
    callId,
    child: z.string(),
    phase: z.enum(['started', 'ended']),
  }),
  z.object({
    type: z.literal('checkpoint'),
    boundary: z.enum(['UserMessage', 'AssistantTurnCommitted', 'ToolResultsCommitted', 'RunFinished']),
  }),
  z.object({ type: z.literal('notice'), code: z.string(), text: z.string() }),
  z.object({ type: z.literal('diagnostic'), code: z.string(), detail: json.optional() }),
  z.object({ type: z.literal('extension'), name: z.string(), value: json }),
] as const;

/** An entry of a log, with its envelope. */
export const logEntrySchema = z.intersection(
  z.object({ seq: ordinal, at: z.number(), conversationId: z.string(), runId: z.string().nullable() }),
  z.discriminatedUnion('type', entries),
);
