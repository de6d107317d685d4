/**
 * Validates external values by declarations. A declaration contains the expectation in words and as a test. Invariant:
 * options may come from untyped code, so each is checked before its use. An unknown key is refused by name, and no
 * refusal quotes a credential.
 */
import { ConfigurationError } from './errors.ts';

export interface Validator {
  /** The words after "must be". */
  expected: string;
  test(value: unknown): boolean;
  /** The value may be or contain a credential, so it is not quoted. */
  secret?: true;
  /** Of an object. */
  fields?: Fields;
  defaults?: object;
  /** Returns true to refuse an undeclared field with this value. Without it every undeclared field is refused. */
  refuses?(value: unknown, owner: object): boolean;
}
export type Fields = { readonly [name: string]: Validator };
type AnyFields = { readonly [name: string]: unknown };

export const isList = (value: unknown): value is unknown[] => Array.isArray(value);
export const isObject = (value: unknown): value is AnyFields =>
  typeof value === 'object' && value !== null && !isList(value);
const isText = (value: unknown): value is string => typeof value === 'string';
const isFunction = (value: unknown): boolean => typeof value === 'function';

/**
 * Returns true unless the object is an instance of a class. Objects of another realm count too, because their prototype
 * is a root.
 */
export function isLiteral(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Its methods by these names are there, its own or its class's. */
export const hasMethods = (value: unknown, ...names: string[]): boolean =>
  names.every((name) => isFunction((value as AnyFields | null | undefined)?.[name]));

/** The value is checked elsewhere. */
export const anything: Validator = { expected: 'anything', test: () => true };
export const flag: Validator = { expected: 'true or false', test: (value) => typeof value === 'boolean' };
export const callback: Validator = { expected: 'a function', test: isFunction };
export const text: Validator = { expected: 'a string', test: isText };
export const nonEmptyText: Validator = {
  expected: 'a string that is not empty',
  test: (value) => isText(value) && value !== '',
};
export const choice = (...choices: string[]): Validator => ({
  expected: `one of ${choices.map((each) => `"${each}"`).join(', ')}`,
  test: (value) => choices.includes(value as string),
});
export const number = (least: number): Validator => ({
  expected: `a number of at least ${least}`,
  test: (value) => Number.isFinite(value) && (value as number) >= least,
});
/** Without a JSON Schema the model cannot receive the form of its answer. A library that makes none at all is allowed. */
function isDescribed(standard: { jsonSchema?: { input(target: { target: string }): unknown } }): boolean {
  try {
    standard.jsonSchema?.input({ target: 'draft-07' });
    return true;
  } catch {
    return false;
  }
}
export const standardSchema: Validator = {
  expected: 'a Standard Schema that can be written as JSON Schema',
  test: (value) => {
    const standard = (value as AnyFields | null | undefined)?.['~standard'];
    return hasMethods(standard, 'validate') && isDescribed(standard as object);
  },
};
/** A number, or Infinity. */
export const numberOrInfinity = (least: number): Validator => ({
  expected: `a number of at least ${least}, or Infinity`,
  test: (value) => typeof value === 'number' && value >= least,
});
export const whole = (least: number): Validator => ({
  expected: `a whole number of at least ${least}`,
  test: (value) => Number.isSafeInteger(value) && (value as number) >= least,
});
export const list = (of: string, test: (each: unknown) => boolean = () => true): Validator => ({
  expected: `a list of ${of}`,
  test: (value) => isList(value) && [...value].every(test),
  secret: true,
});
export const strings: Validator = /* @__PURE__ */ list('strings', isText);
export const orFalse = (validator: Validator): Validator => ({
  ...validator,
  expected: `false or ${validator.expected}`,
  test: (value) => value === false || validator.test(value),
});
export const object = (fields: Fields, more: Pick<Validator, 'defaults' | 'refuses'> = {}): Validator => ({
  ...{ expected: 'an object', test: isObject, secret: true, fields },
  ...more,
});

const SHOWN_MAX = 200;
/** Returns the received value on one line, as JSON if it is not a number. */
export function display(value: unknown, secret = false): string {
  const isPlainSight = !secret || typeof value === 'number' || typeof value === 'boolean' || value === null;
  if (!isPlainSight) return isList(value) ? 'a list' : `a value of type ${typeof value}`;
  try {
    const shown = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value));
    // Without half of a character at the end.
    return shown.length > SHOWN_MAX ? `${shown.slice(0, SHOWN_MAX).replace(/[\ud800-\udbff]$/, '')}…` : shown;
  } catch {
    return typeof value;
  }
}
export const invalidOption = (
  name: string,
  { expected, secret }: Omit<Validator, 'test'>,
  value: unknown,
): ConfigurationError => new ConfigurationError(`${name} must be ${expected}, got ${display(value, secret)}`);

/**
 * Returns the given object over the defaults of its validator. Undefined fields count as absent. `prefix` precedes the
 * name of a field, and `unknown` precedes an unknown one. Throws ConfigurationError.
 */
export function check(
  name: string,
  input: unknown,
  validator: Validator,
  prefix = `${name}.`,
  unknown = prefix,
): unknown {
  const { fields, defaults, refuses = () => true } = validator;
  if (!validator.test(input)) throw invalidOption(name, validator, input);
  // A copy, so that the checked value cannot change.
  if (isList(input)) return [...input];
  if (!fields || !isObject(input)) return input;
  const fieldNames = Object.keys(fields);
  // A misspelt key would have no effect.
  const stray = Object.keys(input).find((key) => !fieldNames.includes(key) && refuses(input[key], input));
  if (stray !== undefined) {
    throw new ConfigurationError(`${unknown}${stray} is unknown; known are ${fieldNames.join(', ')}`);
  }
  const checked: { [name: string]: unknown } = { ...defaults };
  for (const [key, field] of Object.entries(fields)) {
    const value = input[key];
    if (value !== undefined) checked[key] = check(`${prefix}${key}`, value, field);
  }
  return checked;
}

/** The options of a call. Throws ConfigurationError. */
export const checkOptionsOf = (call: string, options: unknown, validator: Validator): unknown =>
  check(`the options of ${call}`, options, validator, `${call}: `, `${call}: the option `);

/** Places in a log are counts of entries from the front. Throws ConfigurationError for one below `least`. */
export function checkPlace(until: unknown, least: number): void {
  const { expected, test } = whole(least);
  if (until === undefined || test(until)) return;
  throw new ConfigurationError(
    `until counts entries: expected ${expected}, got ${isText(until) ? display(until) : String(until)}; leave it out for all`,
  );
}
