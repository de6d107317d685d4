/**
 * Carries live signals from the worker that holds a conversation to its watchers. Invariant: nothing depends on a signal,
 * because it may be lost: entries come from the engine. A watcher that joins during a reply receives a reset, then the reply so far.
 */
import type { Live } from '../live.ts';

/** A message of a worker to the watchers of a conversation. */
export type HubSignal =
  /** The log has `length` entries. `isReplyOpen`: none of the new ones ends the reply that is streamed. */
  | { readonly type: 'appended'; readonly length: number; readonly isReplyOpen?: boolean }
  /** A live signal that was sent when the log had `next` entries. */
  | { readonly type: 'live'; readonly next: number; readonly signal: Live };

/** Carries live signals from workers to watchers. Several processes need a hub that reaches all of them. */
export interface LiveHub {
  /** Sends a signal of a conversation to all who watch it. It may be lost. */
  publish(conversationId: string, signal: HubSignal): void;
  /** Returns the function that ends the subscription. */
  subscribe(conversationId: string, receive: (signal: HubSignal) => void): () => void;
}

/** Wraps a hub so that its errors are ignored: a signal that it does not carry is lost. */
export const lossy = (hub: LiveHub): Pick<LiveHub, 'publish'> => ({
  publish(id, signal) {
    const failed = (error: unknown): void => console.warn({ event: 'hub-failed', error });
    try {
      // A hub of a program may be asynchronous.
      void Promise.resolve(hub.publish(id, signal)).catch(failed);
    } catch (error) {
      failed(error);
    }
  },
});

/** The most signals of a reply that are kept for new watchers. */
const KEPT = 10_000;

class ProcessHub implements LiveHub {
  readonly #receivers = new Map<string, Set<(signal: HubSignal) => void>>();
  /** The signals since the entry that ended the reply before. */
  readonly #replies = new Map<string, (HubSignal & { type: 'live' })[]>();

  publish(id: string, signal: HubSignal): void {
    if (signal.type === 'appended') this.#land(id, signal);
    else if (signal.signal.type === 'reset') this.#replies.set(id, []);
    else this.#keep(id, signal);
    for (const receive of this.#receivers.get(id) ?? []) receive(signal);
  }

  subscribe(id: string, receive: (signal: HubSignal) => void): () => void {
    const receivers = this.#receivers.get(id) ?? new Set();
    this.#receivers.set(id, receivers.add(receive));
    const [first, ...others] = this.#replies.get(id) ?? [];
    if (first && 'runId' in first.signal) {
      receive({ type: 'live', next: first.next, signal: { type: 'reset', runId: first.signal.runId } });
      for (const signal of [first, ...others]) receive(signal);
    }
    return () => {
      receivers.delete(receive);
      if (receivers.size === 0 && this.#receivers.get(id) === receivers) this.#receivers.delete(id);
    };
  }

  /** Signals after the new entries are kept. */
  #land(id: string, { length, isReplyOpen }: HubSignal & { type: 'appended' }): void {
    const reply = this.#replies.get(id) ?? [];
    const left = isReplyOpen
      ? reply.map((signal) => ({ ...signal, next: Math.max(length, signal.next) }))
      : reply.filter(({ next }) => next >= length);
    if (left.length > 0) this.#replies.set(id, left);
    else this.#replies.delete(id);
  }

  #keep(id: string, signal: HubSignal & { type: 'live' }): void {
    if (!('runId' in signal.signal)) return;
    const reply = this.#replies.get(id) ?? [];
    if (reply.length < KEPT) reply.push(signal);
    this.#replies.set(id, reply);
  }
}

/** Carries signals between the workers and the watchers of this process. */
export const processHub: LiveHub = new ProcessHub();
