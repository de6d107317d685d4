/**
 * What a conversation shows to who watches it: its log, its signals and its view, stored first and then live. Rule: no
 * gap and no repeat, whenever a watcher comes; a watcher that throws harms nobody.
 */
import type { Observable } from 'rxjs';
import type { LogEntry } from '../../machines/internal.ts';
import type { Live } from '../live.ts';
import { guarded } from '../log/isolatedObservable.ts';
import { type ConversationView, createProjector } from '../projector/index.ts';
import type { Runtime } from '../runtime/runtime.ts';

export class Streams {
  readonly live$: Observable<Live>;
  readonly view$: Observable<ConversationView>;
  readonly #runtime: Runtime;
  #projector: ReturnType<typeof createProjector> | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    const { log, live, observerFailed } = runtime;
    this.live$ = guarded(observerFailed, (subscriber) => live.signals$.subscribe(subscriber));
    this.view$ = guarded(observerFailed, (subscriber) => {
      // Before the first view is shown: who is shown it may act at once.
      const from = log.entries.length;
      subscriber.next(this.view());
      return log.stream(from, observerFailed).subscribe({
        // One view an append: what stands between its entries is no state that ever was durable.
        next: ({ seq }) => {
          if (seq === log.entries.length - 1) subscriber.next(this.view());
        },
        complete: () => subscriber.complete(),
      });
    });
  }

  log$(from: number): Observable<LogEntry> {
    return this.#runtime.log.stream(from, this.#runtime.observerFailed);
  }

  /** The projector is made when somebody asks for a view, and fed from then on. */
  view(): ConversationView {
    if (!this.#projector) {
      const projector = createProjector();
      for (const entry of this.#runtime.log.entries) projector.push(entry);
      this.#runtime.log.listen((entry) => projector.push(entry));
      this.#projector = projector;
    }
    return this.#projector.view();
  }
}
