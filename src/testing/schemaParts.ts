/**
 * The parts of a JSON Schema from which test arguments are made. Invariant: the forms of draft 7 and of 2020-12 are
 * equal, because schema libraries write either.
 */
import type { Json } from '../../machines/internal.ts';

type Schema = { readonly [key: string]: Json };

const isObject = (value: Json | undefined): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
export const listIn = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);

/** Returns the schemas of a list's first items, and the schema of the others: `false` if there are no others. */
export function itemsOf({ items, prefixItems, additionalItems }: Schema): {
  first: readonly Json[];
  rest: Json | undefined;
} {
  if (Array.isArray(prefixItems)) return { first: prefixItems, rest: items };
  return Array.isArray(items) ? { first: items, rest: additionalItems } : { first: [], rest: items };
}

/** Returns the schemas of an object's properties by name, with those of required ones that are described for all names. */
export function propertiesOf({ properties, required, additionalProperties }: Schema): [name: string, schema: Json][] {
  const described = isObject(properties) ? Object.entries(properties) : [];
  const names = new Set(described.map(([name]) => name));
  const others = listIn(required).filter((name): name is string => typeof name === 'string' && !names.has(name));
  return [...described, ...others.map((name): [string, Json] => [name, additionalProperties ?? null])];
}

/** A part of a JSON pointer in the fragment of an address. */
function unescaped(token: string): string {
  const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

/** Returns the part of a schema that a reference such as `#/$defs/a` names. */
export function referred(root: Json | undefined, reference: string): Json | undefined {
  let place = root;
  for (const token of reference.split('/').slice(1)) {
    const key = unescaped(token);
    place = isObject(place) && Object.hasOwn(place, key) ? place[key] : undefined;
  }
  return place;
}

/** Values deeper than this are null. Only a schema without a finite value reaches this depth. */
export const DEPTH_MAX = 14;

/** Returns the choice that ends a value soonest: null or a scalar, else the first one. */
export function plainestChoice(choices: readonly Json[], resolved: (schema: Json) => Json | undefined): Json {
  const isOpen = (choice: Json): boolean => {
    const schema = resolved(choice);
    return isObject(schema) && !isScalar(schema);
  };
  return choices.find((choice) => !isOpen(choice)) ?? choices[0] ?? null;
}

const SCALARS: readonly Json[] = ['null', 'string', 'number', 'integer', 'boolean'];
const isScalar = ({ type, const: only, enum: list }: Schema): boolean =>
  only !== undefined || list !== undefined || SCALARS.includes(Array.isArray(type) ? (type[0] ?? null) : (type ?? ''));
