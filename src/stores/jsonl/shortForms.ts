/**
 * What a line writes shorter than its entry has it. Rule: a short form has a field of its own, in
 * the place of the long one, and stands for exactly one long form, so whatever an entry holds comes back as it was; what
 * has no short form is written as it is.
 */
export type StoredRecord = { [key: string]: unknown };

const COUNTS = ['inputTokens', 'outputTokens', 'cachedInputTokens', 'cacheWriteTokens', 'reasoningTokens'] as const;

interface ShortForm {
  readonly of: string;
  readonly as: string;
  /** Nothing where it has none. `start`: what the key of a call of this record begins with. */
  shorten(long: unknown, start: string): unknown;
  lengthen(short: unknown, start: string): unknown;
}

/** Token counts in their order, without the zeros at the end. */
const usage: ShortForm = {
  of: 'usage',
  as: 'tokens',
  shorten(long) {
    if (!isObject(long) || Object.keys(long).length !== COUNTS.length) return undefined;
    const counts = COUNTS.map((name) => long[name]);
    if (!counts.every(Number.isFinite)) return undefined;
    while (counts.at(-1) === 0) counts.pop();
    return counts;
  },
  lengthen: (short) =>
    Array.isArray(short) ? Object.fromEntries(COUNTS.map((name, index) => [name, short[index] ?? 0])) : undefined,
};

/** A single text is that text. */
const content: ShortForm = {
  of: 'content',
  as: 'onlyText',
  shorten(long) {
    const [part, more] = Array.isArray(long) ? long : [];
    if (more !== undefined || !isObject(part) || part.type !== 'text' || typeof part.text !== 'string')
      return undefined;
    return Object.keys(part).length === 2 ? part.text : undefined;
  },
  lengthen: (text) => (typeof text === 'string' ? [{ type: 'text', text }] : undefined),
};

/** The key of a call is its conversation, its id and how often it was suspended; the last of these is enough. */
const key: ShortForm = {
  of: 'idempotencyKey',
  as: 'suspensions',
  shorten(long, start) {
    if (typeof long !== 'string' || !long.startsWith(start)) return undefined;
    const suspensions = long.slice(start.length);
    return /^(?:0|[1-9]\d{0,8})$/.test(suspensions) ? Number(suspensions) : undefined;
  },
  lengthen: (short, start) => (typeof short === 'number' ? `${start}${short}` : undefined),
};

const FORMS: ReadonlyMap<unknown, ShortForm> = new Map([
  ['model-reply', usage],
  ['user-message', content],
  ['tool-result', content],
  ['tool-started', key],
]);

const isObject = (value: unknown): value is StoredRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const startOf = ({ callId }: StoredRecord, conversationId: string): string => `${conversationId}/${callId}/`;

/** The entry's own fields as its line has them. */
export function shortened(fields: StoredRecord, conversationId: string): StoredRecord {
  const form = FORMS.get(fields.type);
  if (!form || Object.hasOwn(fields, form.as)) return fields;
  const short = form.shorten(fields[form.of], startOf(fields, conversationId));
  if (short === undefined) return fields;
  const { [form.of]: _, ...rest } = fields;
  return { ...rest, [form.as]: short };
}

/** The record as its entry has it. */
export function lengthened(record: StoredRecord, conversationId: string): StoredRecord {
  const form = FORMS.get(record.type);
  if (!form || !Object.hasOwn(record, form.as) || Object.hasOwn(record, form.of)) return record;
  const long = form.lengthen(record[form.as], startOf(record, conversationId));
  if (long === undefined) return record;
  const { [form.as]: _, ...rest } = record;
  return { ...rest, [form.of]: long };
}
