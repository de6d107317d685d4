/**
 * Separates a caller's abort signal from a model call that may ignore it. Invariant: an abort ends the call at once
 * with the caller's reason. A finished call leaves no listener on the signal.
 */

export interface AbortGate {
  /** The signal for the called function. */
  readonly signal: AbortSignal;
  /** Throws the caller's reason once its signal is aborted. */
  check(): void;
  /**
   * Sets what the next abort ends, and replaces what was set before. Runs `stop` at once if the signal is already
   * aborted.
   */
  stage(stop: () => void): void;
  /**
   * Rejects with the caller's reason at an abort, even if `start` ignores it. `late` receives a value that comes
   * after that.
   */
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
