/** The arguments that are generated for a tool keep the limits of its schema, each of which is reached. */
import { expect, it } from 'vitest';
import { argumentValues } from '../../src/testing/agentPaths/argumentValues.ts';

const LOWER = [undefined, 'minimum', 'exclusiveMinimum'] as const;
const UPPER = [undefined, 'maximum', 'exclusiveMaximum'] as const;
const RANGES = [
  [0, 10],
  [1, 4],
  [-8, -2],
  [250, 5_000],
  [-1_000_000, 3_000_000],
] as const;
type Limits = Partial<Record<'minimum' | 'exclusiveMinimum' | 'maximum' | 'exclusiveMaximum', number>>;

const valuesOf = (schema: object): unknown[] =>
  argumentValues({ type: 'object', properties: { n: schema as never }, required: ['n'] }).map(
    (value) => (value as { n: unknown }).n,
  );

/** By hand, as JSON Schema defines the words. */
const fits = (value: number, { minimum, exclusiveMinimum, maximum, exclusiveMaximum }: Limits): boolean =>
  (minimum === undefined || value >= minimum) &&
  (exclusiveMinimum === undefined || value > exclusiveMinimum) &&
  (maximum === undefined || value <= maximum) &&
  (exclusiveMaximum === undefined || value < exclusiveMaximum);

const TABLE = (['integer', 'number'] as const).flatMap((type) =>
  LOWER.flatMap((lower) => UPPER.map((upper) => ({ type, lower, upper }))),
);
it.each(TABLE)(
  'numbers of type $type with $lower and $upper fit the schema, up to its limits',
  ({ type, lower, upper }) => {
    for (const [least, most] of RANGES) {
      const limits: Limits = { ...(lower && { [lower]: least }), ...(upper && { [upper]: most }) };
      const values = valuesOf({ type, ...limits }) as number[];
      expect([limits, values.filter((value) => !fits(value, limits))]).toEqual([limits, []]);
      if (type === 'integer') expect(values.every(Number.isInteger)).toBe(true);
      const step = type === 'integer' ? 1 : 0.01;
      const near = (limit: number, isOpen: boolean): number => (isOpen ? step : 0) + Math.abs(limit) * 1e-9 + 1e-9;
      if (lower) expect(Math.min(...values)).toBeLessThanOrEqual(least + near(least, lower === 'exclusiveMinimum'));
      if (upper) expect(Math.max(...values)).toBeGreaterThanOrEqual(most - near(most, upper === 'exclusiveMaximum'));
    }
  },
);

it.each([
  [undefined, undefined],
  [0, 0],
  [1, 1],
  [3, undefined],
  [undefined, 5],
  [2, 80],
  [5_000, undefined],
])('texts of at least %s and at most %s characters have such a length, and the limits are reached', (least, most) => {
  const schema = {
    type: 'string',
    ...(least !== undefined && { minLength: least }),
    ...(most !== undefined && { maxLength: most }),
  };
  const lengths = valuesOf(schema).map((value) => String(value).length);
  expect(lengths.filter((length) => length < (least ?? 0) || length > (most ?? Number.POSITIVE_INFINITY))).toEqual([]);
  expect(Math.min(...lengths)).toBe(least ?? 0);
  if (most !== undefined) expect(Math.max(...lengths)).toBe(most);
});

it.each([
  [undefined, undefined],
  [1, 1],
  [2, 4],
  [0, 3],
  [5, undefined],
])('lists of at least %s and at most %s items have such a length', (least, most) => {
  const items = { type: 'integer', minimum: 1, maximum: 3 };
  const lists = valuesOf({
    type: 'array',
    items,
    ...(least !== undefined && { minItems: least }),
    ...(most !== undefined && { maxItems: most }),
  });
  for (const list of lists as number[][]) {
    expect(list.length).toBeGreaterThanOrEqual(least ?? 0);
    expect(list.length).toBeLessThanOrEqual(most ?? Number.POSITIVE_INFINITY);
    for (const item of list) expect(fits(item, items)).toBe(true);
  }
});

it.each([
  [{ type: 'integer', minimum: 0.5, maximum: 3.5 }, 1, 3],
  [{ type: 'integer', exclusiveMinimum: 2.5, exclusiveMaximum: 9.5 }, 3, 9],
  [{ type: 'integer', multipleOf: 5, minimum: 3, maximum: 22 }, 5, 20],
  [{ type: 'integer', multipleOf: 5, exclusiveMinimum: 5, exclusiveMaximum: 20 }, 10, 15],
  [{ type: 'integer', multipleOf: 5, exclusiveMinimum: -7, exclusiveMaximum: 7 }, -5, 5],
  [{ type: 'number', multipleOf: 0.25, minimum: 0.1, maximum: 1.1 }, 0.25, 1],
  [{ type: 'integer', multipleOf: 7 }, 0, 999_999],
])('numbers of %o are multiples, from %s to %s', (schema, least, most) => {
  const values = valuesOf(schema) as number[];
  const step = 'multipleOf' in schema ? schema.multipleOf : 1;
  expect(values.filter((value) => !Number.isInteger(value / step))).toEqual([]);
  expect([Math.min(...values), Math.max(...values)]).toEqual([least, most]);
});

const DURATIONS: readonly [name: string, limits: object, value: number][] = [
  ['timeoutMs', {}, 60_000],
  ['timeoutMs', { maximum: 1000 }, 1000],
  ['timeoutMs', { exclusiveMaximum: 1000 }, 999],
  ['timeoutMs', { minimum: 100_000 }, 100_000],
  ['timeoutMs', { multipleOf: 7 }, 60_004],
  ['timeoutMs', { multipleOf: 7, maximum: 60_003 }, 59_997],
  ['delay', {}, 1],
  ['delay', { minimum: 10 }, 10],
  ['delay', { exclusiveMinimum: 5 }, 6],
  ['delay', { minimum: 10, multipleOf: 7 }, 14],
];
it.each(DURATIONS)('a whole number %s of %o, which is a time, has the one value %s', (name, limits, value) => {
  const schema = { type: 'object', properties: { [name]: { type: 'integer', ...limits } }, required: [name] };
  expect(argumentValues(schema as never)).toEqual([{ [name]: value }]);
});
it.each<[string, object, number]>([
  ['delay', {}, 0.01],
  ['delay', { exclusiveMinimum: 5 }, 5.01],
  ['timeout', { exclusiveMaximum: 10 }, 9.99],
])('a number %s of %o, which is a time, has the one value %s', (name, limits, value) => {
  const schema = { type: 'object', properties: { [name]: { type: 'number', ...limits } }, required: [name] };
  expect(argumentValues(schema as never)).toEqual([{ [name]: value }]);
});

it('a definition is found by its name, whatever characters it has', () => {
  const definitions = { 'a/b': { const: 1 }, 'c~d': { const: 2 }, grüß: { const: 3 }, '100%': { const: 4 } };
  const references = ['#/$defs/a~1b', '#/$defs/c~0d', '#/$defs/gr%C3%BC%C3%9F', '#/$defs/grüß', '#/$defs/100%'];
  const found = references.map(($ref) => argumentValues({ $ref, $defs: definitions } as never));
  expect(found).toEqual([[1], [2], [3], [3], [4]]);
});
