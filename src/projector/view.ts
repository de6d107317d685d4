/**
 * The view of a log (docs/internals/model.md, RequestCycle and Two Views). Invariant: plain frozen JSON. A returned
 * view never changes, and a part that did not change is the same object in the next view.
 */
import type {
  Diagnostic,
  GroupName,
  Json,
  QueuedMessage,
  StopReason,
  StoredPart,
  TextFlag,
  ToolOutcome,
  Usage,
} from '../../machines/vocabulary.ts';

/** A conversation as request cycles, for a page to render. */
export interface ConversationView {
  /** `active` while the last cycle has no stop, also while it waits for decisions. */
  state: 'idle' | 'active';
  /** Built at the first read: one list with all cycles. */
  cycles: readonly RequestCycle[];
  /** Messages that were accepted and are not delivered. */
  queued: readonly QueuedMessage[];
  /** Diagnostics in order: at most 1,000, then one `diagnostics_dropped` with the count of the others. */
  diagnostics: readonly Diagnostic[];
}

/** A request with everything that answers it, up to its stop. */
export interface RequestCycle {
  /** The root's message id. A repeated id gets a suffix. */
  id: string;
  /** The message that began the request. */
  root: { messageId: string; kind: 'direct' | 'followUp'; content: StoredPart[] };
  /** The steps of the answer, for a page to render. */
  steps: readonly ResolutionStep[];
  /** The replies of the model, each with its input. */
  rounds: readonly InferenceRound[];
  /** The end of the cycle; null while it runs or waits. */
  stop: null | { reason: StopReason; cause?: string };
  /** The suspended calls that still have no result. */
  waiting: readonly string[];
  /** Present if the conversation was rewound to a place before this cycle. */
  superseded?: true;
}

/** A message of the user within the cycle. */
export interface UserStep {
  /** `steer` for a message that changed a running request, else `non-steer`. */
  type: 'non-steer' | 'steer';
  /** The id of the message. */
  messageId: string;
  /** The content of the message. */
  content: StoredPart[];
}

/** A text of the model. */
export interface BlockText {
  /** `assistant` for visible text, `reasoning` for the model's reasoning. */
  kind: 'assistant' | 'reasoning';
  /** The text. */
  text: string;
  /** Marks a refusal, or a text that was cut off. */
  flag?: TextFlag;
}

/** Successive calls of one group, such as reading calls. */
export interface ToolGroup {
  /** The group. */
  kind: GroupName;
  /** The calls in the order of the reply. */
  calls: readonly ToolCallView[];
}

/** One text item and the calls after it. The text is null if calls came without one. */
export interface AiBlock {
  /** Always `ai-block`. */
  type: 'ai-block';
  /** The text before the calls. */
  text: BlockText | null;
  /** The calls, by group. */
  groups: readonly ToolGroup[];
}

/** A step of a cycle: a message of the user, or a text of the model with its calls. */
export type ResolutionStep = UserStep | AiBlock;

/** The result of a call. */
export interface ToolResultView {
  /** Whether the call succeeded. */
  outcome: ToolOutcome;
  /** The content that the model receives. */
  content: StoredPart[];
  /** The code of a failure. docs/errors.md lists the codes. */
  code?: string;
}

/** A call with its state and result. */
export interface ToolCallView {
  /** The id of the call. */
  callId: string;
  /** The name of the tool. */
  name: string;
  /** The arguments that the model wrote. */
  args: Json;
  /** The arguments that ran, if a plugin, a hook or a decision changed them. */
  ranArgs?: Json;
  /** The author of the last decision about this call, if the decision names one. */
  decidedBy?: string;
  /**
   * `waiting` for its turn, for a decision or for its start after one; `running` after its start; `ended` with its
   * result. A call without a result at a stop no longer runs: it waits to be resumed.
   */
  state: 'waiting' | 'running' | 'ended';
  /** The result; null until there is one. */
  result: null | ToolResultView;
}

/** A message in the input of a round. */
export interface RoundMessage {
  /** The id of the message. */
  messageId: string;
  /** The way of the message to the model. */
  kind: 'direct' | 'steer' | 'followUp';
  /** The content of the message. */
  content: StoredPart[];
}

/** One reply of the model, with the new part of its input. It exists once the model has answered. */
export interface InferenceRound {
  /** The messages and results that are new in this call. */
  input: { messages: readonly RoundMessage[]; results: readonly ToolCallView[] };
  /** The texts and calls of the reply. */
  output: {
    texts: readonly { kind: 'assistant' | 'reasoning'; text: string }[];
    calls: readonly ToolCallView[];
  };
  /** The tokens of the call, if the model reported them. */
  usage?: Usage;
}
