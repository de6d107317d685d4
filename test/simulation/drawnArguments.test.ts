/** The arguments that a simulated life draws for a tool: numbers fit the schema at each of its limits. */
import { describe, expect, it } from 'vitest';
import { seeded } from '../../src/testing/simulation/choiceTape.ts';
import { drawArguments } from '../../src/testing/simulation/world/drawArguments.ts';

interface Limits {
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
}
const fits = (value: number, limits: Limits): boolean =>
  value >= (limits.minimum ?? value) &&
  value > (limits.exclusiveMinimum ?? value - 1) &&
  value <= (limits.maximum ?? value) &&
  value < (limits.exclusiveMaximum ?? value + 1) &&
  value % (limits.multipleOf ?? 1) === 0;
const numbersOf = (type: string, limits: Limits): number[] => {
  const tape = seeded(11);
  const schema = { type: 'object', properties: { n: { type, ...limits } }, required: ['n'] };
  return Array.from({ length: 300 }, () => (drawArguments(tape, schema) as { n: number }).n);
};

const LOWEST: readonly Limits[] = [{}, { minimum: 0 }, { minimum: 3 }, { exclusiveMinimum: 4 }, { minimum: -11 }];
const HIGHEST: readonly Limits[] = [{}, { maximum: 20 }, { maximum: 23 }, { exclusiveMaximum: 20 }, { maximum: 17 }];
const STEPS: readonly Limits[] = [{}, { multipleOf: 2 }, { multipleOf: 5 }];

describe.each(['integer', 'number'])('an argument of the type %s', (type) => {
  const all = LOWEST.flatMap((low) => HIGHEST.flatMap((high) => STEPS.map((step) => ({ ...low, ...high, ...step }))));
  it.each(all)('fits %j', (limits) => {
    expect(numbersOf(type, limits).filter((value) => !fits(value, limits))).toEqual([]);
  });

  it.each([
    [{ minimum: 3, maximum: 9 }, 3, 9],
    [{ exclusiveMinimum: 3, exclusiveMaximum: 9 }, 4, 8],
    [{ minimum: 3, maximum: 9, multipleOf: 2 }, 4, 8],
  ])('is drawn at both limits of %j: %i and %i', (limits, lowest, highest) => {
    const numbers = numbersOf(type, limits);
    expect([Math.min(...numbers), Math.max(...numbers)]).toEqual([lowest, highest]);
  });
});

describe('a number with limits that are no whole numbers', () => {
  it.each<Limits>([
    { exclusiveMinimum: 0, exclusiveMaximum: 1 },
    { minimum: 0.2, maximum: 0.8 },
    { minimum: 0.5, exclusiveMaximum: 1 },
    { exclusiveMinimum: 0.2, exclusiveMaximum: 1.5 },
    { minimum: 0.5, maximum: 0.5 },
    { exclusiveMinimum: 0.2 },
    { exclusiveMaximum: -0.3 },
    { minimum: 0, exclusiveMaximum: 1.5 },
    { minimum: 3, exclusiveMinimum: 3, maximum: 5 },
    { minimum: 1, maximum: 4, exclusiveMaximum: 4 },
  ])('fits %j', (limits) => {
    const wrong = numbersOf('number', limits).filter((value) => !fits(value, { ...limits, multipleOf: value || 1 }));
    expect(wrong).toEqual([]);
  });

  it('takes several values between limits with no whole number between them', () => {
    expect(new Set(numbersOf('number', { exclusiveMinimum: 0, exclusiveMaximum: 1 })).size).toBe(3);
  });
});
