import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallIndex, List } from '../../src/projector/collections.ts';
import type { ToolCallView } from '../../src/projector/view.ts';

/** One end, so that their hashes, which are of the last characters and the length, are the same. */
const colliding = (n: number): string => `${n}`.padStart(8, '0') + 'x'.repeat(32);

/** An index fed call by call, and the Map it stands for. */
function fed(ids: readonly string[], base?: CallIndex) {
  const index = new CallIndex(base);
  const model = new Map<string, number>();
  let calls = new List<ToolCallView>(1);
  const add = (callId: string) => {
    const isNew = index.set(calls, callId, calls.size);
    expect(isNew).toBe(!model.has(callId));
    model.set(callId, calls.size);
    calls = calls.push(1, { callId, name: 'n', args: null, state: 'waiting', result: null });
  };
  for (const id of ids) add(id);
  return { index, model, add, found: (id: string) => index.get(calls, id), calls: () => calls };
}

describe('index of calls', () => {
  it('finds what a Map would find: the newest call of each id, and none of the others', () => {
    const id = fc.oneof(
      fc.nat(500).map((n) => `c${n}`),
      fc.nat(400).map(colliding),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(id, { maxLength: 600 }), fc.array(id, { maxLength: 20 }), (ids, others) => {
        const { model, found } = fed(ids);
        for (const one of [...ids, ...others]) expect(found(one)).toBe(model.get(one));
      }),
      { numRuns: 60 },
    );
  });

  it('stays fast where ids were made to collide', () => {
    const ids = Array.from({ length: 50_000 }, (_, n) => colliding(n));
    const { found } = fed(ids);
    expect([found(ids[0] ?? ''), found(ids[49_999] ?? ''), found(colliding(50_000))]).toEqual([0, 49_999, undefined]);
  });

  it('a branch knows what it branched from and never writes into it', () => {
    const trunk = fed(['a', 'b', 'a']);
    const branch = new CallIndex(trunk.index);
    expect(branch.set(trunk.calls(), 'a', 3)).toBe(false);
    const grown = trunk.calls().push(2, { callId: 'a', name: 'n', args: null, state: 'waiting', result: null });
    expect(branch.set(grown, 'new', 4)).toBe(true);
    expect(['a', 'b', 'c'].map((id) => branch.get(grown, id))).toEqual([3, 1, undefined]);
    expect(['a', 'b', 'new'].map((id) => trunk.found(id))).toEqual([2, 1, undefined]);
  });
});
