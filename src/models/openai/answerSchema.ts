/** The JSON Schema of a final answer in the form of both APIs of OpenAI. */
import type { Json } from '../../../machines/vocabulary.ts';
import type { ModelRequest } from '../model.ts';
import { isRecord } from '../wire/wireJson.ts';

const LISTS = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];
const TABLES = ['properties', '$defs', 'definitions'];

/** Strict mode takes a schema whose objects require every property and allow no other. Any other schema is a 400 there. */
function isStrict(schema: unknown): boolean {
  if (!isRecord(schema)) return true;
  const { properties, required, additionalProperties, items } = schema;
  if (isRecord(properties) || schema.type === 'object') {
    const names = Object.keys(isRecord(properties) ? properties : {});
    if (additionalProperties !== false) return false;
    if (!names.every((name) => Array.isArray(required) && required.includes(name))) return false;
  }
  const inTables = TABLES.flatMap((key) => (isRecord(schema[key]) ? Object.values(schema[key]) : []));
  const inLists = LISTS.flatMap((key) => (Array.isArray(schema[key]) ? schema[key] : []));
  return [items, ...inTables, ...inLists].every(isStrict);
}

export const namedSchema = ({ name, schema }: NonNullable<ModelRequest['output']>): { [field: string]: Json } => ({
  name,
  schema,
  strict: isStrict(schema),
});
