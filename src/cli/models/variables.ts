/** Variables in the texts of a setting: `${NAME}` and `${NAME:-default}`. */
import { isObject } from '../../validation.ts';

export interface ExpandedVariables {
  readonly value: unknown;
  /** Names of variables that are not set. */
  readonly missing: readonly string[];
  /** The values of the variables, which may be secrets. */
  readonly values: readonly string[];
}

/** Replaces the variables in every text of a value. */
export function expandVariables(input: unknown, variableOf: (name: string) => string | undefined): ExpandedVariables {
  const missing = new Set<string>();
  const values: string[] = [];
  const expand = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(expand);
    if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, expand(each)]));
    if (typeof value !== 'string') return value;
    return value.replace(/\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g, (_, name: string, other: string | undefined) => {
      const set = variableOf(name);
      const text = set || other;
      if (text === undefined) missing.add(name);
      if (set) values.push(set);
      return text ?? '';
    });
  };
  return { value: expand(input), missing: [...missing], values };
}
