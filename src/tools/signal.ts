/**
 * The abort signal a tool is given. Rule: what a tool's listener throws stays with the call; left alone, the platform
 * would end the process for it.
 */
type Listener = (event: Event) => unknown;
type Given = EventListenerOrEventListenerObject;
type Add = AbortSignal['addEventListener'];
type Remove = AbortSignal['removeEventListener'];

/** Guards the listeners that are added from now on; `failed` hears what they throw. */
export function guardListeners(signal: AbortSignal, failed: (error: unknown) => void): void {
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
