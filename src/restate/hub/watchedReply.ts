/**
 * The replies of one conversation as its watchers in this process receive them. Invariant: a watcher receives a reply from its beginning
 * without a gap, or nothing of it. After a gap, a reset removes the shown text, and the next whole copy of the reply follows it.
 */
import type { Live } from '../../live.ts';
import { joined } from '../../stores/postgres/liveFeed.ts';
import type { HubSignal } from '../liveHub.ts';
import type { HubMessage } from './hubMessages.ts';

interface Placed {
  next: number;
  signal: Live;
}

/** A watcher cannot join a reply with more characters before its end. */
const CHARACTERS_MAX = 200_000;

const placeOf = ({ path = [] }: Live): string => JSON.stringify(path);

/** All signals that a reply and those of its sub-agents have streamed, except those that a reset has removed. */
export class StreamedSignals {
  /** Undefined where it is too long. */
  #signals: Placed[] | undefined = [];
  #characters = 0;
  #lastNext = 0;
  /** A reset for each text that is shown. */
  readonly #resets = new Map<string, Live>();

  add(next: number, signal: Live): void {
    this.#lastNext = Math.max(this.#lastNext, next);
    const place = placeOf(signal);
    if (signal.type === 'reset') {
      this.#resets.delete(place);
      this.#signals = this.#signals?.filter((each) => placeOf(each.signal) !== place);
      return;
    }
    if (!('text' in signal)) return;
    const { runId, path } = signal;
    this.#resets.set(place, { type: 'reset', runId, ...(path && { path }) });
    this.#characters += signal.text.length;
    if (this.#characters > CHARACTERS_MAX) this.#signals = undefined;
    const last = this.#signals?.at(-1);
    const one = last?.next === next ? joined(last.signal, signal) : undefined;
    if (last && one) last.signal = one;
    else this.#signals?.push({ next, signal });
  }

  /** Takes the new length of the log. Returns true if no signal is left that comes after it. */
  landed(length: number, isReplyOpen: boolean): boolean {
    if (isReplyOpen) {
      this.#signals = this.#signals?.map(({ next, signal }) => ({ next: Math.max(next, length), signal }));
      return false;
    }
    if (this.#lastNext < length) return true;
    const left = this.#signals?.filter(({ next }) => next >= length);
    if (!left) return false;
    this.#signals = [];
    this.#characters = 0;
    this.#resets.clear();
    for (const { next, signal } of left) this.add(next, signal);
    return false;
  }

  /** The resets that remove everything that is shown. */
  get resets(): readonly Live[] {
    return [...this.#resets.values()];
  }

  /** Undefined where it is too long to be repeated. */
  get soFar(): readonly Placed[] | undefined {
    return this.#signals;
  }

  get size(): number {
    return this.#characters;
  }
}

interface Watcher {
  receive: (signal: HubSignal) => void;
  /** It has received the current reply from its beginning. */
  isWhole: boolean;
}

type TextMessage = Omit<Extract<HubMessage, { type: 'text' }>, 'id' | 'type' | 'reply'> & { reply: string };
type SoFar = Omit<Extract<HubMessage, { type: 'so-far' }>, 'id' | 'type' | 'reply'> & { reply: string };

export class WatchedReply {
  readonly #watchers = new Set<Watcher>();
  /** `count`: the number of its signals that came. */
  #reply: { key: string; count: number; streamed: StreamedSignals } | undefined;
  /** The parts of a copy that have come. */
  #parts: { reply: string; upTo: number; signals: Placed[]; count: number } | undefined;

  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  /** Returns the function that ends the watching. */
  watch(receive: (signal: HubSignal) => void): () => void {
    const watcher: Watcher = { receive, isWhole: false };
    this.#watchers.add(watcher);
    if (this.#reply) this.#repeat(watcher, this.#reply.streamed);
    return () => void this.#watchers.delete(watcher);
  }

  takeAppended(length: number, isReplyOpen: boolean): void {
    if (this.#reply?.streamed.landed(length, isReplyOpen)) this.#forget();
    const signal: HubSignal = { type: 'appended', length, ...(isReplyOpen && { isReplyOpen }) };
    this.#send(signal, () => true);
  }

  takeSingle(next: number, signal: Live): void {
    this.#send({ type: 'live', next, signal }, () => true);
  }

  takeText({ reply: key, from, next, signals }: TextMessage): void {
    if (this.#reply?.key === key) {
      // A part of it was lost.
      if (from !== this.#reply.count) return this.#drop(next);
    } else {
      // Another worker still writes an earlier reply, or the beginning was lost.
      if (from !== 0) return;
      this.#drop(next);
      this.#reply = { key, count: 0, streamed: new StreamedSignals() };
      for (const watcher of this.#watchers) watcher.isWhole = true;
    }
    const reply = this.#reply;
    reply.count += signals.length;
    for (const signal of signals) {
      if (!signal) continue;
      reply.streamed.add(next, signal);
      this.#send({ type: 'live', next, signal }, ({ isWhole }) => isWhole);
    }
  }

  takeSoFar(message: SoFar): void {
    const { reply: key, upTo } = message;
    const isSame = this.#reply?.key === key && this.#reply.count === upTo;
    if (isSame && [...this.#watchers].every(({ isWhole }) => isWhole)) return;
    const signals = this.#complete(message);
    if (!signals) return;
    if (!isSame) this.#drop(signals.at(-1)?.next ?? message.next);
    const streamed = new StreamedSignals();
    for (const { next, signal } of signals) streamed.add(next, signal);
    this.#reply = { key, count: upTo, streamed };
    for (const watcher of this.#watchers) if (!watcher.isWhole) this.#repeat(watcher, streamed);
  }

  /** The whole copy, once its last part is here. */
  #complete({ reply, upTo, part, parts, next, signals }: SoFar): Placed[] | undefined {
    if (part === 0) this.#parts = { reply, upTo, signals: [], count: 0 };
    const received = this.#parts;
    if (!received || received.reply !== reply || received.upTo !== upTo || received.count !== part) return undefined;
    received.count += 1;
    for (const signal of signals) if (signal) received.signals.push({ next, signal });
    if (received.count < parts) return undefined;
    this.#parts = undefined;
    return received.signals;
  }

  #repeat(watcher: Watcher, { soFar, resets }: StreamedSignals): void {
    if (!soFar) return;
    watcher.isWhole = true;
    const [first] = soFar;
    for (const signal of first ? resets : []) this.#give(watcher, { type: 'live', next: first?.next ?? 0, signal });
    for (const { next, signal } of soFar) this.#give(watcher, { type: 'live', next, signal });
  }

  /** Removes the shown part of the reply. */
  #drop(next: number): void {
    for (const signal of this.#reply?.streamed.resets ?? [])
      this.#send({ type: 'live', next, signal }, ({ isWhole }) => isWhole);
    this.#forget();
  }

  #forget(): void {
    this.#reply = undefined;
    for (const watcher of this.#watchers) watcher.isWhole = false;
  }

  #send(signal: HubSignal, isFor: (watcher: Watcher) => boolean): void {
    for (const watcher of [...this.#watchers].filter(isFor)) this.#give(watcher, signal);
  }

  #give(watcher: Watcher, signal: HubSignal): void {
    // An earlier receiver may have ended this subscription.
    if (!this.#watchers.has(watcher)) return;
    try {
      watcher.receive(signal);
    } catch (error) {
      console.warn({ event: 'subscriber-failed', error });
    }
  }
}
