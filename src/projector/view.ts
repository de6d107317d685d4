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

export interface ConversationView {
  /** `active` while the last cycle has no stop, also while it waits for decisions. */
  state: 'idle' | 'active';
  /** Built at the first read: one list with all cycles. */
  cycles: readonly RequestCycle[];
  queued: readonly QueuedMessage[];
  /** Diagnostics in order: at most 1,000, then one `diagnostics_dropped` with the count of the others. */
  diagnostics: readonly Diagnostic[];
}

export interface RequestCycle {
  /** The root's message id. A repeated id gets a suffix. */
  id: string;
  root: { messageId: string; kind: 'direct' | 'followUp'; content: StoredPart[] };
  steps: readonly ResolutionStep[];
  rounds: readonly InferenceRound[];
  stop: null | { reason: StopReason; cause?: string };
  /** The suspended calls that still have no result. */
  waiting: readonly string[];
  /** Present if the conversation was rewound to a place before this cycle. */
  superseded?: true;
}

export interface UserStep {
  type: 'non-steer' | 'steer';
  messageId: string;
  content: StoredPart[];
}

export interface BlockText {
  kind: 'assistant' | 'reasoning';
  text: string;
  flag?: TextFlag;
}

export interface ToolGroup {
  kind: GroupName;
  calls: readonly ToolCallView[];
}

/** One text item and the calls after it. The text is null if calls came without one. */
export interface AiBlock {
  type: 'ai-block';
  text: BlockText | null;
  groups: readonly ToolGroup[];
}

export type ResolutionStep = UserStep | AiBlock;

export interface ToolResultView {
  outcome: ToolOutcome;
  content: StoredPart[];
  code?: string;
}

export interface ToolCallView {
  callId: string;
  name: string;
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
  result: null | ToolResultView;
}

export interface RoundMessage {
  messageId: string;
  kind: 'direct' | 'steer' | 'followUp';
  content: StoredPart[];
}

/** One reply of the model, with the new part of its input. It exists once the model has answered. */
export interface InferenceRound {
  input: { messages: readonly RoundMessage[]; results: readonly ToolCallView[] };
  output: {
    texts: readonly { kind: 'assistant' | 'reasoning'; text: string }[];
    calls: readonly ToolCallView[];
  };
  usage?: Usage;
}
