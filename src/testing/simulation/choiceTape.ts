/**
 * The choices of one simulated run. Rule: every choice is a number taken from the tape, so that a seed, a shrunken list
 * and a recorded list drive the same code; 0 is always the plainest choice, and a list that is used up gives zeros.
 */
export class Tape {
  /** Every number that was given out, in order: played again, they give the same run. */
  readonly taken: number[] = [];
  readonly #source: (n: number) => number;

  constructor(source: (n: number) => number) {
    this.#source = source;
  }

  /** A whole number from 0 up to and without `n`. */
  next(n: number): number {
    // Where there is no choice none is made, so that a recorded tape is read as it was written.
    if (n <= 1) return 0;
    const number = this.#source(n);
    this.taken.push(number);
    return number;
  }

  /** True in about this share of the cases; 0 on the tape is false. */
  chance(share: number): boolean {
    return this.next(1000) >= 1000 - Math.round(share * 1000);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.next(list.length)] as T;
  }

  /** One of these, each as often as its weight says; the first is the plainest. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const shares = sharesOf(weights);
    let left = this.next(shares.sum);
    for (const [name, share] of shares.of) {
      left -= share;
      if (left < 0) return name as K;
    }
    return shares.of[0]?.[0] as K;
  }
}

interface Shares {
  of: [string, number][];
  sum: number;
}
const known = new WeakMap<object, Shares>();

/** Whole numbers, counted once for each table of weights. */
function sharesOf(weights: Readonly<Record<string, number>>): Shares {
  const before = known.get(weights);
  if (before) return before;
  const of = Object.entries(weights).map(([name, weight]): [string, number] => [name, Math.round(weight * 100)]);
  const made = { of, sum: of.reduce((sum, [, share]) => sum + share, 0) };
  known.set(weights, made);
  return made;
}

/** Numbers of a seed: mulberry32, which is the same on every platform. */
export function seeded(seed: number): Tape {
  let state = seed >>> 0;
  return new Tape((n) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % n;
  });
}

/** A list of numbers as a tape. */
export function recorded(numbers: readonly number[]): Tape {
  let at = 0;
  return new Tape((n) => {
    const number = numbers[at] ?? 0;
    at += 1;
    return Math.abs(Math.trunc(number)) % n;
  });
}

/** These numbers first, then those of a seed: a known way to some place, and any way on from there. */
export function continued(numbers: readonly number[], seed: number): Tape {
  const [head, rest] = [recorded(numbers), seeded(seed)];
  let left = numbers.length;
  return new Tape((n) => {
    if (left <= 0) return rest.next(n);
    left -= 1;
    return head.next(n);
  });
}
