/** The arguments that `agentPaths` and `simulate` make for the schemas of Zod: the schema itself accepts each of them. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool } from '../../src/index.ts';
import { argumentValues } from '../../src/testing/agentPaths/argumentValues.ts';
import { scriptedModel } from '../../src/testing/scriptedModel.ts';
import { seeded } from '../../src/testing/simulation/choiceTape.ts';
import { drawArguments } from '../../src/testing/simulation/world/drawArguments.ts';

function specOf(parameters: z.ZodType) {
  const tool = defineTool({ name: 'tool', description: 'd', parameters: parameters as never, execute: () => 'x' });
  const agent = createAgent({ model: scriptedModel([]), tools: [tool] }) as unknown as {
    profile: { toolbox: { specs: [{ parameters: never }] } };
  };
  return agent.profile.toolbox.specs[0].parameters;
}
/** JSON Schema as Zod writes it for tools, and in the current form. */
const formsOf = (schema: z.ZodType) => [specOf(schema), z.toJSONSchema(schema) as never];

function expectFit(schema: z.ZodType) {
  for (const form of formsOf(schema)) {
    const tape = seeded(3);
    const drawn = Array.from({ length: 100 }, () => drawArguments(tape, form));
    const generated = argumentValues(form);
    expect(generated.length).toBeGreaterThan(0);
    const wrong = [...generated, ...drawn].filter((value) => !schema.safeParse(value).success);
    expect([form, wrong]).toEqual([form, []]);
  }
}

const named = z.object({ x: z.string() }).meta({ id: 'shop/item' });

const tree = z.object({
  name: z.string(),
  get children() {
    return z.array(tree);
  },
});
const expression = z.object({
  get operands() {
    return z.union([z.number(), z.array(expression)]);
  },
});
const chain = z.object({
  value: z.number(),
  get next() {
    return chain.nullable();
  },
});
const wrapped = z.object({
  get value() {
    return z.union([z.string(), wrapped]);
  },
});
const wrappedFirst = z.object({
  get value() {
    return z.union([wrappedFirst, z.string()]);
  },
});
const nested = (levels: number): z.ZodType =>
  z.object(levels === 0 ? { n: z.number(), list: z.array(z.string()).min(1) } : { inner: nested(levels - 1) });

describe('the arguments for a schema of Zod', () => {
  it.each<[string, z.ZodType]>([
    ['a tuple', z.object({ at: z.tuple([z.string(), z.number().max(3)]) })],
    ['a tuple with a rest', z.object({ at: z.tuple([z.boolean()], z.number()) })],
    ['a tuple of tuples', z.object({ at: z.tuple([z.tuple([z.number(), z.number()]), z.enum(['a', 'b'])]) })],
    ['a record with known keys', z.object({ prices: z.record(z.enum(['tea', 'milk']), z.number()) })],
    ['a record with any keys', z.object({ prices: z.record(z.string(), z.number()) })],
    ['a schema whose name has a slash', z.object({ one: named, other: named })],
    ['a tree', z.object({ root: tree })],
    ['a tree that ends in values', z.object({ sum: z.array(expression).min(1) })],
    ['a chain', z.object({ first: chain })],
    ['a value that may be in itself, as the last choice', z.object({ one: wrapped })],
    ['a value that may be in itself, as the first choice', z.object({ one: wrappedFirst })],
    ['eight objects in each other', nested(8)],
  ])('%s fits', (_, schema) => expectFit(schema));

  const [one, two] = [{ const: 1 }, { const: 2 }];
  it.each<[object, number[][], number[][]]>([
    [{ prefixItems: [one], items: false }, [[1]], [[1]]],
    [{ items: [one], additionalItems: false }, [[1]], [[1]]],
    [{ prefixItems: [one] }, [[1]], [[1]]],
    [{ items: [one], additionalItems: two, maxItems: 1 }, [[1]], [[1]]],
    [{ items: [one], additionalItems: two }, [[1], [1, 2]], [[1], [1, 2]]],
    [
      { prefixItems: [one], items: two, minItems: 3, maxItems: 4 },
      [
        [1, 2, 2],
        [1, 2, 2, 2],
      ],
      [
        [1, 2, 2],
        [1, 2, 2, 2],
      ],
    ],
  ])('the lists of %j have the required items', (schema, generated, drawn) => {
    const parameters = { type: 'object', properties: { at: { type: 'array', ...schema } }, required: ['at'] } as never;
    const listOf = (value: unknown) => (value as { at: number[] }).at;
    expect(argumentValues(parameters).map(listOf)).toEqual(generated);
    const tape = seeded(5);
    const lists = new Set(Array.from({ length: 60 }, () => JSON.stringify(listOf(drawArguments(tape, parameters)))));
    expect([...lists].sort()).toEqual(drawn.map((list) => JSON.stringify(list)).sort());
  });

  it('each place of a tuple is varied', () => {
    const schema = z.object({ at: z.tuple([z.boolean(), z.enum(['a', 'b'])], z.literal(7)) });
    for (const form of formsOf(schema)) {
      const tuples = argumentValues(form).map((value) => (value as { at: unknown }).at);
      expect(tuples).toEqual([
        [true, 'a'],
        [false, 'a'],
        [true, 'b'],
        [true, 'a', 7],
      ]);
    }
  });
});
