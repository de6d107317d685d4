/** A signal that the host passes with a message. */
import type { Run } from '../../conversation/run.ts';

export class CallerSignal {
  readonly #controller = new AbortController();
  /** The run that received it has ended. */
  isOver = false;
  /** The run that was started with it. */
  run: Run | undefined;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(): void {
    this.#controller.abort();
  }
}
