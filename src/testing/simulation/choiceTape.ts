/**
 * The choices of one simulated run. Invariant: every choice is a number from the tape, so a seed, a shrunken list and a
 * recorded list drive the same code. 0 is always the plainest choice, and an exhausted list returns zeros.
 */
export class Tape {
  /** Every returned number, in order. A replay of them gives the same run. */
  readonly taken: number[] = [];
  readonly #source: (n: number) => number;

  constructor(source: (n: number) => number) {
    this.#source = source;
  }

  /** Returns an integer from 0 to `n`, without `n`. */
  next(n: number): number {
    // Without alternatives no number is taken, so a recorded tape is read as it was written.
    if (n <= 1) return 0;
    const number = this.#source(n);
    this.taken.push(number);
    return number;
  }

  /** Returns true with this probability. 0 on the tape is false. */
  chance(share: number): boolean {
    return this.next(1000) >= 1000 - Math.round(share * 1000);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.next(list.length)] as T;
  }

  /** Returns one key, with a probability by its weight. The first key is the plainest. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const shares = sharesOf(weights);
    let rest = this.next(shares.sum);
    for (const [name, share] of shares.entries) {
      rest -= share;
      if (rest < 0) return name as K;
    }
    return shares.entries[0]?.[0] as K;
  }
}

interface Shares {
  entries: [string, number][];
  sum: number;
}
const sharesByWeights = new WeakMap<object, Shares>();

/** Integer weights, computed once for each table. */
function sharesOf(weights: Readonly<Record<string, number>>): Shares {
  const before = sharesByWeights.get(weights);
  if (before) return before;
  const entries = Object.entries(weights).map(([name, weight]): [string, number] => [name, Math.round(weight * 100)]);
  const made = { entries, sum: entries.reduce((sum, [, share]) => sum + share, 0) };
  sharesByWeights.set(weights, made);
  return made;
}

/** Returns the numbers of a seed: mulberry32, which is the same on every platform. */
export function seeded(seed: number): Tape {
  let state = seed >>> 0;
  return new Tape((n) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % n;
  });
}

/** Returns a list of numbers as a tape. */
export function recorded(numbers: readonly number[]): Tape {
  let at = 0;
  return new Tape((n) => {
    const number = numbers[at] ?? 0;
    at += 1;
    return Math.abs(Math.trunc(number)) % n;
  });
}

/** Returns a tape with these numbers first, then those of a seed. It leads to a known place and continues at random. */
export function continued(numbers: readonly number[], seed: number): Tape {
  const [head, rest] = [recorded(numbers), seeded(seed)];
  let remaining = numbers.length;
  return new Tape((n) => {
    if (remaining <= 0) return rest.next(n);
    remaining -= 1;
    return head.next(n);
  });
}
