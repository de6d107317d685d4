/**
 * The live signals of a remote conversation, and the text that the current reply has streamed. Invariant: a subscriber
 * that joins during a reply receives all text of it so far first. Text that a lost connection left incomplete is dropped
 * before the next text of the reply.
 */
import { Observable, Subject } from 'rxjs';
import type { LogEntry } from '../../machines/internal.ts';
import type { RunchartError } from '../errors.ts';
import type { InFlight, Live } from '../live.ts';
import { deltasOf } from '../runtime/status.ts';

type TextSignal = Extract<Live, { type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta' }>;

/** Entries after which no part of a reply is streamed. */
export const ENDS_REPLY: ReadonlySet<string> = new Set(['agent-output', 'model-reply', 'run-stop', 'run-suspended']);

const isText = (signal: Live): signal is TextSignal =>
  'text' in signal && typeof signal.text === 'string' && typeof signal.runId === 'string';

export class StreamedReply {
  readonly #live = new Subject<Live>();
  #inFlight: InFlight | null = null;
  #isInterrupted = false;

  get inFlight(): InFlight | null {
    return this.#inFlight;
  }

  /** The text streamed so far, then every signal: no gap, no repeat. */
  readonly signals$ = new Observable<Live>((subscriber) => {
    for (const signal of this.#inFlight ? deltasOf(this.#inFlight) : []) subscriber.next(signal);
    return this.#live.subscribe(subscriber);
  });

  takeSignal(signal: Live): void {
    if (signal.path === undefined) this.#fold(signal);
    this.#live.next(signal);
  }

  /** A reply that the log contains is no longer in flight. */
  takeEntry({ type, runId }: LogEntry): void {
    if (ENDS_REPLY.has(type) && this.#inFlight?.runId === runId) this.#drop();
  }

  interrupt(): void {
    this.#isInterrupted = this.#inFlight !== null;
  }

  end(error?: RunchartError): void {
    this.#drop();
    if (error) this.#live.error(error);
    else this.#live.complete();
  }

  #drop(): void {
    this.#inFlight = null;
    this.#isInterrupted = false;
  }

  #fold(signal: Live): void {
    if (signal.type === 'reset') return this.#drop();
    if (!isText(signal)) return;
    if (this.#isInterrupted && this.#inFlight) {
      const { runId } = this.#inFlight;
      this.#drop();
      this.#live.next({ type: 'reset', runId });
    }
    const before = this.#inFlight?.runId === signal.runId ? this.#inFlight : emptyReply(signal.runId);
    this.#inFlight = Object.freeze(grown(before, signal));
  }
}

const emptyReply = (runId: string): InFlight => ({ runId, text: '', reasoning: '', toolInputs: [] });

function grown(reply: InFlight, signal: TextSignal): InFlight {
  if (signal.type !== 'tool-input-delta') {
    const field = signal.type === 'text-delta' ? 'text' : 'reasoning';
    return { ...reply, [field]: reply[field] + signal.text };
  }
  const { index, callId, name, text } = signal;
  const named = { ...(callId !== undefined && { callId }), ...(name !== undefined && { name }) };
  const existing = reply.toolInputs.find((input) => input.index === index);
  if (!existing) return { ...reply, toolInputs: [...reply.toolInputs, { index, ...named, text }] };
  const longer = { ...named, ...existing, text: existing.text + text };
  return { ...reply, toolInputs: reply.toolInputs.map((input) => (input === existing ? longer : input)) };
}
