/**
 * The signal that a tool is handed: an AbortSignal whose listeners harm nobody, and for which the time limit of its call is
 * known. Rule: what a listener throws is the tool's failure and never that of whoever aborts.
 */
import type { EffectAbort } from '../timeLimit.ts';

type Listener = (event: Event) => unknown;
type Given = EventListenerOrEventListenerObject;
type Add = AbortSignal['addEventListener'];
type Remove = AbortSignal['removeEventListener'];

/** The signal of a call as its tool is given it; `listenerFailed` hears what a listener throws. */
export function toolSignal({ signal }: EffectAbort, timeoutMs: number, listenerFailed: (error: unknown) => void) {
  limits.set(signal, timeoutMs);
  guardListeners(signal, listenerFailed);
  return signal;
}

/** Guards the listeners that are added from now on; `failed` hears what they throw. */
function guardListeners(signal: AbortSignal, failed: (error: unknown) => void): void {
  const add: Add = signal.addEventListener.bind(signal);
  const remove: Remove = signal.removeEventListener.bind(signal);
  const guards = new WeakMap<object, Listener>();
  let onabort: Listener | null = null;

  const run = (act: () => unknown): void => {
    try {
      Promise.resolve(act()).catch(failed);
    } catch (error) {
      failed(error);
    }
  };
  const guard = (given: Given): Listener => {
    const known = guards.get(given);
    if (known) return known;
    const made: Listener = (event) =>
      run(() => (typeof given === 'function' ? given.call(signal, event) : given.handleEvent(event)));
    guards.set(given, made);
    return made;
  };
  const heard = (event: Event): void => run(() => onabort?.call(signal, event));

  Object.defineProperties(signal, {
    addEventListener: {
      value: (type: string, given: Given | null, options?: AddEventListenerOptions | boolean) =>
        given && add(type, guard(given), options),
    },
    removeEventListener: {
      value: (type: string, given: Given | null, options?: EventListenerOptions | boolean) =>
        given && remove(type, guards.get(given) ?? given, options),
    },
    onabort: {
      get: () => onabort,
      set: (given: Listener | null) => {
        remove('abort', heard);
        onabort = typeof given === 'function' ? given : null;
        if (onabort) add('abort', heard);
      },
    },
  });
}

/** After how long the executor leaves the call of a signal behind; a tool may want to say what came of it before. */
const limits = new WeakMap<AbortSignal, number>();

/** Milliseconds for the call of this signal; undefined where no executor runs it. */
export const timeLimitOf = (signal: AbortSignal): number | undefined => limits.get(signal);
