/**
 * The pieces that user interface protocols are made of. Rule: every piece lies between the beginning and the end of a run.
 */
import type {
  Json,
  MessageKind,
  PendingCall,
  StopReason,
  StoredPart,
  ToolOutcome,
  UsageCost,
} from '../../../machines/internal.ts';

export type Channel = 'text' | 'reasoning';
export interface OfRun {
  runId: string;
  conversationId: string;
}

/** The usage of the cycle so far. Absent while no model has replied. */
interface SpentUsage {
  spent?: UsageCost;
}

/** A call whose input is streamed under the provider's id. */
export interface StreamedCall {
  callId: string;
  name: string;
}

export type Piece =
  /** `continues`: the run continues the cycle of an earlier run. */
  | ({ kind: 'run-begins'; continues: boolean } & OfRun)
  | ({ kind: 'run-ends'; reason: StopReason; cause: string | undefined } & OfRun & SpentUsage)
  /** `calls` equals `conversation.pending`. It is empty if all calls are decided and another run continues. */
  | ({ kind: 'run-waits'; calls: readonly PendingCall[] } & OfRun & SpentUsage)
  | { kind: 'step-begins' | 'step-ends'; step: number }
  | { kind: 'user'; messageId: string; message: MessageKind; content: readonly StoredPart[] }
  | { kind: 'begins' | 'ends'; channel: Channel; id: string }
  | { kind: 'grows'; channel: Channel; id: string; delta: string }
  /** Ids of parts that the page must remove, and calls whose input was streamed and that were not made. */
  | { kind: 'dropped'; ids: readonly string[]; calls: readonly StreamedCall[] }
  /** The input of a call before the call is durable. */
  | ({ kind: 'input-begins' } & StreamedCall)
  | { kind: 'input-grows'; callId: string; delta: string }
  | {
      kind: 'call';
      callId: string;
      name: string;
      args: Json;
      argsText?: string;
      /** The id of the text part that makes the call. */
      parent: string;
    }
  | { kind: 'progress'; callId: string; update: Json }
  | { kind: 'waits'; call: PendingCall }
  | { kind: 'result'; callId: string; outcome: ToolOutcome; code: string | undefined; content: readonly StoredPart[] }
  | { kind: 'state'; state: { [key: string]: Json } };
