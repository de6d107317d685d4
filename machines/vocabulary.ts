/**
 * The nouns of runchart in their JSON forms. Everything that passes between charts and world, or is stored, has one of these
 * types. Invariant: JSON only (no Date, URL, AbortSignal, function), and no behaviour.
 */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A piece of content as it is stored and shown. `data` is base64, a URL, or a blob reference. */
export type StoredPart =
  | { type: 'text'; text: string }
  | { type: 'image'; mediaType: string; data: string }
  /** A PDF, a text, a sound and the like. `name` is the file's name at its sender. */
  | { type: 'file'; mediaType: string; name?: string; data: string };
/** A part whose data are bytes. */
export type Attachment = Exclude<StoredPart, { type: 'text' }>;

/** The group of a tool in views. */
export type GroupName = 'read-group' | 'write-group' | 'bash-group' | 'other-group';

/** A tool call of a reply. */
export interface ToolCall {
  /** The id of the call, unique in the conversation. */
  callId: string;
  /** The name of the tool. */
  name: string;
  /** The parsed JSON, or null with `argsText` where it does not parse. */
  args: Json;
  /** The raw text of arguments that do not parse, cut to 64 KiB. */
  argsText?: string;
  /** Declared by the tool. */
  group?: GroupName;
  /** Data that the provider attached; sent back unchanged. */
  extra?: Json;
}

/** The outcome of a call. `unknown`: the call may have run before a crash. */
export type ToolOutcome = 'succeeded' | 'failed' | 'cancelled' | 'unknown';

/** A person's answer to a suspended call (docs/internals/lifecycle.md, Decision Replay). */
export type Decision = { callId: string; suspension?: number; by?: string } & (
  | { action: 'approve' }
  | { action: 'deny'; reason?: string }
  | { action: 'edit'; args: Json }
  | { action: 'answer'; payload: Json }
);

/** The outcome of a decision: docs/approvals.md describes each value. */
export type DecisionReceipt = 'applied' | 'held' | 'duplicate' | 'conflict' | 'stale' | 'unknown';

/** The end state of a run. */
export type Termination = 'NaturalEnd' | 'PluginRequested' | 'Stopped' | 'Suspended' | 'Cancelled' | 'Error';
/**
 * The state of a conversation. `waiting`: the last cycle is suspended and nothing runs. `error` is a kind of idle: it takes
 * the next message.
 */
export type ConversationStatus = 'idle' | 'active' | 'waiting' | 'cancelling' | 'error';

/** The reason of a stop. It closes the request's cycle. */
export type StopReason = 'completed' | 'interrupted' | 'error';
/** The way of a message to the model: as a request, into a running request, or after it. */
export type MessageKind = 'direct' | 'steer' | 'followUp';
/** The reason for which the provider ended a reply. `pause`: the provider ended the reply but not the turn. */
export type FinishReason = 'stop' | 'tool-calls' | 'length' | 'content-filter' | 'pause';
/** The step that a checkpoint completes. */
export type Boundary = 'UserMessage' | 'AssistantTurnCommitted' | 'ToolResultsCommitted' | 'RunFinished';

/** An error as data. */
export interface Failure {
  /** The stable code of the error. */
  code: string;
  /** The message for people. */
  message: string;
}

/** Token counts; `inputTokens` includes the cached ones. */
export interface Usage {
  /** Tokens of the input, cached ones included. */
  inputTokens: number;
  /** Tokens of the output, reasoning included. */
  outputTokens: number;
  /** Input tokens that the provider read from its cache. */
  cachedInputTokens: number;
  /** Input tokens that the provider wrote to its cache. */
  cacheWriteTokens: number;
  /** Output tokens of reasoning. */
  reasoningTokens: number;
}

/** Settings of a model for one request, in place of the model's own. */
export interface ModelSettings {
  /** The sampling temperature. */
  temperature?: number;
  /** The share of probability that sampling uses. */
  topP?: number;
  /** Tokens. */
  maxOutputTokens?: number;
  /** Passed on as it is, for example `low` or `high`. */
  reasoningEffort?: string;
  /** `required`, and a tool's name, hold until the request has its first call. */
  toolChoice?: 'auto' | 'none' | 'required' | { tool: string };
}

/** The choices of a message for its request. It holds for the cycle that the message begins, and for all of the cycle's runs. */
export interface RequestChoices {
  /** The person or system that asks. Models do not receive it. */
  by?: string;
  /** The value that tools and plugins receive about the request. Models do not receive it. */
  context?: Json;
  /** The name of one of the agent's `models`. */
  model?: string;
  /** Settings of the model for the cycle. */
  settings?: ModelSettings;
  /** The names of the tools that the request may use. */
  tools?: string[];
  /** The name of one of the agent's `outputs`. */
  output?: string;
  /** The message came with a schema of its own, which the log does not contain. */
  outputSchema?: 'unstored';
}

/** The message that a cycle began with, as tools, plugins and approvals receive it. */
export type RequestInfo = {
  /** The id of the message. */
  readonly messageId: string;
  /** The name of the person or system that asked. */
  readonly by?: string;
  /** The context that the message carried, without secrets. */
  readonly context?: Json;
};

/** A message that waits for its delivery. */
export interface QueuedMessage extends RequestChoices {
  /** The id of the message. */
  messageId: string;
  /** How the message will reach the model. */
  kind: 'steer' | 'followUp';
  /** The content of the message. */
  content: StoredPart[];
}

/** The host's settlement of a call whose outcome is unknown after a crash. */
export type Settlement = { ran: Json } | { didNotRun: true } | { retry: true };

/** A fact for developers that changes nothing in the run. */
export interface Diagnostic {
  /** The stable code. docs/errors.md lists the codes. */
  code: string;
  /** The number of its entry. */
  seq?: number;
  /** More facts, as JSON. */
  detail?: Json;
}

/** Marks a text of the model: a refusal, or a text that was cut off. */
export type TextFlag = 'interrupted' | 'refusal';
/** A part of a model's reply in the log: a text, reasoning or a call. */
export type AgentItem =
  | { type: 'assistant' | 'reasoning'; text: string; flag?: TextFlag }
  | ({ type: 'tool-call' } & ToolCall);

/** The four wire events (docs/internals/model.md, Input Model). The comment of each kind is its row in docs/VOCABULARY.md. */
export type WireEvent =
  /** A message that counts from here. */
  | ({ type: 'user-message'; messageId: string; kind: MessageKind; content: StoredPart[] } & RequestChoices)
  /** One item of a reply: text, reasoning or a call. `extra`, with the last item: data that the provider needs back. */
  | { type: 'agent-output'; item: AgentItem; extra?: Json }
  /** The result of a call. Each call has one. */
  | { type: 'tool-result'; callId: string; outcome: ToolOutcome; content: StoredPart[]; code?: string }
  /** The end of a run and of its cycle, with its reason and its cause. */
  | { type: 'run-stop'; reason: StopReason; cause?: string };

/** Every other kind, described in the same way. */
export type RuntimeEntry =
  /** Entry 0 of every log. `owner`: the only owner who may open it. `parent`: the call that started this conversation as a sub-agent. */
  | {
      type: 'conversation';
      schema: number;
      cwd: string;
      createdAt: number;
      owner?: string;
      parent?: { conversationId: string; callId: string };
    }
  /** The messages that the conversation was opened with. The entry represents the events that they consist of. */
  | { type: 'history'; messages: Message[] }
  /** The start of a run for a message. */
  | { type: 'run-started' }
  /** The start of a run that continues the cycle of the run `of`. */
  | { type: 'run-resumed'; of: string }
  /** The end of a run whose remaining calls are all suspended. `waiting`: the ids of these calls. */
  | { type: 'run-suspended'; waiting: string[] }
  /** A message that was accepted and waits for its delivery. */
  | ({ type: 'message-queued' } & QueuedMessage)
  /** A queued message that was returned without a delivery. */
  | { type: 'message-returned'; messageId: string; why: string }
  /** Permission for a call that a rule, a plugin or a person judged. `by`: which of them allowed it. */
  | { type: 'tool-allowed'; callId: string; by: string }
  /** The start of a call, which may have run from here on. `args`: its arguments, if they are not the model's. */
  | { type: 'tool-started'; callId: string; idempotencyKey: string; args?: Json }
  /** A call that waits for a person, for the first or a further time. `args`: its arguments, if a plugin or a decision changed them. */
  | { type: 'tool-suspended'; callId: string; suspension: number; reason: string; payload?: Json; args?: Json }
  /** The first decision about a suspension. */
  | { type: 'decision'; callId: string; suspension: number; decision: Decision }
  /** A decision was applied. */
  | { type: 'decision-consumed'; callId: string; suspension: number }
  /** The host settled a call whose outcome was unknown. */
  | { type: 'call-settled'; callId: string; how: Settlement }
  /** New values of keys of the conversation's state. */
  | { type: 'state-changed'; callId?: string; writes: { [key: string]: Json } }
  /** A message for the model that nobody sent. `why`: the reason, for example `pause`. */
  | { type: 'continuation'; text: string; why: string }
  /** The end of a reply, with its usage and cost. `costUsd` is null if the price is unknown. */
  | { type: 'model-reply'; turn: number; model: string; finish: FinishReason; usage: Usage; costUsd: number | null }
  /** An attempt at a reply failed, and the next one waits. */
  | { type: 'model-retry'; turn: number; attempt: number; waitMs: number; model: string; reason: string }
  /** A summary in place of the messages up to `upToSeq`. `usage`, `costUsd`, `model`: of the summary, if a model wrote it. */
  | {
      type: 'compaction';
      upToSeq: number;
      summary: string;
      usage?: Usage;
      costUsd?: number | null;
      model?: string;
    }
  /** The context window is nearly full. Both numbers are tokens. */
  | { type: 'context-warning'; used: number; limit: number }
  /** A sub-agent of the call started or ended. `child`: its conversation. */
  | { type: 'sub-agent'; callId: string; child: string; phase: 'started' | 'ended' }
  /** The last entry of an append that completes a step. */
  | { type: 'checkpoint'; boundary: Boundary }
  /** A new title of the conversation. */
  | { type: 'renamed'; title: string }
  /** The conversation continues after the entry `toSeq`. The entries between that entry and this one are superseded. */
  | { type: 'rewound'; toSeq: number }
  /** Something that people should read. It does not change the run. */
  | { type: 'notice'; code: string; text: string }
  /** Something that developers should read. It does not change the run. */
  | ({ type: 'diagnostic' } & Omit<Diagnostic, 'seq'>)
  /**
   * An entry of an application, under its own name. Names that begin with `runchart.` belong to the library. `runchart.pruned`
   * (`{ callIds }`): the model no longer receives these results. `runchart.context-eased`: usage fell below the warning.
   * `runchart.sub-agent-usage`: the usage of a sub-agent, up to an entry of its log.
   */
  | { type: 'extension'; name: string; value: Json };

/** An entry as a chart logs it: the port adds seq, at and conversationId. */
export type NewEntry = { runId: string | null } & (WireEvent | RuntimeEntry);

/** The fields of every log entry. */
export interface EntryBase {
  /** The number of the entry, from 0 without gaps. */
  seq: number;
  /** Milliseconds, for display only. */
  at: number;
  /** The id of the conversation. */
  conversationId: string;
  /** The id of the run; null outside a run. */
  runId: string | null;
}
/** An entry of a log: a wire event or an entry of the runtime. */
export type LogEntry = EntryBase & (WireEvent | RuntimeEntry);

/** A message as a model receives it. */
export type Message =
  | { role: 'user'; content: StoredPart[] }
  /** `extra`: data that the provider attached (signed reasoning and the like); sent back unchanged. */
  | { role: 'assistant'; content: StoredPart[]; toolCalls: ToolCall[]; extra?: Json }
  | { role: 'tool'; callId: string; content: StoredPart[]; isError: boolean };

/** A call that waits for a decision, or whose outcome is unknown. */
export interface PendingCall {
  /** The request that the call belongs to. */
  origin?: RequestInfo;
  /** The id of the call, for `decide` and `settle`. */
  callId: string;
  /** The name of the tool. */
  name: string;
  /** The arguments that would run. */
  args: Json;
  /** The reason of the wait, for example `approval`. */
  reason: string;
  /** Details from the tool or plugin for the person, as JSON. */
  payload?: Json;
  /** Counts from 1 per call. */
  suspension: number;
  /** Call ids from the root conversation's call down to this one. */
  path: string[];
}
