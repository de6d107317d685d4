/**
 * What stands between a caller's abort signal and a model call that may be deaf to it. Rule: an abort ends the call at
 * once, with the caller's reason, and a call that is over leaves no listener on the signal.
 */

export interface AbortGate {
  /** For the callee. */
  readonly signal: AbortSignal;
  /** Throws the caller's reason once its signal has fired. */
  check(): void;
  /** What the next abort ends, in place of what it ended before. Runs at once where the signal has fired. */
  stage(stop: () => void): void;
  /** Rejects with the caller's reason as soon as its signal fires, also where `start` ignores it. */
  race<T>(start: (signal: AbortSignal) => Promise<T>, late: (value: T) => void): Promise<T>;
  close(): void;
}

export function abortGate(caller: AbortSignal): AbortGate {
  const own = new AbortController();
  let stop: (() => void) | undefined;
  const fire = (): void => {
    own.abort(reasonOf(caller));
    stop?.();
  };
  caller.addEventListener('abort', fire, { once: true });
  if (caller.aborted) own.abort(reasonOf(caller));

  const stage = (next: () => void): void => {
    stop = next;
    if (caller.aborted) next();
  };
  return {
    signal: own.signal,
    stage,
    check() {
      if (caller.aborted) throw reasonOf(caller);
    },
    race(start, late) {
      return new Promise((resolve, reject) => {
        let gone = false;
        stage(() => {
          gone = true;
          reject(reasonOf(caller));
        });
        start(own.signal)
          .then((value) => (gone ? late(value) : resolve(value)))
          .catch(reject);
      });
    },
    close() {
      stop = undefined;
      caller.removeEventListener('abort', fire);
    },
  };
}

const reasonOf = (signal: AbortSignal): unknown =>
  signal.reason ?? new DOMException('This operation was aborted', 'AbortError');
