/**
 * The lives that found defects of the library, as tapes. Invariant: the planted defect still fails on its tape, as `npm
 * run defects` checks. A change of the simulator requires new tapes. The tape of an `equipped` life also decides its
 * equipment.
 */
import { describe, expect, it } from 'vitest';
import { simulate } from './checkedLife.ts';
import { simulateEquipped } from './equipment/index.ts';
import regressions from './regressions.json' with { type: 'json' };

describe('a life that once broke an invariant', () => {
  it.each(regressions.map(({ about, invariant, ...life }) => [invariant, about, life] as const))(
    '%s: holds it now. %s',
    async (_invariant, _about, { tape, equipped }) => {
      const live = equipped ? simulateEquipped : simulate;
      const { violations, steps } = await live({ seed: 0, tape: tape.split(' ').map(Number) });
      expect(violations).toEqual([]);
      expect(steps).toBeGreaterThan(10);
    },
  );
});
