/** A signal that the host gives with a message. */
import type { Run } from '../../conversation/run.ts';

export class CallerSignal {
  readonly #controller = new AbortController();
  /** The run that it was given to is over. */
  isOver = false;
  /** The run that was begun with it. */
  run: Run | undefined;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(): void {
    this.#controller.abort();
  }
}
