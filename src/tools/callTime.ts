/**
 * The time of a call: how long it may take, and the clock that its tool is given. Rule: time is the agent's, so that a
 * test or a replay decides what time it is, and no timer outlives the call or its signal.
 */

const limits = new WeakMap<AbortSignal, number>();

/** The executor leaves the call of this signal behind after `ms`; a tool may want to say what came of it before. */
export const limitTime = (signal: AbortSignal, ms: number): void => void limits.set(signal, ms);

/** Milliseconds for the call of this signal; undefined where no executor runs it. */
export const timeLimitOf = (signal: AbortSignal): number | undefined => limits.get(signal);

/** The agent's time, as its ports give it. */
interface TimeSource {
  now(): number;
  setTimer(ms: number, fire: () => void): () => void;
}

export interface CallClock {
  now(): number;
  /** Rejects with the signal's reason when it fires, and where the call ends first. */
  sleep(ms: number): Promise<void>;
}

/** The clock of one call, and what ends every sleep that nobody waited for. */
export function callClock({ now, setTimer }: TimeSource, signal: AbortSignal) {
  /** What wakes each sleeper up. */
  const sleepers = new Set<() => void>();
  let why: (() => unknown) | undefined;
  const wake = (reason: () => unknown): void => {
    why ??= reason;
    for (const sleeper of sleepers) sleeper();
  };
  signal.addEventListener('abort', () => wake(() => signal.reason), { once: true });

  function sleep(ms: number): Promise<void> {
    const slept = new Promise<void>((resolve, reject) => {
      if (why) return reject(why());
      const stop = setTimer(ms, () => {
        sleepers.delete(woken);
        resolve();
      });
      const woken = (): void => {
        sleepers.delete(woken);
        stop();
        reject(why?.());
      };
      sleepers.add(woken);
    });
    // A tool may forget a sleep: its end is nobody's failure.
    slept.catch(() => undefined);
    return slept;
  }
  const end = (): void => wake(() => new DOMException('the call is over', 'AbortError'));
  return { clock: { now: () => now(), sleep } satisfies CallClock, end };
}
