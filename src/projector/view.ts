/**
 * What a log looks like to people (request-cycle-model, RequestCycle and Two Views). Rule: plain frozen JSON; a view
 * that was handed out never changes, and a part that did not change is the same object in the next view.
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
  /** Built when it is first read: one list of the cycles' length. */
  cycles: readonly RequestCycle[];
  queued: readonly QueuedMessage[];
  /** What was odd, in order: at most 1,000, then one `diagnostics_dropped` that counts the rest. */
  diagnostics: readonly Diagnostic[];
}

export interface RequestCycle {
  /** The root's message id; a repeated one is told apart by a suffix. */
  id: string;
  root: { messageId: string; kind: 'direct' | 'followUp'; content: StoredPart[] };
  steps: readonly ResolutionStep[];
  rounds: readonly InferenceRound[];
  stop: null | { reason: StopReason; cause?: string };
  /** The suspended calls that still have no result. */
  waiting: readonly string[];
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

/** One text item, or none where calls came without, and the calls that follow it. */
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
  /** What ran, where that differs: a plugin, a hook or a decision changed the arguments. */
  ranArgs?: Json;
  /** Who decided about it last, where the decision says so. */
  decidedBy?: string;
  /**
   * `waiting` for its turn, for a decision, or to be started behind one; `running` once it is started; `ended` with its
   * result. What has none at a stop runs no more: it waits to be resumed.
   */
  state: 'waiting' | 'running' | 'ended';
  result: null | ToolResultView;
}

export interface RoundMessage {
  messageId: string;
  kind: 'direct' | 'steer' | 'followUp';
  content: StoredPart[];
}

/** One answer of the model, with what was new in its input. It is there once the model has answered. */
export interface InferenceRound {
  input: { messages: readonly RoundMessage[]; results: readonly ToolCallView[] };
  output: {
    texts: readonly { kind: 'assistant' | 'reasoning'; text: string }[];
    calls: readonly ToolCallView[];
  };
  usage?: Usage;
}
