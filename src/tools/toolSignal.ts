/**
 * The AbortSignal of a tool call, with its time limit. Rule: an error in a listener is reported as the tool's failure
 * and never reaches the code that aborts.
 */
import type { EffectAbort } from '../timeLimit.ts';

/** The inputs of a call's signal. */
export interface SignalSource {
  readonly abort: EffectAbort;
  readonly timeoutMs: number;
  /** Receives the error of a listener. */
  readonly listenerFailed: (error: unknown) => void;
}

export function toolSignal({ abort: { signal }, timeoutMs, listenerFailed }: SignalSource): AbortSignal {
  limits.set(signal, timeoutMs);
  /** The wrapped listener for each original one. */
  const guards = new Map<object, (event: Event) => void>();
  const guard = (listener: EventListenerOrEventListenerObject) => {
    const call = async (event: Event) =>
      typeof listener === 'function' ? listener.call(signal, event) : listener.handleEvent(event);
    const made = guards.get(listener) ?? ((event: Event) => void call(event).catch(listenerFailed));
    guards.set(listener, made);
    // The platform removes what it has added, for example a listener with a signal of its own.
    guards.set(made, made);
    return made;
  };
  for (const name of ['addEventListener', 'removeEventListener'] as const) {
    const own: AbortSignal['addEventListener'] = signal[name].bind(signal);
    const value = (type: string, listener: EventListenerOrEventListenerObject | null, options?: boolean) =>
      listener && own(type, guard(listener), options);
    // Configurable, so that a test can count a tool's listeners.
    Object.defineProperty(signal, name, { value, configurable: true });
  }
  // A plain property: a getter would keep the conversation alive until the next full garbage collection.
  Object.defineProperty(signal, 'onabort', { value: null, writable: true });
  signal.addEventListener('abort', (event) => typeof signal.onabort === 'function' && signal.onabort(event));
  return signal;
}

/** The time after which the executor abandons the call. A tool can finish earlier to return a partial result. */
const limits = new WeakMap<AbortSignal, number>();

/** The time limit of the call in milliseconds; undefined if no executor runs it. */
export const timeLimitOf = (signal: AbortSignal): number | undefined => limits.get(signal);
