/**
 * Sends simulated lives along the charts. Invariant: random lives come first. For each missing arrow or act, further
 * lives start from the tape prefixes that lead right before it.
 */

import { type Arrow, Atlas } from './arrowAtlas.ts';
import { simulate } from './checkedLife.ts';

/** The draws of a step in which the host acts: no crash, no change of the clock, an act. */
const ACT = [0, 0, 999];

export interface Exploration {
  readonly atlas: Atlas;
  readonly lives: number;
  /** The number of lives that were sent somewhere. */
  readonly sent: number;
  readonly broken: readonly string[];
}

export async function explore({ lives, tries }: { lives: number; tries: number }): Promise<Exploration> {
  const atlas = new Atlas();
  const tapes = new Map<number, readonly number[]>();
  const broken: string[] = [];
  let seed = 0;
  const live = async (prefix: readonly number[] = []): Promise<void> => {
    seed += 1;
    const { tape, violations } = await simulate({ seed, prefix, inspect: atlas.follow(seed) });
    tapes.set(seed, tape);
    for (const { invariant, detail } of violations) {
      broken.push(`${invariant}: ${detail} (simulate({ seed: ${seed}, prefix: [${prefix}] }))`);
    }
  };
  const headsOf = ({ taken }: Arrow): (readonly number[])[] =>
    taken.map(({ seed: arrowSeed, choices }) => (tapes.get(arrowSeed) ?? []).slice(0, choices));

  while (seed < lives) await live();
  for (let round = 0; round < tries; round++) {
    const arrows = [...atlas.arrows.values()];
    const missing = arrows.filter(({ taken }) => taken.length === 0).map(({ source }) => source);
    for (const state of new Set([...missing, ...atlas.thin])) {
      const before = arrows.filter((arrow) => leadsTo(arrow, state)).flatMap(headsOf);
      const head = before[Math.floor(round / 2) % before.length];
      if (head) await live(round % 2 === 0 ? head : [...head, ...ACT]);
    }
  }
  return { atlas, lives: seed, sent: seed - lives, broken };
}

/** Returns true if the arrow ends in the state, in a child of it or in a parent. */
const leadsTo = ({ targets }: Arrow, state: string): boolean =>
  targets.some((target) => target === state || target.startsWith(`${state}.`) || state.startsWith(`${target}.`));
