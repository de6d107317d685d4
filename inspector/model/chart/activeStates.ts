/**
 * Derives the display of a chart at an entry. Invariant: each parallel region has one active state. A state counts as
 * entered when it becomes active, and when a transition into it is taken again.
 */
import { innermostActive } from '../../../src/inspect/drawing/levels.ts';
import type { Move, Path } from './chartPath.ts';
import type { Leg, Walker } from './inferredPath.ts';

/** The state of a chart at the cursor. */
export interface ActiveStates {
  /** The innermost active states, one in each region, with the log time of their entry. */
  readonly leaves: ReadonlyMap<string, number>;
  /** The first of them. */
  readonly leaf: string | undefined;
  /** The transitions of the last step, in order. */
  readonly lastStep: readonly Leg[];
  readonly entered: ReadonlyMap<string, number>;
  readonly taken: ReadonlySet<string>;
  /** Milliseconds in each innermost state so far. */
  readonly spent: ReadonlyMap<string, number>;
}

/** Returns the state of a chart at an entry. After the end of a run the legs since its last active state stay lit. */
export function activeStatesAt(walker: Walker, path: Path, index: number, now: number): ActiveStates {
  const tally = new Tally(walker);
  let lastStep: readonly Leg[] = [];
  let before: Move | undefined;
  for (const move of path) {
    if (move.at > index) break;
    if (before) tally.spend(move.time - before.time);
    tally.applyMove(move);
    const isTail = before !== undefined && isOutside(walker, before.leaf, move.leaf);
    lastStep = isTail ? [...lastStep, ...move.legs] : move.legs;
    before = move;
  }
  if (before) tally.spend(now - before.time);
  const { leaves, entered, taken, spent } = tally;
  return { leaves, leaf: before?.leaf, lastStep, entered, taken, spent };
}

/** Counts the entered states and taken transitions of one actor. */
class Tally {
  leaves = new Map<string, number>();
  readonly entered = new Map<string, number>();
  readonly taken = new Set<string>();
  readonly spent = new Map<string, number>();
  readonly #walker: Walker;

  constructor(walker: Walker) {
    this.#walker = walker;
  }

  spend(ms: number): void {
    for (const leaf of this.leaves.keys()) this.spent.set(leaf, (this.spent.get(leaf) ?? 0) + Math.max(0, ms));
  }

  applyMove({ legs, leaf, leaves = [leaf], time }: Move): void {
    const { states } = this.#walker.tree;
    // States that one microstep targets in several regions are entered together.
    let together: string[] = [];
    for (const [place, leg] of legs.entries()) {
      this.taken.add(leg.key);
      const target = states.get(leg.target);
      if (!target) continue;
      together.push(target.id);
      if (target.type === 'history') this.#count(target.id);
      const isLast = place === legs.length - 1;
      // An inferred transition counts as one whole microstep. For observed transitions, the last one of a microstep has its
      // leaves.
      const walked = leg.isPart ? undefined : innermostActive(target).map(({ id }) => id);
      const next = isLast ? leaves : (leg.leaves ?? walked);
      if (!next) continue;
      this.#enter(next, together, time);
      together = [];
    }
    if (legs.length === 0 || together.length > 0) this.#enter(leaves, together, time);
  }

  #enter(next: readonly string[], targets: readonly string[], time: number): void {
    const active = new Set([...this.leaves.keys()].flatMap((id) => this.#walker.lineage(id)));
    const lines = new Set(next.flatMap((id) => this.#walker.lineage(id)));
    for (const id of lines) if (!active.has(id)) this.#count(id);
    const entries = next.map((leaf): [string, number] => {
      const isAgain = this.leaves.has(leaf) && this.#walker.lineage(leaf).some((id) => targets.includes(id));
      if (isAgain) this.#count(leaf);
      return [leaf, isAgain ? time : (this.leaves.get(leaf) ?? time)];
    });
    this.leaves = new Map(entries);
  }

  #count(id: string): void {
    this.entered.set(id, (this.entered.get(id) ?? 0) + 1);
  }
}

/**
 * Returns true if both states are outside `active`, where a run cannot be cancelled. The end of a run is shown as one
 * path.
 */
const isOutside = (walker: Walker, from: string, to: string): boolean =>
  walker.lineage(from).length === 2 && walker.lineage(to).length === 2 && walker.chart.name === 'RUN';
