/**
 * Converts a run to chunks of the AI SDK's UI message stream. Rule: one run of the log is one assistant message.
 * Anything that the protocol does not define is a `data-` part whose name begins with `runchart-`.
 */
import type { Observable } from 'rxjs';
import { type LogEntry, type PendingCall, textOfContent } from '../../../machines/internal.ts';
import type { Live } from '../../live.ts';
import { framesOf, interruptId, type Subscribable } from './agUi.ts';
import type { Piece } from './pieces.ts';

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
  const call = { toolCallId, toolName };
  if (argsText === undefined) return { type: 'tool-input-available', ...call, input: args };
  return { type: 'tool-input-error', ...call, input: argsText, errorText: 'the arguments are no JSON object' };
}

function resultChunk({ callId: toolCallId, outcome, code, content }: Extract<Piece, { kind: 'result' }>): object {
  const text = textOfContent(content);
  if (outcome === 'succeeded') return { type: 'tool-output-available', toolCallId, output: text };
  if (code === 'denied') return { type: 'tool-output-denied', toolCallId };
  return { type: 'tool-output-error', toolCallId, errorText: text };
}

/** The usage of the cycle so far becomes the metadata of its message. */
const spentChunks = ({ spent }: Extract<Piece, { kind: 'run-ends' | 'run-waits' }>): object[] =>
  spent ? [{ type: 'message-metadata', messageMetadata: { usage: spent.usage, costUsd: spent.costUsd } }] : [];

/** A page cannot remove the part of a call that was not made, so the part shows an error. */
function droppedChunks({ ids, calls }: Extract<Piece, { kind: 'dropped' }>): object[] {
  const errors = calls.map(({ callId: toolCallId, name: toolName }) => {
    return { type: 'tool-input-error', toolCallId, toolName, input: null, errorText: 'This call was not made.' };
  });
  return [...errors, data('dropped', { ids: [...ids, ...calls.map(({ callId }) => callId)] })];
}

/** Separates the id of an interrupt from the run whose message asks again. */
const ASKED_AGAIN = '#asked-again-by-';

/** The interrupt id in the id of an approval request. */
export const approvalOf = (approvalId: string): string => approvalId.split(ASKED_AGAIN)[0] ?? '';

/** A call in the page's message. */
interface ShownCall {
  /** The step of the message that contains it. */
  step: number;
  isEnded: boolean;
  /** The page has a person's answer and waits for the result. */
  isAnswered: boolean;
}

/** A part of a message that a page sends. */
type PagePart = { readonly [key: string]: unknown };

/**
 * The chunks of one stream. Rule: a chunk mentions a call only in the message that shows it. After a suspension, the
 * last step contains all waiting calls and no other call without a result, because the AI SDK sends a step after all
 * its calls are answered.
 */
export class UiMessageChunks {
  readonly #calls = new Map<string, ShownCall>();
  #step = 0;
  /** The stream covers the whole message: it began with the message, or the page sent its parts. */
  #isWhole: boolean;

  /** `parts` of the message that the stream continues. */
  constructor(parts?: readonly PagePart[]) {
    this.#isWhole = parts !== undefined;
    for (const { type, toolCallId, state } of parts ?? []) {
      if (type === 'step-start') this.#step += 1;
      if (typeof toolCallId !== 'string' || typeof state !== 'string') continue;
      const isEnded = state.startsWith('output-');
      this.#calls.set(toolCallId, { step: this.#step, isEnded, isAnswered: state === 'approval-responded' });
    }
  }

  /** The chunks of one piece. */
  take(piece: Piece): object[] {
    switch (piece.kind) {
      case 'run-begins':
        // A run that continues another one extends its message.
        if (piece.continues) return [{ type: 'start' }];
        this.#calls.clear();
        this.#isWhole = true;
        return [{ type: 'start', messageId: piece.runId }];
      case 'run-ends':
        return [...this.#closeAnswered([]), ...spentChunks(piece), ...endChunks(piece)];
      case 'run-waits':
        return [
          ...this.#requestApprovals(piece),
          ...spentChunks(piece),
          { type: 'finish', finishReason: 'tool-calls' },
        ];
      case 'step-begins':
        this.#step += 1;
        return [{ type: 'start-step' }];
      case 'step-ends':
        return [{ type: 'finish-step' }];
      case 'user': {
        const { messageId, message, content } = piece;
        // The page has the run's own message already.
        return message === 'steer' ? [data('message', { messageId, text: textOfContent(content) })] : [];
      }
      case 'begins':
        return [{ type: `${piece.channel}-start`, id: piece.id }];
      case 'grows':
        return [{ type: `${piece.channel}-delta`, id: piece.id, delta: piece.delta }];
      case 'ends':
        return [{ type: `${piece.channel}-end`, id: piece.id }];
      case 'dropped':
        return droppedChunks(piece);
      case 'input-begins':
        return [{ type: 'tool-input-start', toolCallId: piece.callId, toolName: piece.name }];
      case 'input-grows':
        return [{ type: 'tool-input-delta', toolCallId: piece.callId, inputTextDelta: piece.delta }];
      case 'call':
        this.#calls.set(piece.callId, { step: this.#step, isEnded: piece.argsText !== undefined, isAnswered: false });
        return [callChunk(piece)];
      case 'progress':
        return [{ ...data('progress', { toolCallId: piece.callId, update: piece.update }), transient: true }];
      case 'waits': {
        const { callId: toolCallId, reason, payload = null, path } = piece.call;
        return [data('suspended', { toolCallId, reason, payload, ...(path.length > 1 && { path }) })];
      }
      case 'result':
        return this.#result(piece);
      case 'state':
        return [data('state', piece.state)];
    }
  }

  #result(piece: Extract<Piece, { kind: 'result' }>): object[] {
    const shown = this.#calls.get(piece.callId);
    // The AI SDK ends a stream that mentions a call of another message.
    if (!shown && this.#isWhole) return [];
    if (shown) shown.isEnded = true;
    return [resultChunk(piece)];
  }

  /** Requests approvals after the run: an earlier answer would find nothing to continue. */
  #requestApprovals({ calls, runId }: Extract<Piece, { kind: 'run-waits' }>): object[] {
    const closed = this.#closeAnswered(calls);
    if (calls.length === 0) return closed;
    const requests = calls.map((call) => {
      // Another message asks about the same call, and the AI SDK applies an answer to the first approval with that id.
      const isElsewhere = this.#isWhole && !this.#calls.has(call.callId);
      const approvalId = isElsewhere ? `${interruptId(call)}${ASKED_AGAIN}${runId}` : interruptId(call);
      return { type: 'tool-approval-request', approvalId, toolCallId: call.callId };
    });
    if (this.#isInLastStep(calls)) return [...closed, ...requests];
    this.#step += 1;
    const moved = calls.flatMap((call) => this.#closeEarlierPart(call));
    const shown = calls.map(({ callId, name, args }) => {
      this.#calls.set(callId, { step: this.#step, isEnded: false, isAnswered: false });
      return callChunk({ kind: 'call', callId, name, args, parent: '' });
    });
    return [...closed, ...moved, { type: 'start-step' }, ...shown, ...requests, { type: 'finish-step' }];
  }

  /** True if the last step contains all waiting calls and no other call without a result. */
  #isInLastStep(calls: readonly PendingCall[]): boolean {
    const open = [...this.#calls].filter(([, { step, isEnded }]) => step === this.#step && !isEnded);
    return open.length === calls.length && open.every(([callId]) => calls.some((call) => call.callId === callId));
  }

  /** Closes the earlier part of a call that a later step asks about. */
  #closeEarlierPart({ callId: toolCallId, reason }: PendingCall): object[] {
    if (!this.#calls.has(toolCallId)) return [];
    return [{ type: 'tool-output-available', toolCallId, output: `suspended: ${reason}` }];
  }

  /** Closes answered parts without a result, because the page would send them again and again. */
  #closeAnswered(pending: readonly PendingCall[]): object[] {
    return [...this.#calls].flatMap(([toolCallId, shown]) => {
      const { isAnswered, isEnded } = shown;
      if (!isAnswered || isEnded || pending.some(({ callId }) => callId === toolCallId)) return [];
      shown.isEnded = true;
      return [{ type: 'tool-output-error', toolCallId, errorText: 'This call waits no more.' }];
    });
  }
}

/** Converts entries and live signals to chunks of a UI message stream. Pure: the same source gives the same chunks. */
export function toUiMessages(source: Subscribable<LogEntry | Live>): Observable<object> {
  return framesOf(source, () => {
    const chunks = new UiMessageChunks();
    return (piece) => chunks.take(piece);
  });
}
