/**
 * The signal that a tool is handed: an AbortSignal whose listeners harm nobody, and for which the time limit of its call is
 * known. Rule: what a listener throws is the tool's failure and never that of whoever aborts.
 */
import type { EffectAbort } from '../timeLimit.ts';

type Listener = (event: Event) => unknown;
type Given = EventListenerOrEventListenerObject;

/** What the signal of a call is made of, once somebody looks at it. */
interface SignalSource {
  readonly abort: EffectAbort;
  readonly timeoutMs: number;
  /** Hears what a listener throws. */
  readonly listenerFailed: (error: unknown) => void;
  made?: AbortSignal;
}

const SOURCE: unique symbol = Symbol('signal source');
type Sourced = { readonly [SOURCE]: SignalSource };

// One getter for all calls: V8 keeps each getter, with all that it can see, until the next full collection.
const lazySignal: PropertyDescriptor & ThisType<Sourced> = {
  enumerable: true,
  get() {
    const source = this[SOURCE];
    source.made ??= toolSignal(source);
    return source.made;
  },
};

/** The context of a call with its signal, which is made when it is first asked for: most tools never do. */
export function withSignal<Context extends object>(context: Context, source: SignalSource) {
  Object.defineProperty(context, SOURCE, { value: source });
  return Object.defineProperty(context, 'signal', lazySignal) as Context & { readonly signal: AbortSignal };
}

function toolSignal({ abort: { signal }, timeoutMs, listenerFailed }: SignalSource): AbortSignal {
  limits.set(signal, timeoutMs);
  Object.defineProperty(signal, GUARD, { value: new ListenerGuard(signal, listenerFailed) });
  return Object.setPrototypeOf(signal, guardedSignal);
}

const GUARD: unique symbol = Symbol('listener guard');
type Guarded = AbortSignal & { readonly [GUARD]: ListenerGuard };
const { addEventListener: add, removeEventListener: remove } = AbortSignal.prototype;

/** Runs the listeners of one signal, so that what they throw goes where it belongs. */
class ListenerGuard {
  readonly #signal: AbortSignal;
  readonly #failed: (error: unknown) => void;
  readonly #guards = new Map<object, Listener>();
  #onabort: Listener | null = null;

  constructor(signal: AbortSignal, failed: (error: unknown) => void) {
    this.#signal = signal;
    this.#failed = failed;
  }

  /** The listener that is added in place of the given one, each time the same. */
  of(given: Given): Listener {
    const known = this.#guards.get(given);
    if (known) return known;
    const made: Listener = (event) =>
      this.#run(() => (typeof given === 'function' ? given.call(this.#signal, event) : given.handleEvent(event)));
    this.#guards.set(given, made);
    return made;
  }

  get onabort(): Listener | null {
    return this.#onabort;
  }

  set onabort(given: Listener | null) {
    remove.call(this.#signal, 'abort', this.#heard);
    this.#onabort = typeof given === 'function' ? given : null;
    if (this.#onabort) add.call(this.#signal, 'abort', this.#heard);
  }

  readonly #heard = (event: Event): void => this.#run(() => this.#onabort?.call(this.#signal, event));

  #run(act: () => unknown): void {
    try {
      Promise.resolve(act()).catch(this.#failed);
    } catch (error) {
      this.#failed(error);
    }
  }
}

/** What a tool's signal inherits from, before that of all signals. */
const guardedSignal: object = Object.create(AbortSignal.prototype, {
  addEventListener: {
    value(this: Guarded, type: string, given: Given | null, options?: AddEventListenerOptions | boolean) {
      if (given) add.call(this, type, this[GUARD].of(given), options);
    },
  },
  removeEventListener: {
    value(this: Guarded, type: string, given: Given | null, options?: EventListenerOptions | boolean) {
      if (given) remove.call(this, type, this[GUARD].of(given), options);
    },
  },
  onabort: {
    get(this: Guarded) {
      return this[GUARD].onabort;
    },
    set(this: Guarded, given: Listener | null) {
      this[GUARD].onabort = given;
    },
  },
});

/** After how long the executor leaves the call of a signal behind; a tool may want to say what came of it before. */
const limits = new WeakMap<AbortSignal, number>();

/** Milliseconds for the call of this signal; undefined where no executor runs it. */
export const timeLimitOf = (signal: AbortSignal): number | undefined => limits.get(signal);
