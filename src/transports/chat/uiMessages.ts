/**
 * A run in the chunks of the AI SDK's UI message stream. Rule: one run of the log is one assistant message; what the protocol has no
 * word for is a `data-` part whose name begins with `runchart-`.
 */
import type { Observable } from 'rxjs';
import { type LogEntry, type PendingCall, textOfContent } from '../../../machines/internal.ts';
import type { Live } from '../../live.ts';
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

/** Between the id of an interrupt and the run that asks again, in a message of its own. */
const ASKED_AGAIN = '#asked-again-by-';

/** What is answered by the id of an approval request. */
export const approvalOf = (approvalId: string): string => approvalId.split(ASKED_AGAIN)[0] ?? '';

/** A call as the page's message holds it. */
interface ShownCall {
  /** The step of the message that it stands in. */
  step: number;
  ended: boolean;
  /** The page has an answer of a person, and waits for what comes of it. */
  answered: boolean;
}

/** A part of a message that a page sends. */
type PagePart = { readonly [key: string]: unknown };

/**
 * The chunks of one stream. Rule: a call is spoken of only in the message that shows it; what waits when a run is suspended stands in
 * the last step, alone with calls that are over, since the AI SDK answers a step when all of it is answered.
 */
export class UiMessageChunks {
  readonly #calls = new Map<string, ShownCall>();
  #step = 0;
  /** All that the message shows is known: the stream began with it, or the page sent it. */
  #isWhole: boolean;

  /** `parts`: of the message that the stream continues. */
  constructor(parts?: readonly PagePart[]) {
    this.#isWhole = parts !== undefined;
    for (const { type, toolCallId, state } of parts ?? []) {
      if (type === 'step-start') this.#step += 1;
      if (typeof toolCallId !== 'string' || typeof state !== 'string') continue;
      const ended = state.startsWith('output-');
      this.#calls.set(toolCallId, { step: this.#step, ended, answered: state === 'approval-responded' });
    }
  }

  /** The chunks of a piece. */
  take(piece: Piece): object[] {
    switch (piece.kind) {
      case 'run-begins':
        // A run that continues another goes on with its message.
        if (piece.continues) return [{ type: 'start' }];
        this.#calls.clear();
        this.#isWhole = true;
        return [{ type: 'start', messageId: piece.runId }];
      case 'run-ends':
        return [...this.#closeAnswered([]), ...endChunks(piece)];
      case 'run-waits':
        return [...this.#ask(piece), { type: 'finish', finishReason: 'tool-calls' }];
      case 'step-begins':
        this.#step += 1;
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
        this.#calls.set(piece.callId, { step: this.#step, ended: piece.argsText !== undefined, answered: false });
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
    // The AI SDK ends a stream that speaks of a call of another message.
    if (!shown && this.#isWhole) return [];
    if (shown) shown.ended = true;
    return [resultChunk(piece)];
  }

  /** Approvals are asked for when the run is over: an answer that comes before it would find nothing to continue. */
  #ask({ calls, runId }: Extract<Piece, { kind: 'run-waits' }>): object[] {
    const closed = this.#closeAnswered(calls);
    if (calls.length === 0) return closed;
    const requests = calls.map((call) => {
      // Another message asks about it too: the AI SDK takes an answer for the first of one id.
      const isElsewhere = this.#isWhole && !this.#calls.has(call.callId);
      const approvalId = isElsewhere ? `${interruptId(call)}${ASKED_AGAIN}${runId}` : interruptId(call);
      return { type: 'tool-approval-request', approvalId, toolCallId: call.callId };
    });
    if (this.#isInLastStep(calls)) return [...closed, ...requests];
    this.#step += 1;
    const moved = calls.flatMap((call) => this.#leave(call));
    const shown = calls.map(({ callId, name, args }) => {
      this.#calls.set(callId, { step: this.#step, ended: false, answered: false });
      return callChunk({ kind: 'call', callId, name, args, parent: '' });
    });
    return [...closed, ...moved, { type: 'start-step' }, ...shown, ...requests, { type: 'finish-step' }];
  }

  /** The last step holds all that wait, and nothing else without a result. */
  #isInLastStep(calls: readonly PendingCall[]): boolean {
    const open = [...this.#calls].filter(([, { step, ended }]) => step === this.#step && !ended);
    return open.length === calls.length && open.every(([callId]) => calls.some((call) => call.callId === callId));
  }

  /** The earlier part of a call that is asked about in a later step. */
  #leave({ callId: toolCallId, reason }: PendingCall): object[] {
    if (!this.#calls.has(toolCallId)) return [];
    return [{ type: 'tool-output-available', toolCallId, output: `suspended: ${reason}`, dynamic: true }];
  }

  /** A part that was answered and has no result would be sent again and again. */
  #closeAnswered(pending: readonly PendingCall[]): object[] {
    return [...this.#calls].flatMap(([toolCallId, shown]) => {
      const { answered, ended } = shown;
      if (!answered || ended || pending.some(({ callId }) => callId === toolCallId)) return [];
      shown.ended = true;
      return [{ type: 'tool-output-error', toolCallId, errorText: 'This call waits no more.', dynamic: true }];
    });
  }
}

/** Entries and live signals as chunks of a UI message stream. Pure: the same source, the same chunks. */
export function toUiMessages(source: Observable<LogEntry | Live>): Observable<object> {
  return framesOf(source, () => {
    const chunks = new UiMessageChunks();
    return (piece) => chunks.take(piece);
  });
}
