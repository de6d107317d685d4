/**
 * `runchart/schema`: the wire events and the log entries as zod schemas, for edges that want to refuse. Invariant: a
 * wire event is accepted in any backend's form, such as a message without kind. A log entry is accepted only in the
 * runtime's form. The projector is tolerant and does not use them.
 */
import { z } from 'zod';
import { type EntryKind, entryKinds, type Fields, type Shape } from '../machines/log/entryKinds.ts';
import { groupNames } from '../machines/tools/toolGroups.ts';
import type { AgentItem, Json, LogEntry, MessageKind, WireEvent } from '../machines/vocabulary.ts';
import { isJson } from './projector/collections.ts';

const json = z.custom<Json>(isJson, 'expected JSON, at most 512 levels deep');
const ordinal = z.int().nonnegative();

/** A wire event as any backend may send it. */
type SentEvent =
  | Exclude<WireEvent, { type: 'user-message' | 'agent-output' }>
  | (Omit<Extract<WireEvent, { type: 'user-message' }>, 'kind'> & { kind?: MessageKind })
  | { type: 'agent-output'; item: AgentItem | AgentItem[]; extra?: Json }
  | { type: 'agent-output'; items: AgentItem[] };

/** Schemas of single fields, by name, in place of those that the table gives. */
interface Replaced {
  readonly [name: string]: z.ZodType;
}

const schemasOf = (fields: Fields, replaced: Replaced): { [name: string]: z.ZodType } =>
  Object.fromEntries(
    Object.entries(fields).map(([name, { shape, isOptional }]) => {
      const schema = schemaOf(shape, replaced);
      return [name, replaced[name] ?? (isOptional ? schema.optional() : schema)];
    }),
  );

/** The schema of a form: it accepts exactly the values of its type. */
function schemaOf(shape: Shape, replaced: Replaced = {}): z.ZodType {
  switch (shape.kind) {
    case 'text':
    case 'words':
    case 'bytes':
      return z.string();
    case 'json':
      return json;
    case 'record':
      return z.record(z.string(), json);
    case 'flag':
      return z.boolean();
    case 'yes':
      return z.literal(true);
    case 'number':
      return z.number();
    case 'amount':
      return z.number().nonnegative();
    case 'ordinal':
      return ordinal;
    case 'position':
      return z.int().positive();
    case 'choice':
      return z.enum(shape.choices);
    case 'list':
      return z.array(schemaOf(shape.each, replaced));
    case 'nullable':
      return schemaOf(shape.value, replaced).nullable();
    case 'fields':
      return z.object(schemasOf(shape.fields, replaced));
    case 'oneOf':
      return z.union(shape.variants.map((fields) => z.strictObject(schemasOf(fields, replaced))));
    case 'tagged':
      return taggedUnion(shape.tag, shape.variants, replaced);
  }
}

const taggedUnion = (tag: string, variants: { readonly [value: string]: Fields }, replaced: Replaced = {}) => {
  const [first, ...others] = Object.entries(variants).map(([value, fields]) =>
    z.object({ [tag]: z.literal(value), ...schemasOf(fields, replaced) }),
  );
  return first ? z.discriminatedUnion(tag, [first, ...others]) : z.never();
};

const fieldsOf = (kind: EntryKind): Fields => entryKinds[kind].fields as Fields;
const eventOf = (kind: WireEvent['type'], replaced: Replaced = {}) =>
  z.object({ type: z.literal(kind), ...schemasOf(fieldsOf(kind), replaced) });

const { 'agent-output': output, 'user-message': message } = entryKinds;
/** A group of a later version must not cost the call. */
const item = schemaOf(output.fields.item.shape, { group: z.enum(groupNames).optional().catch(undefined) });

/** The four wire events. An `agent-output` may hold one `item` or several, under `item` or `items`. */
export const wireEventSchema = z.union([
  eventOf('user-message', { kind: schemaOf(message.fields.kind.shape).optional() }),
  eventOf('agent-output', { item: z.union([item, z.array(item)]) }),
  z.object({ type: z.literal('agent-output'), items: z.array(item) }),
  eventOf('tool-result'),
  eventOf('run-stop'),
]) as z.ZodType<SentEvent>;

const kinds = Object.keys(entryKinds) as EntryKind[];
/** An entry of a log, with its envelope. */
export const logEntrySchema = z.intersection(
  z.object({ seq: ordinal, at: z.number(), conversationId: z.string(), runId: z.string().nullable() }),
  taggedUnion('type', Object.fromEntries(kinds.map((kind) => [kind, fieldsOf(kind)]))),
) as unknown as z.ZodType<LogEntry>;
