/** Arguments that a JSON Schema takes, drawn from the tape. Rule: the forms that tools use, and `null` for all others. */
import type { Json } from '../../../machines/index.ts';
import type { Tape } from './tape.ts';

type Schema = { [key: string]: Json };
const isSchema = (value: Json | undefined): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export function drawArguments(tape: Tape, schema: Json | undefined): Json {
  if (!isSchema(schema)) return null;
  const { type, properties, items, minimum, const: fixed } = schema;
  if (fixed !== undefined) return fixed;
  if (Array.isArray(schema.enum)) return tape.pick(schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(choices) && choices.length > 0) return drawArguments(tape, tape.pick(choices));
  switch (type) {
    case 'string':
      return `t${tape.next(3)}`;
    case 'number':
    case 'integer':
      return (typeof minimum === 'number' ? minimum : 0) + tape.next(3);
    case 'boolean':
      return tape.next(2) === 1;
    case 'array':
      return Array.from({ length: tape.next(3) }, () => drawArguments(tape, items));
    case 'object':
      return drawObject(tape, isSchema(properties) ? properties : {}, schema.required);
    default:
      return null;
  }
}

function drawObject(tape: Tape, properties: Schema, required: Json | undefined): Json {
  const needed = Array.isArray(required) ? required : [];
  const wanted = Object.entries(properties).filter(([key]) => needed.includes(key) || tape.next(2) === 1);
  return Object.fromEntries(wanted.map(([key, schema]) => [key, drawArguments(tape, schema)]));
}
