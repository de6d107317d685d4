/**
 * The nouns of runchart in their JSON forms. Everything that passes between charts and world, or is stored, has one of these
 * types. Invariant: JSON only (no Date, URL, AbortSignal, function), and no behaviour.
 */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A piece of content as it is stored and shown: image `data` is base64, a URL, or a blob reference. */
export type StoredPart = { type: 'text'; text: string } | { type: 'image'; mediaType: string; data: string };

export type GroupName = 'read-group' | 'write-group' | 'bash-group' | 'other-group';

export interface ToolCall {
  callId: string;
  name: string;
  /** The parsed JSON, or null with `argsText` where it does not parse. */
  args: Json;
  /** The raw text of arguments that do not parse, cut to 64 KiB. */
  argsText?: string;
  /** Declared by the tool. */
  group?: GroupName;
  /** What the provider attached; sent back unchanged. */
  extra?: Json;
}

export type ToolOutcome = 'succeeded' | 'failed' | 'cancelled' | 'unknown';

/** A person's answer to a suspended call (docs/internals/lifecycle.md, Decision Replay). */
export type Decision = { callId: string; suspension?: number; by?: string } & (
  | { action: 'approve' }
  | { action: 'deny'; reason?: string }
  | { action: 'edit'; args: Json }
  | { action: 'answer'; payload: Json }
);

export type DecisionReceipt = 'applied' | 'held' | 'duplicate' | 'conflict' | 'stale' | 'unknown';

export type Termination = 'NaturalEnd' | 'PluginRequested' | 'Stopped' | 'Suspended' | 'Cancelled' | 'Error';
export type StopReason = 'completed' | 'interrupted' | 'error';
export type MessageKind = 'direct' | 'steer' | 'followUp';
/** `pause`: the provider ended the reply but not the turn. */
export type FinishReason = 'stop' | 'tool-calls' | 'length' | 'content-filter' | 'pause';
export type Boundary = 'UserMessage' | 'AssistantTurnCommitted' | 'ToolResultsCommitted' | 'RunFinished';

export interface Failure {
  code: string;
  message: string;
}

/** Token counts; `inputTokens` includes the cached ones. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
  cacheWriteTokens: number;
  reasoningTokens: number;
}

export interface QueuedMessage {
  messageId: string;
  kind: 'steer' | 'followUp';
  content: StoredPart[];
}

/** How the host settles a call whose outcome is unknown after a crash. */
export type Settlement = { ran: Json } | { didNotRun: true } | { retry: true };

export interface Diagnostic {
  code: string;
  seq?: number;
  detail?: Json;
}

export type TextFlag = 'interrupted' | 'refusal';
export type AgentItem =
  | { type: 'assistant' | 'reasoning'; text: string; flag?: TextFlag }
  | ({ type: 'tool-call' } & ToolCall);

/** The four wire events (docs/internals/model.md, Input Model). */
export type WireEvent =
  | { type: 'user-message'; messageId: string; kind: MessageKind; content: StoredPart[] }
  /** `extra`: with the last item of a reply, what the provider wants back with the reply. */
  | { type: 'agent-output'; item: AgentItem; extra?: Json }
  | { type: 'tool-result'; callId: string; outcome: ToolOutcome; content: StoredPart[]; code?: string }
  | { type: 'run-stop'; reason: StopReason; cause?: string };

export type RuntimeEntry =
  | {
      type: 'conversation';
      schema: number;
      cwd: string;
      createdAt: number;
      parent?: { conversationId: string; callId: string };
    }
  /** The messages that the conversation was opened with. The entry represents the events that they consist of. */
  | { type: 'history'; messages: Message[] }
  | { type: 'run-started' }
  | { type: 'run-resumed'; of: string }
  | { type: 'run-suspended'; waiting: string[] }
  | { type: 'message-queued'; messageId: string; kind: 'steer' | 'followUp'; content: StoredPart[] }
  | { type: 'message-returned'; messageId: string; why: string }
  | { type: 'tool-allowed'; callId: string; by: string }
  | { type: 'tool-started'; callId: string; idempotencyKey: string; args?: Json }
  /** `args`: the arguments that wait, where a plugin or a decision changed them. */
  | { type: 'tool-suspended'; callId: string; suspension: number; reason: string; payload?: Json; args?: Json }
  | { type: 'decision'; callId: string; suspension: number; decision: Decision }
  | { type: 'decision-consumed'; callId: string; suspension: number }
  | { type: 'call-settled'; callId: string; how: Settlement }
  | { type: 'state-changed'; callId?: string; writes: { [key: string]: Json } }
  | { type: 'continuation'; text: string; why: string }
  | { type: 'model-reply'; turn: number; model: string; finish: FinishReason; usage: Usage; costUsd: number | null }
  | { type: 'model-retry'; turn: number; attempt: number; waitMs: number; model: string; reason: string }
  /** `usage`, `costUsd` and `model`: of the summary, where a model wrote one. */
  | {
      type: 'compaction';
      upToSeq: number;
      summary: string;
      usage?: Usage;
      costUsd?: number | null;
      model?: string;
    }
  | { type: 'context-warning'; used: number; limit: number }
  /** `child`: the sub-agent's conversation. */
  | { type: 'sub-agent'; callId: string; child: string; phase: 'started' | 'ended' }
  | { type: 'checkpoint'; boundary: Boundary }
  | { type: 'notice'; code: string; text: string }
  | ({ type: 'diagnostic' } & Omit<Diagnostic, 'seq'>)
  | { type: 'extension'; name: string; value: Json };

/** What a chart logs: the port adds seq, at and conversationId. */
export type NewEntry = { runId: string | null } & (WireEvent | RuntimeEntry);

export interface EntryBase {
  seq: number;
  /** Milliseconds, for display only. */
  at: number;
  conversationId: string;
  runId: string | null;
}
export type LogEntry = EntryBase & (WireEvent | RuntimeEntry);

/** A message as a model receives it. */
export type Message =
  | { role: 'user'; content: StoredPart[] }
  /** `extra`: what the provider attached (signed reasoning and the like); sent back unchanged. */
  | { role: 'assistant'; content: StoredPart[]; toolCalls: ToolCall[]; extra?: Json }
  | { role: 'tool'; callId: string; content: StoredPart[]; isError: boolean };

export interface PendingCall {
  callId: string;
  name: string;
  args: Json;
  reason: string;
  payload?: Json;
  /** Counts from 1 per call. */
  suspension: number;
  /** Call ids from the root conversation's call down to this one. */
  path: string[];
}
