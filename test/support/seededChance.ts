/** Seeded random numbers for tests: the same seed gives the same numbers on every machine (mulberry32). */
export interface Chance {
  /** From 0 to 1, without 1. */
  next(): number;
  /** From 0 to `most`, without `most`. */
  below(most: number): number;
  one<T>(choices: readonly [T, ...T[]]): T;
  /** True with this probability. */
  odds(probability: number): boolean;
}

export function chance(seed: number): Chance {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (most: number): number => Math.floor(next() * most);
  return {
    next,
    below,
    // `undefined` may be one of the choices.
    one: <T>(choices: readonly [T, ...T[]]) => choices[below(choices.length)] as T,
    odds: (probability) => next() < probability,
  };
}
