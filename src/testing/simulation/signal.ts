/** An abort signal as a caller hands it over. Rule: who listens is counted, so that who goes on listening is seen. */
export class CallerSignal {
  readonly #controller = new AbortController();
  #listeners = new Set<unknown>();
  /** The run it was given to is over. */
  over = false;

  constructor() {
    const { signal } = this.#controller;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    Object.defineProperties(signal, {
      addEventListener: {
        value: (type: string, listener: EventListener, options?: AddEventListenerOptions) => {
          this.#listeners.add(listener);
          add(type, listener, options);
        },
      },
      removeEventListener: {
        value: (type: string, listener: EventListener) => {
          this.#listeners.delete(listener);
          remove(type, listener);
        },
      },
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isOverheard(): boolean {
    return this.over && !this.signal.aborted && this.#listeners.size > 0;
  }

  abort(): void {
    this.#controller.abort();
  }
}
