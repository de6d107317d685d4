/**
 * What the reader makes of a foreign value. Rule: own frozen data in the shapes the views show, or `odd` with the
 * diagnostic's words; nothing of the value itself is kept.
 */
import type {
  Diagnostic,
  GroupName,
  Json,
  MessageKind,
  StopReason,
  StoredPart,
  Usage,
} from '../../machines/vocabulary.ts';
import type { BlockText, ToolCallView, ToolResultView } from './view.ts';

export type ItemReading = BlockText | { kind: 'tool-call'; call: ToolCallView; group: GroupName | undefined };

export interface MessageReading {
  type: 'user-message';
  messageId: string;
  /** Undefined where the sender left it to the receiver. */
  kind: MessageKind | undefined;
  content: StoredPart[];
}

export type WireReading =
  | MessageReading
  | { type: 'agent-output'; items: readonly ItemReading[] }
  | { type: 'tool-result'; callId: string; result: ToolResultView }
  /** `odd`: the field whose value is of no known form; the stop ends its cycle all the same. */
  | { type: 'run-stop'; stop: { reason: StopReason; cause?: string }; odd?: 'reason' };

/** The host's word on a call: the result it stands for, or `retry`: the next result counts. */
export type SettlementReading = ToolResultView | 'retry';

/** What a call came to before its result. */
export type CallReading =
  | { type: 'tool-started'; callId: string; args: Json | undefined }
  | { type: 'tool-suspended'; callId: string; suspension: number }
  | { type: 'decision'; callId: string; suspension: number; by: string | undefined };

export type RuntimeReading =
  | CallReading
  | { type: 'run-suspended'; waiting: readonly string[] }
  | { type: 'run-resumed'; of: string }
  | { type: 'message-queued'; messageId: string; kind: 'steer' | 'followUp'; content: StoredPart[] }
  | { type: 'message-returned'; messageId: string }
  | { type: 'call-settled'; callId: string; settlement: SettlementReading }
  | { type: 'model-reply'; usage: Usage | undefined }
  /** What follows belongs to another reply of the model. */
  | { type: 'reply-boundary' }
  | { type: 'noted'; diagnostic: Diagnostic }
  /** Known, and of no concern to the views. */
  | { type: 'ignored' };

export interface OddReading {
  type: 'odd';
  code: string;
  detail?: Json;
}

export type Reading = WireReading | RuntimeReading | OddReading;

export const odd = (code: string, detail?: Json): OddReading =>
  detail === undefined ? { type: 'odd', code } : { type: 'odd', code, detail };

export const malformed = (type: string, field: string): OddReading => odd('malformed', { type, field });
