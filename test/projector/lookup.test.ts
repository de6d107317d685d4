import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Lookup } from '../../src/projector/collections.ts';

const ids = fc.array(fc.oneof(fc.constantFrom('a', 'b', '__proto__', 'constructor'), fc.string()), { maxLength: 60 });

/** A lookup that grows id by id, compared with a Map. */
function fed(keys: readonly string[], base?: { lookup: Lookup<string>; model: ReadonlyMap<string, number> }) {
  const lookup = new Lookup(base?.lookup);
  const model = new Map(base?.model);
  keys.forEach((id, place) => {
    expect(lookup.set(id, place)).toBe(!model.has(id));
    model.set(id, place);
  });
  return { lookup, model };
}

describe('numbers by key', () => {
  it('they equal a Map: the newest of each key', () => {
    fc.assert(
      fc.property(ids, ids, (keys, others) => {
        const { lookup, model } = fed(keys);
        for (const id of [...keys, ...others]) expect(lookup.get(id)).toBe(model.get(id));
      }),
    );
  });

  it('a branch contains its source and never writes into it', () => {
    fc.assert(
      fc.property(ids, ids, (keys, later) => {
        const trunk = fed(keys);
        const branch = fed(later, trunk);
        for (const id of [...keys, ...later]) {
          expect(branch.lookup.get(id)).toBe(branch.model.get(id));
          expect(trunk.lookup.get(id)).toBe(trunk.model.get(id));
        }
      }),
    );
  });
});
