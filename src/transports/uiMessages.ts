/**
 * A run in the chunks of the AI SDK's UI message stream. Rule: one run of the log is one assistant message; what the protocol has no
 * word for is a `data-` part whose name begins with `runchart-`.
 */
import type { Observable } from 'rxjs';
import { type LogEntry, textOfContent } from '../../machines/internal.ts';
import type { Live } from '../live.ts';
import { framesOf, interruptId } from './agUi.ts';
import type { Piece } from './streamFold.ts';

const data = (name: string, value: object): object => ({ type: `data-runchart-${name}`, data: value });

const FINISH: Readonly<Record<string, string>> = { max_tokens: 'length', end_turn: 'stop' };

function endChunks({ reason, cause = '' }: Extract<Piece, { kind: 'run-ends' }>): object[] {
  if (reason === 'interrupted') return [{ type: 'abort', reason: cause }];
  if (reason === 'completed') return [{ type: 'finish', finishReason: FINISH[cause] ?? 'other' }];
  return [
    { type: 'error', errorText: `the run ended: ${cause || 'error'}` },
    { type: 'finish', finishReason: FINISH[cause] ?? 'error' },
  ];
}

function callChunk({ callId: toolCallId, name: toolName, args, argsText }: Extract<Piece, { kind: 'call' }>): object {
  // The page knows tools of its own only: to it these are dynamic.
  const call = { toolCallId, toolName, dynamic: true };
  if (argsText === undefined) return { type: 'tool-input-available', ...call, input: args };
  return { type: 'tool-input-error', ...call, input: argsText, errorText: 'the arguments are no JSON object' };
}

function resultChunk({ callId: toolCallId, outcome, code, content }: Extract<Piece, { kind: 'result' }>): object {
  const text = textOfContent(content);
  if (outcome === 'succeeded') return { type: 'tool-output-available', toolCallId, output: text, dynamic: true };
  if (code === 'denied') return { type: 'tool-output-denied', toolCallId };
  return { type: 'tool-output-error', toolCallId, errorText: text, dynamic: true };
}

/** The chunks of a piece. */
export function uiMessageChunks(piece: Piece): object[] {
  switch (piece.kind) {
    case 'run-begins':
      // A run that continues another goes on with its message.
      return [piece.continues ? { type: 'start' } : { type: 'start', messageId: piece.runId }];
    case 'run-ends':
      return endChunks(piece);
    case 'run-waits':
      return [{ type: 'finish', finishReason: 'tool-calls' }];
    case 'step-begins':
      return [{ type: 'start-step' }];
    case 'step-ends':
      return [{ type: 'finish-step' }];
    case 'user': {
      const { messageId, message, content } = piece;
      // The message of the run itself is the page's own.
      return message === 'steer' ? [data('message', { messageId, text: textOfContent(content) })] : [];
    }
    case 'begins':
      return [{ type: `${piece.channel}-start`, id: piece.id }];
    case 'grows':
      return [{ type: `${piece.channel}-delta`, id: piece.id, delta: piece.delta }];
    case 'ends':
      return [{ type: `${piece.channel}-end`, id: piece.id }];
    case 'dropped':
      return [data('dropped', { ids: piece.ids })];
    case 'call':
      return [callChunk(piece)];
    case 'progress':
      return [{ ...data('progress', { toolCallId: piece.callId, update: piece.update }), transient: true }];
    case 'waits':
      return [
        data('suspended', { toolCallId: piece.callId, reason: piece.reason, payload: piece.payload ?? null }),
        { type: 'tool-approval-request', approvalId: interruptId(piece), toolCallId: piece.callId },
      ];
    case 'result':
      return [resultChunk(piece)];
    case 'state':
      return [data('state', piece.state)];
  }
}

/** Entries and live signals as chunks of a UI message stream. Pure: the same source, the same chunks. */
export const toUiMessages = (source: Observable<LogEntry | Live>): Observable<object> =>
  framesOf(source, uiMessageChunks);
