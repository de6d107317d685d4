/**
 * Generates arguments for a tool from its JSON Schema: the plainest, the required keys only, and one key at a time at
 * its limits. Invariant: the user's examples come first and are the base for variations. The same schema gives the same
 * values.
 */
import { canonical, type Json } from '../../../machines/internal.ts';
import { DEPTH_MAX, itemsOf, listIn, plainestChoice, propertiesOf, referred } from '../schemaParts.ts';

type Schema = { readonly [key: string]: Json };
const isObject = (value: Json | undefined): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const numberIn = (value: Json | undefined): number | undefined => (typeof value === 'number' ? value : undefined);

const VALUES_MAX = 40;
/** Deeper values are the plainest ones: one choice, required properties, and no more items than required. */
const DEEPEST = 4;
const LONG = 2_000;
/** The search range for a number without bounds. */
const FAR = 1_000_000;
const ODD_TEXT = 'it\'s "quoted"\nand {goes} on; $HOME <b>';
const FORMATS: Readonly<Record<string, string>> = {
  ...{ email: 'a@example.org', uri: 'https://example.org/a', url: 'https://example.org/a', hostname: 'example.org' },
  ...{ uuid: '9b2c8d1e-6f3a-4c57-8a1b-2d4e6f8a0c1e', date: '2024-02-29', time: '00:00:00Z', ipv4: '127.0.0.1' },
  ...{ 'date-time': '2024-02-29T00:00:00Z', ipv6: '::1' },
};

class Variants {
  readonly #root: Json;

  constructor(root: Json) {
    this.#root = root;
  }

  /** Returns the plainest value first. */
  of(unresolved: Json | undefined, depth = 0, name = ''): Json[] {
    const schema = this.#resolved(unresolved);
    if (!isObject(schema) || depth > DEPTH_MAX) return [null];
    const variants = this.#variants(schema, depth, name);
    return depth > DEEPEST ? variants.slice(0, 1) : variants;
  }

  #variants(schema: Schema, depth: number, name: string): Json[] {
    if (schema.const !== undefined) return [schema.const];
    if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum;
    const choices = listIn(schema.anyOf ?? schema.oneOf);
    if (choices.length > 0 && depth > DEEPEST)
      return this.of(
        plainestChoice(choices, (choice) => this.#resolved(choice)),
        depth + 1,
        name,
      );
    if (choices.length > 0) return choices.flatMap((choice) => this.of(choice, depth + 1, name));
    const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
    switch (type ?? (schema.properties === undefined ? undefined : 'object')) {
      case 'string':
        return texts(schema);
      case 'number':
      case 'integer':
        return isTime(name, schema) ? [timeIn(name, schema, type === 'integer')] : numbers(schema, type === 'integer');
      case 'boolean':
        return [true, false];
      case 'array':
        return this.#lists(schema, depth);
      case 'object':
        return this.#objects(schema, depth);
      default:
        return [null];
    }
  }

  #resolved(schema: Json | undefined): Json | undefined {
    if (!isObject(schema)) return schema;
    if (typeof schema.$ref === 'string') return this.#resolved(referred(this.#root, schema.$ref));
    const parts = listIn(schema.allOf).map((part) => this.#resolved(part));
    return parts.filter(isObject).reduce(joined, parts.length > 0 ? { ...schema, allOf: [] } : schema);
  }

  #lists(schema: Schema, depth: number): Json[] {
    const { first, rest } = itemsOf(schema);
    if (first.length > 0) return this.#tuples(schema, depth);
    const { minItems, maxItems } = schema;
    const least = numberIn(minItems) ?? 0;
    if (depth >= DEEPEST && least === 0) return [[]];
    const each = this.of(rest, depth + 1);
    const most = Math.min(numberIn(maxItems) ?? Math.max(3, least), 50);
    const filled = (count: number, from = 0): Json[] =>
      Array.from({ length: count }, (_, index) => each[(from + index) % each.length] ?? null);
    const usual = depth >= DEEPEST ? least : Math.max(least, Math.min(1, most));
    return [filled(usual), ...each.slice(1).map((_, at) => filled(usual, at + 1)), filled(least), filled(most)];
  }

  /** Varies one place at a time, and then adds one item of the rest. */
  #tuples(schema: Schema, depth: number): Json[] {
    const { first, rest } = itemsOf(schema);
    const places = first.map((item) => this.of(item, depth + 1));
    const others = isObject(rest) ? this.of(rest, depth + 1) : [];
    const [other = null] = others;
    const missing = Math.max(0, (numberIn(schema.minItems) ?? 0) - first.length);
    const plain = [...places.map(([value = null]) => value), ...Array.from({ length: missing }, () => other)];
    const changed = places.flatMap((values, place) =>
      values.slice(1).map((value) => plain.map((one, index) => (index === place ? value : one))),
    );
    const hasRoom = plain.length < (numberIn(schema.maxItems) ?? Number.POSITIVE_INFINITY);
    return [plain, ...changed, ...(hasRoom ? others.map((value) => [...plain, value]) : [])];
  }

  #objects(schema: Schema, depth: number): Json[] {
    const needed = new Set(listIn(schema.required));
    const used = propertiesOf(schema).filter(([key]) => depth <= DEEPEST || needed.has(key));
    const variants = used.map(([key, part]) => [key, this.of(part, depth + 1, key)] as const);
    const plain = (keys: typeof variants): { [key: string]: Json } =>
      Object.fromEntries(keys.map(([key, [first = null]]) => [key, first]));
    const least = plain(variants.filter(([key]) => needed.has(key)));
    return [least, plain(variants), ...varied(least, variants)];
  }
}

const joined = (one: { [key: string]: Json }, other: { [key: string]: Json }): { [key: string]: Json } => ({
  ...one,
  ...other,
  ...(isObject(one.properties) &&
    isObject(other.properties) && { properties: { ...one.properties, ...other.properties } }),
  required: [...listIn(one.required), ...listIn(other.required)],
});

/** Varies one key at a time. */
const varied = (base: { [key: string]: Json }, variants: readonly (readonly [string, Json[]])[]): Json[] =>
  variants.flatMap(([key, values]) => values.map((value) => ({ ...base, [key]: value })));

function texts({ format, minLength, maxLength, pattern }: Schema): Json[] {
  const formatted = typeof format === 'string' ? FORMATS[format] : undefined;
  if (formatted !== undefined) return [formatted];
  const least = numberIn(minLength) ?? 0;
  const most = numberIn(maxLength) ?? Math.max(LONG, least);
  const sized = (text: string): string => text.padEnd(least, text || 'x').slice(0, most);
  const plain = sized('sample');
  if (pattern !== undefined) return [plain];
  return [plain, ''.padEnd(least, 'x'), 'x'.repeat(Math.min(most, Math.max(LONG, least))), sized(ODD_TEXT)];
}

/** Returns the smallest difference between two values. */
export const stepOf = ({ multipleOf, type }: Schema): number => numberIn(multipleOf) ?? (type === 'integer' ? 1 : 0.01);

interface Limits {
  readonly step: number;
  /** Only multiples of the step are allowed. */
  readonly isGrid: boolean;
  /** The least and the greatest allowed value. */
  readonly least: number | undefined;
  readonly most: number | undefined;
}

/** Returns the allowed value at a limit, or next to it: `up` is 1 for a lower limit and -1 for an upper one. */
function nextTo(
  limit: number,
  up: 1 | -1,
  { step, isGrid, isOpen }: Pick<Limits, 'step' | 'isGrid'> & { isOpen: boolean },
): number {
  if (!isGrid) return isOpen ? rounded(limit + up * step) : limit;
  const nearest = rounded(up * Math.ceil(rounded((up * limit) / step)) * step);
  return isOpen && nearest === limit ? rounded(limit + up * step) : nearest;
}

function limitsOf(schema: Schema, isWhole: boolean): Limits {
  const step = stepOf({ ...schema, type: isWhole ? 'integer' : 'number' });
  const isGrid = isWhole || numberIn(schema.multipleOf) !== undefined;
  const at = (limit: Json | undefined, up: 1 | -1, isOpen: boolean): number | undefined => {
    const bound = numberIn(limit);
    const isNone = bound === undefined || Math.abs(bound) >= Number.MAX_SAFE_INTEGER;
    return isNone ? undefined : nextTo(bound, up, { step, isGrid, isOpen });
  };
  const least = at(schema.minimum, 1, false) ?? at(schema.exclusiveMinimum, 1, true);
  const most = at(schema.maximum, -1, false) ?? at(schema.exclusiveMaximum, -1, true);
  return { step, isGrid, least, most };
}

function numbers(schema: Schema, isWhole: boolean): Json[] {
  const limits = limitsOf(schema, isWhole);
  const { step, isGrid, least, most } = limits;
  const first = least ?? Math.min(0, most ?? 0);
  const last = most ?? Math.max(nextTo(FAR, -1, { ...limits, isOpen: false }), first * 10);
  const isAllowed = (value: number): boolean => !isGrid || isMultiple(value, step);
  const inner = [first + step, last - step, 1, 10, 1000].filter((value) => value > first && value < last);
  const outer = least === undefined && last > -1 ? [-1] : [];
  return [first, last, ...inner.filter(isAllowed), ...outer.filter(isAllowed)].map(rounded);
}

const isMultiple = (value: number, step: number): boolean => Number.isInteger(rounded(value / step));

const TIME =
  /(?<![a-z])(ms|millis(econds)?|secs?|seconds|minutes|timeouts?|delay|wait|sleep|pause|interval|duration)(?![a-z])/i;
/** Returns true for a number that is a duration, by its name (`timeoutMs`, `delay_seconds`) or its description. */
function isTime(name: string, { description }: Schema): boolean {
  const words = name.replace(/([a-z0-9])([A-Z])/g, '$1 $2').replaceAll('_', ' ');
  return TIME.test(words) || (typeof description === 'string' && /\b(milliseconds|timeout)\b/i.test(description));
}

const LIMIT_MS = 60_000;
/**
 * Returns a limit that no tool reaches, or a short wait. Other durations would test the machine rather than the tool.
 */
function timeIn(name: string, schema: Schema, isWhole: boolean): number {
  const limits = limitsOf(schema, isWhole);
  const { step, least = 0, most = Number.MAX_SAFE_INTEGER } = limits;
  const isLimit = /timeout|limit|max|deadline/i.test(`${name} ${String(schema.description ?? '')}`);
  const wanted = Math.max(isLimit ? LIMIT_MS : step, least);
  return Math.min(nextTo(wanted, 1, { ...limits, isOpen: false }), most);
}

/** Without the sign of zero. */
const rounded = (value: number): number => Math.round(value * 1e6) / 1e6 + 0;

/** Returns a limited number of distinct values, the examples first. */
export function argumentValues(schema: Json, examples: readonly Json[] = []): Json[] {
  const own = new Variants(schema).of(schema);
  const [base] = examples;
  const keys = isObject(schema) && isObject(schema.properties) ? Object.entries(schema.properties) : [];
  const variants = keys.map(([key, part]) => [key, new Variants(schema).of(part, 0, key)] as const);
  const around = isObject(base) ? varied(base, variants) : [];
  const all = [...examples, ...own.slice(0, 2), ...around, ...(around.length > 0 ? [] : own)];
  const seen = new Set<string>();
  const once = all.filter((value) => !seen.has(canonical(value)) && seen.add(canonical(value)));
  return once.slice(0, VALUES_MAX);
}

const ANSWERS_MAX = 6;
/** Returns values for the final answer, from the JSON Schema in a request's system text, or none without a schema. */
export function answerValues(system: string): Json[] {
  const [, text] = /final answer as JSON that fits this JSON Schema[^\n]*\n(.*)/.exec(system) ?? [];
  if (text === undefined) return [];
  const schema: Json = JSON.parse(text);
  return new Variants(schema).of(schema).slice(0, ANSWERS_MAX);
}

/** Returns arguments without one required key, or undefined if no key is required. */
export function incomplete(schema: Json, base: Json | undefined): Json | undefined {
  const [key] = isObject(schema) ? listIn(schema.required) : [];
  if (typeof key !== 'string' || !isObject(base) || !(key in base)) return undefined;
  const { [key]: _, ...rest } = base;
  return rest;
}

/** Returns each numeric key with its step. */
export function numberKeys(schema: Json): (readonly [key: string, step: number])[] {
  const properties = isObject(schema) && isObject(schema.properties) ? Object.entries(schema.properties) : [];
  return properties.flatMap(([key, part]) =>
    isObject(part) && (part.type === 'number' || part.type === 'integer') && !isTime(key, part)
      ? [[key, stepOf(part)] as const]
      : [],
  );
}
