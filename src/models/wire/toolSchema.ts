/**
 * The JSON Schema of a tool's arguments as servers accept it. Invariant: it allows everything that the tool's own schema allows.
 * Only the tool's own schema validates the arguments.
 */
import type { Json } from '../../../machines/vocabulary.ts';
import { isRecord, type WireRecord } from './wireJson.ts';

const CHOICES = ['anyOf', 'oneOf', 'allOf'] as const;

const propertiesOf = ({ properties }: WireRecord): WireRecord => (isRecord(properties) ? properties : {});

/** A property that several branches describe differently, such as the kind of each, accepts every description. */
function mergedProperties(branches: readonly WireRecord[]): WireRecord {
  const described = new Map<string, Map<string, unknown>>();
  for (const [name, schema] of branches.flatMap((branch) => Object.entries(propertiesOf(branch)))) {
    const descriptions = described.get(name) ?? new Map<string, unknown>();
    described.set(name, descriptions.set(JSON.stringify(schema), schema));
  }
  const merged = [...described].map(([name, descriptions]): [string, unknown] => {
    const [first, ...others] = descriptions.values();
    return [name, others.length === 0 ? first : { anyOf: [first, ...others] }];
  });
  return Object.fromEntries(merged);
}

/**
 * Servers refuse an object without `properties`, and a choice between schemas at the root. Tools of MCP servers have both. The
 * properties of a choice stay.
 */
export function wireParameters(parameters: Json): Json {
  if (!isRecord(parameters) || parameters.type !== 'object') return parameters;
  if (isRecord(parameters.properties) && !CHOICES.some((name) => name in parameters)) return parameters;
  const { anyOf, oneOf, allOf, ...others }: { [field: string]: unknown } = parameters;
  const branches: unknown[] = [anyOf, oneOf, allOf].flat();
  const properties = { ...mergedProperties(branches.filter(isRecord)), ...propertiesOf(parameters) };
  return { ...others, properties } as Json;
}
