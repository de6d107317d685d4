/**
 * Observables that protect subscribers, the run and the process from one another. Invariant: an error of a subscriber's `next`,
 * thrown or rejected, is reported, and the other subscribers still receive the value. After three errors the subscriber is
 * detached. Operators keep this protection, because an observable lifted from a guarded one is guarded too.
 */
import { Observable, type Observer, type Operator, Subscriber, type Subscription, type TeardownLogic } from 'rxjs';

const STRIKES = 3;
type Report = (error: unknown) => void;
type Next<T> = Partial<Observer<T>> | ((value: T) => void) | null | undefined;

class Guarded<T> extends Observable<T> {
  readonly #report: Report;

  constructor(report: Report, subscribe?: (subscriber: Subscriber<T>) => TeardownLogic) {
    super(subscribe);
    this.#report = report;
  }

  override lift<R>(operator?: Operator<T, R>): Observable<R> {
    const lifted = new Guarded<R>(this.#report);
    lifted.source = this;
    lifted.operator = operator as Operator<unknown, R> | undefined;
    return lifted;
  }

  override subscribe(next?: Next<T>, error?: ((error: unknown) => void) | null, complete?: (() => void) | null) {
    if (next instanceof Subscriber) return super.subscribe(next);
    const observer = typeof next === 'function' || !next ? { next, error, complete } : next;
    return this.#subscribeGuarded(observer as Partial<Observer<T>>);
  }

  #subscribeGuarded(observer: Partial<Observer<T>>): Subscription {
    let strikes = 0;
    const failed = (error: unknown): void => {
      strikes += 1;
      this.#report(error);
    };
    const attempt = (act: () => unknown): void => {
      try {
        const acting = act();
        if (acting instanceof Promise) acting.catch(failed);
      } catch (error) {
        failed(error);
      }
    };
    const subscriber = new Subscriber<T>({
      next: (value: T) => {
        attempt(() => observer.next?.(value));
        if (strikes >= STRIKES) subscriber.unsubscribe();
      },
      error: (error: unknown) => attempt(() => (observer.error ? observer.error(error) : this.#report(error))),
      complete: () => attempt(() => observer.complete?.()),
    } as Subscriber<T>);
    return super.subscribe(subscriber);
  }
}

/** An observable whose subscribers cannot throw into their source. */
export function guarded<T>(report: Report, subscribe: (subscriber: Subscriber<T>) => TeardownLogic): Observable<T> {
  return new Guarded<T>(report, subscribe);
}
