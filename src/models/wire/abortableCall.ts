/**
 * Separates a caller's abort signal from a model call that may ignore it. Invariant: an abort ends the call at once
 * with the caller's reason. A finished call leaves no listener on the signal.
 */

export interface AbortableCall {
  /** The signal for the called function. */
  readonly signal: AbortSignal;
  /** Throws the caller's reason once its signal is aborted. */
  throwIfAborted(): void;
  /** Runs `stop` at the next abort, or at once if the signal is already aborted. Replaces an earlier `stop`. */
  onAbort(stop: () => void): void;
  /**
   * Rejects with the caller's reason at an abort, even if `start` ignores it. `discard` receives a value that comes
   * after that.
   */
  race<T>(start: (signal: AbortSignal) => Promise<T>, discard: (value: T) => void): Promise<T>;
  /** Removes the listener from the caller's signal. */
  end(): void;
}

export function abortableCall(caller: AbortSignal): AbortableCall {
  const own = new AbortController();
  let stop: (() => void) | undefined;
  const abort = (): void => {
    own.abort(reasonOf(caller));
    stop?.();
  };
  caller.addEventListener('abort', abort, { once: true });
  if (caller.aborted) own.abort(reasonOf(caller));

  const onAbort = (next: () => void): void => {
    stop = next;
    if (caller.aborted) next();
  };
  return {
    signal: own.signal,
    onAbort,
    throwIfAborted() {
      if (caller.aborted) throw reasonOf(caller);
    },
    race(start, discard) {
      return new Promise((resolve, reject) => {
        let isAborted = false;
        onAbort(() => {
          isAborted = true;
          reject(reasonOf(caller));
        });
        start(own.signal)
          .then((value) => (isAborted ? discard(value) : resolve(value)))
          .catch(reject);
      });
    },
    end() {
      stop = undefined;
      caller.removeEventListener('abort', abort);
    },
  };
}

const reasonOf = (signal: AbortSignal): unknown =>
  signal.reason ?? new DOMException('This operation was aborted', 'AbortError');
