/**
 * Signals of work in progress. Rule: never stored, and nothing that is stored depends on one; a listener that misses
 * them all still gets the same views. Who comes in the middle of a reply is first shown what there is of it, whole. A
 * `reset` tells it to drop what the run's current attempt streamed.
 */
import { Observable, Subject } from 'rxjs';
import type { Json } from '../machines/vocabulary.ts';

/** `waiting`: the last cycle is suspended and nothing runs. `error` is a kind of idle: it takes the next message. */
export type ConversationStatus = 'idle' | 'active' | 'waiting' | 'cancelling' | 'error';

/** `path`: ids of the calls down to the sub-agent that it comes from; none where it is the conversation's own. */
export type Live = { path?: readonly string[] } & (
  | { type: 'text-delta' | 'reasoning-delta'; runId: string; text: string }
  | { type: 'tool-input-delta'; runId: string; index: number; name?: string; text: string }
  | { type: 'reset'; runId: string }
  | { type: 'tool-progress'; runId: string; callId: string; elapsedMs: number; update: Json }
  | { type: 'status'; status: ConversationStatus }
  | { type: 'state'; state: { [key: string]: Json } }
);

/** What the current attempt of a model call has streamed, whole. */
export interface InFlight {
  readonly runId: string;
  readonly text: string;
  readonly reasoning: string;
  /** In the order in which they began. */
  readonly toolInputs: readonly { readonly index: number; readonly name?: string; readonly text: string }[];
}

/** One delta a kind. */
function deltasOf({ runId, text, reasoning, toolInputs }: InFlight): Live[] {
  const deltas: Live[] = toolInputs.map((input) => ({ type: 'tool-input-delta', runId, ...input }));
  if (text !== '') deltas.unshift({ type: 'text-delta', runId, text });
  if (reasoning !== '') deltas.unshift({ type: 'reasoning-delta', runId, text: reasoning });
  return deltas;
}

const from = (callId: string, signal: Live): Live => ({ ...signal, path: [callId, ...(signal.path ?? [])] });

/** The signals of one conversation, and those of the sub-agents within it. */
export class LiveFeed {
  readonly #inFlight: () => InFlight | null;
  readonly #signals = new Subject<Live>();
  /** Of sub-agents whose logs are open: the calls that they belong to. */
  readonly #within = new Map<LiveFeed, string>();
  #above: LiveFeed | undefined;

  constructor(inFlight: () => InFlight | null) {
    this.#inFlight = inFlight;
  }

  /** What is streamed now, then every signal: no gap, no repeat. */
  readonly signals$ = new Observable<Live>((subscriber) => {
    // Who is shown the beginning may act at once; what comes of that is shown behind it.
    let held: Live[] | undefined = this.#begun();
    const following = this.#signals.subscribe({
      next: (signal) => (held ? void held.push(signal) : subscriber.next(signal)),
      complete: () => subscriber.complete(),
    });
    for (const signal of held) subscriber.next(signal);
    held = undefined;
    return following;
  });

  /** Somebody listens to this one, or to one that it is within. Without anybody no signal needs to be made. */
  get observed(): boolean {
    return this.#signals.observed || this.#above?.observed === true;
  }

  next(signal: Live): void {
    this.#signals.next(signal);
    const above = this.#above;
    if (!above?.observed) return;
    const callId = above.#within.get(this);
    if (callId !== undefined) above.next(from(callId, signal));
  }

  /** From now on, and until it is over, shows what a sub-agent of the call does. */
  join(feed: LiveFeed, callId: string): void {
    this.#within.set(feed, callId);
    feed.#above = this;
  }

  complete(): void {
    const above = this.#above;
    if (above) above.#within.delete(this);
    this.#above = undefined;
    this.#signals.complete();
  }

  #begun(): Live[] {
    const own = this.#inFlight();
    const within = [...this.#within].flatMap(([feed, callId]) => feed.#begun().map((signal) => from(callId, signal)));
    return [...(own ? deltasOf(own) : []), ...within];
  }
}
