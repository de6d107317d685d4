/** The time limit of a foreign function. Rule: a limit that is over leaves no timer and no listener behind. */

/** Waits no longer than `ms`, and not beyond the abort; what the work answers later counts for nothing. */
export async function within<T>(
  ms: number,
  { setTimer, signal }: { setTimer(ms: number, fire: () => void): () => void; signal: AbortSignal },
  work: () => T | Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const answered = Promise.resolve(work());
  let stop = (): void => {};
  let leave = (): void => {};
  const over = new Promise<never>((_, reject) => {
    stop = setTimer(ms, () => reject(new Error(`took longer than ${ms} ms`)));
    leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
  });
  try {
    return await Promise.race([answered, over]);
  } finally {
    stop();
    signal.removeEventListener('abort', leave);
  }
}
