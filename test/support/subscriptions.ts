/**
 * Counts the subscriptions of a conversation: entries, live signals and the readers of runs. Invariant: it only counts,
 * and it counts a run only during its test.
 */
import { Observable } from 'rxjs';
import { onTestFinished, vi } from 'vitest';
import { RunFeed } from '../../src/conversation/run.ts';
import type { Conversation } from '../../src/index.ts';

export class Subscriptions {
  now = 0;
  readonly #watched = new WeakSet<Conversation>();

  constructor() {
    const { follow } = RunFeed.prototype;
    const begun = (): void => {
      this.now += 1;
    };
    const ended = (): void => {
      this.now -= 1;
    };
    const spy = vi.spyOn(RunFeed.prototype, 'follow').mockImplementation(function (this: RunFeed, run, take) {
      begun();
      const stop = follow.call(this, run, take);
      return () => {
        ended();
        stop();
      };
    });
    onTestFinished(() => spy.mockRestore());
  }

  /** Counts the subscribers from now on. */
  watch(conversation: Conversation): void {
    if (this.#watched.has(conversation)) return;
    this.#watched.add(conversation);
    const { live$, log$ } = conversation;
    Object.defineProperties(conversation, {
      live$: { value: this.#counted(live$) },
      log$: { value: (from?: number) => this.#counted(log$.call(conversation, from)) },
    });
  }

  #counted<T>(source: Observable<T>): Observable<T> {
    return new Observable<T>((observer) => {
      this.now += 1;
      const subscription = source.subscribe(observer);
      return () => {
        this.now -= 1;
        subscription.unsubscribe();
      };
    });
  }
}
