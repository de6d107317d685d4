/**
 * What an option takes: the words of its refusal and the test behind them. Rule: options are given from outside, in
 * languages without types too; each is looked at before it is used, and a refusal never quotes a credential.
 */
import { ConfigurationError } from './errors.ts';

export interface Form {
  /** Behind "must be". */
  wanted: string;
  takes(value: unknown): boolean;
  /** What came may be a credential, or hold one: it is not quoted. */
  secret?: true;
}
export type Forms = ReadonlyMap<string, Form>;

export const isList = (value: unknown): value is unknown[] => Array.isArray(value);
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !isList(value);
const isFunction = (value: unknown): boolean => typeof value === 'function';

/** Its methods by these names are there, its own or its class's. */
export const withMethods = (value: unknown, ...names: string[]): boolean =>
  names.every((name) => isFunction((value as Record<string, unknown> | null | undefined)?.[name]));

export const flag: Form = { wanted: 'true or false', takes: (value) => typeof value === 'boolean' };
export const callback: Form = { wanted: 'a function', takes: isFunction };
export const text: Form = { wanted: 'a string', takes: (value) => typeof value === 'string' };
export const word: Form = {
  wanted: 'a string that is not empty',
  takes: (value) => typeof value === 'string' && value !== '',
};
export const choice = (...choices: string[]): Form => ({
  wanted: `one of ${choices.map((each) => `"${each}"`).join(', ')}`,
  takes: (value) => choices.includes(value as string),
});
export const number = (least: number): Form => ({
  wanted: `a number of at least ${least}`,
  takes: (value) => typeof value === 'number' && Number.isFinite(value) && value >= least,
});
/** Also without an end. */
export const span = (least: number): Form => ({
  wanted: `a number of at least ${least}, or Infinity`,
  takes: (value) => typeof value === 'number' && value >= least,
});

const SHOWN_MAX = 200;
/** What came, in a line: JSON where it is more than a number. */
export function shown(value: unknown, secret = false): string {
  const isPlainSight = !secret || typeof value === 'number' || value === null;
  if (!isPlainSight) return isList(value) ? 'a list' : `a value of type ${typeof value}`;
  try {
    const said = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value));
    return said.length > SHOWN_MAX ? `${said.slice(0, SHOWN_MAX)}…` : said;
  } catch {
    return typeof value;
  }
}
export const impossible = (name: string, { wanted, secret }: Omit<Form, 'takes'>, value: unknown): ConfigurationError =>
  new ConfigurationError(`${name} must be ${wanted}, got ${shown(value, secret)}`);

/** Throws ConfigurationError where it is no object. */
export function checkObject(name: string, given: unknown): asserts given is object {
  if (!isObject(given)) throw impossible(name, { wanted: 'an object', secret: true }, given);
}

/** Looks at the options that have a form; what is undefined was not given. Throws ConfigurationError. */
export function checkValues(prefix: string, given: object, forms: Forms): void {
  for (const [key, form] of forms) {
    const value = (given as Record<string, unknown>)[key];
    if (value !== undefined && !form.takes(value)) throw impossible(`${prefix}${key}`, form, value);
  }
}

/** Throws ConfigurationError for a key that nobody knows: a slip of the pen would count for nothing. */
export function checkKeys(prefix: string, given: object, known: readonly string[]): void {
  const stray = Object.keys(given).find((key) => !known.includes(key));
  if (stray !== undefined) {
    throw new ConfigurationError(`${prefix}${stray} is unknown; known are ${known.join(', ')}`);
  }
}

/** The options of a call, all of which have a form. Throws ConfigurationError. */
export function checkOptionsOf(call: string, given: unknown, forms: Forms): void {
  checkObject(`the options of ${call}`, given);
  checkKeys(`${call}: the option `, given, [...forms.keys()]);
  checkValues(`${call}: `, given, forms);
}

/** Not an instance of a class, which may hold whatever it needs. */
export function isLiteral(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
