/**
 * Converts a run to events of AG-UI (docs.ag-ui.com, protocol 1). Rule: one run of the log is one AG-UI run. Anything
 * that the protocol does not define is a CUSTOM event whose name begins with `runchart.`.
 */
import { Observable } from 'rxjs';
import type { LogEntry, PendingCall } from '../../../machines/internal.ts';
import { labelledText } from '../../content/filePart.ts';
import type { Live } from '../../live.ts';
import type { Piece } from './pieces.ts';
import { StreamFold } from './streamFold.ts';

const custom = (name: string, value: unknown): object => ({ type: 'CUSTOM', name: `runchart.${name}`, value });

/** The reason why a call of a page's own tool waits. */
export const PAGE_TOOL = 'runchart.page-tool';

/** The id that a person's answer names: it contains the suspension and the call. */
export const interruptId = ({ callId, suspension }: Pick<PendingCall, 'callId' | 'suspension'>): string =>
  `${suspension}/${callId}`;

/** `path` of a sub-agent's call: the ids of the calls from the outermost to this one. */
function interruptOf(call: PendingCall): object {
  const { callId: toolCallId, reason: message, payload, path } = call;
  const metadata = { ...(payload !== undefined && { payload }), ...(path.length > 1 && { path }) };
  const interrupt = { id: interruptId(call), reason: 'tool_call', message, toolCallId };
  return Object.keys(metadata).length > 0 ? { ...interrupt, metadata } : interrupt;
}

function textEvent(piece: Extract<Piece, { kind: 'begins' | 'grows' | 'ends' }>): object[] {
  const { kind, channel, id: messageId } = piece;
  const type = channel === 'text' ? 'TEXT_MESSAGE' : 'REASONING_MESSAGE';
  const role = channel === 'text' ? 'assistant' : 'reasoning';
  if (kind === 'grows') return [{ type: `${type}_CONTENT`, messageId, delta: piece.delta }];
  const event = kind === 'begins' ? { type: `${type}_START`, messageId, role } : { type: `${type}_END`, messageId };
  if (channel === 'text') return [event];
  return kind === 'begins'
    ? [{ type: 'REASONING_START', messageId }, event]
    : [event, { type: 'REASONING_END', messageId }];
}

function endEvent(piece: Extract<Piece, { kind: 'run-ends' | 'run-waits' }>): object {
  const { runId, conversationId: threadId } = piece;
  if (piece.kind === 'run-waits') {
    // The page carries out its own calls. If there is nothing to ask either, another run continues automatically.
    const interrupts = piece.calls.filter(({ reason }) => reason !== PAGE_TOOL).map(interruptOf);
    const outcome = interrupts.length > 0 ? { type: 'interrupt', interrupts } : { type: 'success' };
    return { type: 'RUN_FINISHED', threadId, runId, outcome };
  }
  const { reason, cause } = piece;
  if (reason === 'completed') return { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } };
  if (reason === 'interrupted') return { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'cancelled' } };
  return {
    type: 'RUN_ERROR',
    message: `the run ended: ${cause ?? 'error'}`,
    ...(cause !== undefined && { code: cause }),
  };
}

/** The events of one piece. */
export function agUiEvents(piece: Piece): object[] {
  switch (piece.kind) {
    case 'run-begins':
      return [{ type: 'RUN_STARTED', threadId: piece.conversationId, runId: piece.runId }];
    case 'run-ends':
    case 'run-waits':
      return [endEvent(piece)];
    case 'step-begins':
      return [{ type: 'STEP_STARTED', stepName: `turn ${piece.step}` }];
    case 'step-ends':
      return [{ type: 'STEP_FINISHED', stepName: `turn ${piece.step}` }];
    case 'user': {
      const { messageId, content } = piece;
      const delta = labelledText(content);
      return [
        { type: 'TEXT_MESSAGE_START', messageId, role: 'user' },
        ...(delta === '' ? [] : [{ type: 'TEXT_MESSAGE_CONTENT', messageId, delta }]),
        { type: 'TEXT_MESSAGE_END', messageId },
      ];
    }
    case 'begins':
    case 'grows':
    case 'ends':
      return textEvent(piece);
    case 'dropped':
      return piece.ids.length > 0 ? [custom('dropped', { messageIds: piece.ids })] : [];
    case 'input-begins':
    case 'input-grows':
      // A call is shown once it is durable, because nothing can take its arguments back.
      return [];
    case 'call': {
      const { callId: toolCallId, name, args, argsText, parent } = piece;
      const delta = argsText ?? JSON.stringify(args);
      return [
        { type: 'TOOL_CALL_START', toolCallId, toolCallName: name, parentMessageId: parent },
        ...(delta === '' ? [] : [{ type: 'TOOL_CALL_ARGS', toolCallId, delta }]),
        { type: 'TOOL_CALL_END', toolCallId },
      ];
    }
    case 'progress':
      return [custom('tool-progress', { toolCallId: piece.callId, update: piece.update })];
    case 'waits':
      return piece.call.reason === PAGE_TOOL ? [] : [custom('tool-suspended', interruptOf(piece.call))];
    case 'result': {
      const { callId: toolCallId, content } = piece;
      const messageId = `${toolCallId}/result`;
      return [{ type: 'TOOL_CALL_RESULT', messageId, toolCallId, content: labelledText(content), role: 'tool' }];
    }
    case 'state':
      return [{ type: 'STATE_SNAPSHOT', snapshot: piece.state }];
  }
}

/** An observable of any copy of rxjs, or of another library. */
export interface Subscribable<T> {
  /** Calls the observer for each value; the returned object ends that. */
  subscribe(observer: { next(value: T): void; error(error: unknown): void; complete(): void }): { unsubscribe(): void };
}

/** Converts entries and live signals to frames of a protocol. `encoder` is called once for each subscriber. */
export function framesOf(
  source: Subscribable<LogEntry | Live>,
  encoder: () => (piece: Piece) => readonly object[],
): Observable<object> {
  return new Observable((subscriber) => {
    const fold = new StreamFold();
    const frames = encoder();
    const show = (pieces: readonly Piece[]): void => {
      for (const piece of pieces) for (const frame of frames(piece)) subscriber.next(frame);
    };
    const subscription = source.subscribe({
      next: (item) => show(fold.take(item)),
      error: (error) => subscriber.error(error),
      complete: () => {
        show(fold.end());
        subscriber.complete();
      },
    });
    return () => subscription.unsubscribe();
  });
}

/** Converts entries and live signals to events of AG-UI. Pure: the same source gives the same events. */
export const toAgUi = (source: Subscribable<LogEntry | Live>): Observable<object> => framesOf(source, () => agUiEvents);
