/**
 * The signal that a tool is handed: an AbortSignal whose listeners harm nobody, and for which the time limit of its call is
 * known. Rule: what a listener throws is the tool's failure and never that of whoever aborts.
 */
import type { EffectAbort } from '../timeLimit.ts';

/** What the signal of a call is made of. */
export interface SignalSource {
  readonly abort: EffectAbort;
  readonly timeoutMs: number;
  /** Hears what a listener throws. */
  readonly listenerFailed: (error: unknown) => void;
}

export function toolSignal({ abort: { signal }, timeoutMs, listenerFailed }: SignalSource): AbortSignal {
  limits.set(signal, timeoutMs);
  /** By what a tool gave, what was added in its place. */
  const guards = new Map<object, (event: Event) => void>();
  const guard = (given: EventListenerOrEventListenerObject) => {
    const call = async (event: Event) =>
      typeof given === 'function' ? given.call(signal, event) : given.handleEvent(event);
    const made = guards.get(given) ?? ((event: Event) => void call(event).catch(listenerFailed));
    guards.set(given, made);
    return made;
  };
  for (const name of ['addEventListener', 'removeEventListener'] as const) {
    const own: AbortSignal['addEventListener'] = signal[name].bind(signal);
    const value = (type: string, given: EventListenerOrEventListenerObject | null, options?: boolean) =>
      given && own(type, guard(given), options);
    // Configurable, so that a test may count what a tool listens for.
    Object.defineProperty(signal, name, { value, configurable: true });
  }
  // A plain property: a getter would keep the conversation alive until the next full garbage collection.
  Object.defineProperty(signal, 'onabort', { value: null, writable: true });
  signal.addEventListener('abort', (event) => typeof signal.onabort === 'function' && signal.onabort(event));
  return signal;
}

/** After how long the executor leaves the call of a signal behind; a tool may want to say what came of it before. */
const limits = new WeakMap<AbortSignal, number>();

/** Milliseconds for the call of this signal; undefined where no executor runs it. */
export const timeLimitOf = (signal: AbortSignal): number | undefined => limits.get(signal);
