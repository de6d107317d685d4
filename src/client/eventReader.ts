/**
 * Reads the events of a conversation, and connects again where the connection is lost: after growing waits, from the entry
 * after the last one. Invariant: one connection at a time. A stream that cannot be used is tried three times, and then is
 * an error. A refusal that no repetition changes is an error at once.
 */
import { RunchartError } from '../errors.ts';
import { eventStream } from '../models/wire/eventStream.ts';
import type { Ports } from '../runtime/hostPorts.ts';
import { badAnswer, failureOf, readBody, type ServerCalls } from './serverCalls.ts';

export interface EventTarget {
  /** The seq of the entry that is wanted next. */
  readonly wanted: number;
  connected(): void;
  /** Takes the data of one event. Throws RunchartError `bad_answer`. */
  take(event: string, data: unknown): void;
  /** All events that arrived together were taken. */
  flush(): void;
  /** The connection is lost; another one will be tried. */
  lost(error: RunchartError | undefined): void;
  failed(error: RunchartError): void;
}

export interface ReaderOptions {
  calls: ServerCalls;
  path: string;
  signal: AbortSignal;
  silenceMs: number;
  setTimer: Ports['setTimer'];
}

/** Thrown by `take`: another connection is needed at once. */
export const RESTART = Symbol('restart');

/** An entry may contain images. */
const EVENT_BYTES = 32 * 1_048_576;
/** Unusable streams in a row, without an entry between them, or refusals in a row. */
const STRIKES = 3;

const hasCode = (error: unknown, code: string): boolean => RunchartError.isRunchartError(error) && error.code === code;

export class EventReader {
  readonly #options: ReaderOptions;
  readonly #target: EventTarget;
  /** Attempts since the last usable event. */
  #attempts = 0;
  #unusable = 0;
  #refused = 0;

  constructor(target: EventTarget, options: ReaderOptions) {
    this.#target = target;
    this.#options = options;
  }

  /** Resolves when the signal is aborted, or after an error that no repetition changes. */
  async read(): Promise<void> {
    const { signal, calls } = this.#options;
    while (!signal.aborted) {
      const failure = await this.#connect();
      if (signal.aborted) return;
      if (failure && !this.#mayPass(failure)) return this.#target.failed(failure.error);
      this.#attempts += 1;
      this.#target.lost(failure?.error);
      await calls.wait(this.#attempts, signal, failure?.waitMs);
    }
  }

  /** Reads one connection to its end; undefined if the server ended it. */
  async #connect(): Promise<ReturnType<typeof failureOf> | undefined> {
    const { calls, path, signal } = this.#options;
    try {
      const response = await calls.events(path, this.#target.wanted - 1, signal);
      this.#refused = 0;
      this.#target.connected();
      const events = eventStream((data, name, isCut) => {
        // The rest of a cut event comes with the next connection.
        if (!isCut) this.#take(name, data);
      }, EVENT_BYTES);
      await readBody(response, this.#options, (bytes) => {
        try {
          events.push(bytes);
        } catch (error) {
          if (error === RESTART || hasCode(error, 'bad_answer')) throw error;
          throw badAnswer('server-sent events', error);
        } finally {
          this.#target.flush();
        }
      });
      return undefined;
    } catch (error) {
      return error === RESTART ? undefined : failureOf(error, signal);
    }
  }

  #take(name: string | undefined, data: string): void {
    if (name !== 'entry' && name !== 'live' && name !== 'overview') return;
    let value: unknown;
    try {
      value = JSON.parse(data);
    } catch (error) {
      throw badAnswer(`the data of an event "${name}" to be JSON`, error);
    }
    if (typeof value !== 'object' || value === null) throw badAnswer(`the data of an event "${name}" to be an object`);
    this.#target.take(name, value);
    this.#attempts = 0;
    if (name === 'entry') this.#unusable = 0;
  }

  #mayPass({ error, isPassing }: ReturnType<typeof failureOf>): boolean {
    if (isPassing) return true;
    if (error.code === 'bad_answer') return ++this.#unusable < STRIKES;
    // A token may have expired: the next request asks for another one.
    return error.code === 'unauthorized' && ++this.#refused < STRIKES;
  }
}
