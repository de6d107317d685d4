import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { List } from '../../src/projector/collections.ts';

type Op = { kind: 'push'; value: number } | { kind: 'replace'; at: number; value: number } | { kind: 'snapshot' };
const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('push' as const), value: fc.integer() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('replace' as const), at: fc.nat(), value: fc.integer() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('snapshot' as const) }) },
);
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

describe('persistent list', () => {
  it('it equals an array, and a snapshot never changes after a new owner has appended', () => {
    fc.assert(
      fc.property(fc.nat(2100), fc.array(op, { maxLength: 200 }), (start, ops) => {
        let owner = 1;
        let list = new List<number>(owner);
        const model: number[] = numbers(0, start);
        for (const value of model) list = list.push(owner, value);
        const snapshots: [List<number>, number[]][] = [];
        for (const step of ops) {
          if (step.kind === 'snapshot') {
            snapshots.push([list, [...model]]);
            owner++;
          } else if (step.kind === 'push') {
            model.push(step.value);
            list = list.push(owner, step.value);
          } else if (model.length > 0) {
            model[step.at % model.length] = step.value;
            list = list.replace(owner, step.at % model.length, step.value);
          }
        }
        expect(list.slice(0, list.size)).toEqual(model);
        for (const [snapshot, copy] of snapshots) expect(snapshot.slice(0, snapshot.size)).toEqual(copy);
      }),
      { numRuns: 60 },
    );
  });

  it('it grows by levels and finds every value again', () => {
    let list = new List<number>(1);
    for (let i = 0; i < 70_000; i++) list = list.push(1, i);
    const before = list;
    const after = list.replace(2, 33_333, -1).push(2, 70_000);
    expect(before.slice(0, before.size)).toEqual(numbers(0, 70_000));
    expect([after.size, after.at(33_333), after.at(33_334), after.at(70_000)]).toEqual([70_001, -1, 33_334, 70_000]);
  });
});
