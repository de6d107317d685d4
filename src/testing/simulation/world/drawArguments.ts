/**
 * Draws the arguments of a call from the tape by the tool's JSON Schema: plain ones, values at the schema's limits, and
 * values just beyond. Invariant: 0 on the tape is the plainest value. The caller's examples cover rules that a schema
 * cannot express, such as a custom check.
 */
import type { Json } from '../../../../machines/internal.ts';
import { DEPTH_MAX, itemsOf, listIn, plainestChoice, propertiesOf, referred } from '../../schemaParts.ts';
import type { Tape } from '../choiceTape.ts';

type Schema = { [key: string]: Json };
const isSchema = (value: Json | undefined): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const numberIn = (value: Json | undefined): number | undefined => (typeof value === 'number' ? value : undefined);

/** Deeper values are the plainest ones: one choice, required properties, and no more items than required. */
const DEEPEST = 6;
const LONGEST = 2_000;
const FORMATS: Readonly<Record<string, string>> = {
  email: 'a@example.org',
  uri: 'https://example.org/a',
  url: 'https://example.org/a',
  uuid: '9b2c8d1e-6f3a-4c57-8a1b-2d4e6f8a0c1e',
  date: '2024-02-29',
  time: '00:00:00Z',
  'date-time': '2024-02-29T00:00:00Z',
  ipv4: '127.0.0.1',
  ipv6: '::1',
  hostname: 'example.org',
};

class Drawing {
  readonly #tape: Tape;
  readonly #root: Json | undefined;

  constructor(tape: Tape, root: Json | undefined) {
    this.#tape = tape;
    this.#root = root;
  }

  value(unresolved: Json | undefined, depth = 0): Json {
    const schema = this.#resolved(unresolved);
    if (!isSchema(schema) || depth > DEPTH_MAX) return null;
    if (schema.const !== undefined) return schema.const;
    if (Array.isArray(schema.enum) && schema.enum.length > 0) return this.#tape.pick(schema.enum);
    const choices = listIn(schema.anyOf ?? schema.oneOf);
    if (choices.length > 0) {
      const isDeep = depth > DEEPEST;
      const choice = isDeep ? plainestChoice(choices, (one) => this.#resolved(one)) : this.#tape.pick(choices);
      return this.value(choice, depth + 1);
    }
    const type = Array.isArray(schema.type) ? this.#tape.pick(schema.type) : schema.type;
    switch (type ?? (schema.properties === undefined ? undefined : 'object')) {
      case 'string':
        return this.#text(schema);
      case 'number':
      case 'integer':
        return this.#number(schema, type === 'integer');
      case 'boolean':
        return this.#tape.next(2) === 1;
      case 'array':
        return this.#list(schema, depth);
      case 'object':
        return this.#object(schema, depth);
      default:
        return null;
    }
  }

  /** Returns the target of a reference, and the parts of `allOf` as one schema. */
  #resolved(schema: Json | undefined): Json | undefined {
    if (!isSchema(schema)) return schema;
    if (typeof schema.$ref === 'string') return this.#resolved(referred(this.#root, schema.$ref));
    const parts = listIn(schema.allOf).map((part) => this.#resolved(part));
    if (parts.length === 0) return schema;
    return parts.filter(isSchema).reduce(joined, { ...schema, allOf: [] });
  }

  #text({ format, minLength, maxLength }: Schema): Json {
    const formatted = typeof format === 'string' ? FORMATS[format] : undefined;
    if (formatted !== undefined) return formatted;
    const least = numberIn(minLength) ?? 0;
    const most = Math.min(numberIn(maxLength) ?? LONGEST, LONGEST);
    const plain = `t${this.#tape.next(3)}`;
    if (minLength === undefined && maxLength === undefined) return plain;
    const lengths = [Math.min(Math.max(plain.length, least), most), least, most];
    return plain.repeat(Math.ceil(most / plain.length) + 1).slice(0, this.#tape.pick(lengths));
  }

  #number(schema: Schema, isWhole: boolean): number {
    const step = numberIn(schema.multipleOf) ?? (isWhole ? 1 : 0);
    const unit = step > 0 ? step : 1;
    const above = numberIn(schema.exclusiveMinimum) ?? -Infinity;
    const below = numberIn(schema.exclusiveMaximum) ?? Infinity;
    const least = numberIn(schema.minimum) ?? -Infinity;
    const most = numberIn(schema.maximum) ?? Infinity;
    const lowest = stepWithin(Math.max(Math.ceil(least / unit), Math.floor(above / unit) + 1) * unit);
    const highest = stepWithin(Math.min(Math.floor(most / unit), Math.ceil(below / unit) - 1) * unit);
    if (lowest !== undefined && highest !== undefined && lowest > highest && step === 0)
      return this.#fraction(Math.max(least, above), Math.min(most, below));
    const base = lowest ?? Math.min(0, highest ?? 0);
    const wanted = base + this.#tape.next(3) * unit;
    const edges = [wanted, lowest, highest].filter((edge): edge is number => edge !== undefined);
    const drawn = edges.length > 1 ? this.#tape.pick(edges) : wanted;
    return Math.min(Math.max(drawn, lowest ?? drawn), highest ?? drawn);
  }

  /** Draws between two limits with no whole number between them. */
  #fraction(low: number, high: number): number {
    return low + (high - low) * this.#tape.pick([0.5, 0.25, 0.75]);
  }

  #list(schema: Schema, depth: number): Json {
    const { first, rest } = itemsOf(schema);
    const begins = first.map((item) => this.value(item, depth + 1));
    const least = numberIn(schema.minItems) ?? 0;
    const most = numberIn(schema.maxItems) ?? Math.max(2, least);
    const count = depth >= DEEPEST ? least : Math.min(most, least + this.#tape.next(3));
    // Most schema libraries mean a list without further items if they describe only the first ones.
    const isWhole = begins.length > 0 && !isSchema(rest);
    const others = Math.max(0, (isWhole ? least : count) - begins.length);
    return [...begins, ...Array.from({ length: others }, () => this.value(rest, depth + 1))];
  }

  #object(schema: Schema, depth: number): Json {
    const needed = listIn(schema.required);
    const wanted = propertiesOf(schema).filter(
      ([key]) => needed.includes(key) || (depth < DEEPEST && this.#tape.next(2) === 1),
    );
    return Object.fromEntries(wanted.map(([key, part]) => [key, this.value(part, depth + 1)]));
  }
}

/** A limit beyond the safe integers is none. */
const stepWithin = (limit: number): number | undefined =>
  Math.abs(limit) < Number.MAX_SAFE_INTEGER ? limit : undefined;

const joined = (one: Schema, other: Schema): Schema => ({
  ...one,
  ...other,
  ...(isSchema(one.properties) &&
    isSchema(other.properties) && { properties: { ...one.properties, ...other.properties } }),
  required: [...listIn(one.required), ...listIn(other.required)],
});

/** `examples`: the caller's arguments for the tool. Without any, only the schema is used. */
export function drawArguments(tape: Tape, schema: Json | undefined, examples: readonly Json[] = []): Json {
  if (examples.length > 0 && !tape.chance(0.3)) return tape.pick(examples);
  return new Drawing(tape, schema).value(schema);
}

/** Returns arguments that the schema should refuse: a required property is missing, or has another type. */
export function drawWrongArguments(tape: Tape, schema: Json | undefined): Json {
  const right = drawArguments(tape, schema);
  if (!isSchema(right)) return [right];
  const keys = Object.keys(right);
  if (keys.length === 0) return { nobody: 'knows this' };
  const key = tape.pick(keys);
  const { [key]: value, ...rest } = right;
  return tape.next(2) === 0 ? rest : { ...rest, [key]: typeof value === 'object' ? 5 : { not: [value ?? null] } };
}
