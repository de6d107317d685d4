/**
 * The time of a process, as the store measures it. Invariant: nothing else in this folder reads a clock or sets a timer, so a
 * simulation can stop one process while the others and the database continue.
 */
export interface StoreTime {
  /** Milliseconds that only grow, from any beginning. */
  now(): number;
  /** Calls `fire` once after `ms`; the returned function stops the timer. A background timer keeps no process alive. */
  setTimer(ms: number, fire: () => void, isBackground?: boolean): () => void;
  /** 0 to 1. */
  random(): number;
}

const platformTime: StoreTime = {
  now: () => performance.now(),
  setTimer(ms, fire, isBackground = false) {
    const timer = setTimeout(fire, ms);
    if (isBackground) (timer as { unref?(): void }).unref?.();
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};

const TIME = Symbol('time');

/** Gives the store of this pool another time. */
export const withTime = <P extends object>(pool: P, time: StoreTime): P => Object.assign(pool, { [TIME]: time });

export const timeOf = (pool: object): StoreTime => (pool as { [TIME]?: StoreTime })[TIME] ?? platformTime;
