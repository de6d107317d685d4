/**
 * The JSON Schema of a tool's arguments as servers take it. Invariant: it allows all that the tool's own schema allows, which
 * checks the arguments.
 */
import type { Json } from '../../../machines/vocabulary.ts';
import { isRecord, type WireRecord } from './wireJson.ts';

const CHOICES = ['anyOf', 'oneOf', 'allOf'] as const;

const propertiesOf = ({ properties }: WireRecord): object => (isRecord(properties) ? properties : {});

/**
 * Servers refuse an object without `properties`, and a choice between schemas at the root, as tools of MCP servers have them.
 * The properties of a choice are kept.
 */
export function wireParameters(parameters: Json): Json {
  if (!isRecord(parameters) || parameters.type !== 'object') return parameters;
  if (isRecord(parameters.properties) && !CHOICES.some((name) => name in parameters)) return parameters;
  const { anyOf, oneOf, allOf, ...others }: { [field: string]: unknown } = parameters;
  const branches: unknown[] = [anyOf, oneOf, allOf].flat();
  const properties = Object.assign({}, ...branches.filter(isRecord).map(propertiesOf), propertiesOf(parameters));
  return { ...others, properties } as Json;
}
