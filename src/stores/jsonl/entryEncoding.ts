/**
 * Encodes fields of an entry in a short form for its line. Invariant: a short form has its own field name and exactly
 * one long form, so decoding returns every entry unchanged. Fields without a short form are written as they are.
 */
export type StoredRecord = { [key: string]: unknown };

const COUNTS = ['inputTokens', 'outputTokens', 'cachedInputTokens', 'cacheWriteTokens', 'reasoningTokens'] as const;

interface ShortForm {
  /** The field of the entry. */
  readonly field: string;
  /** The field of the line. */
  readonly shortField: string;
  /** Returns undefined if the value has no short form. */
  encode(long: unknown, fields: StoredRecord, conversationId: string): unknown;
  decode(short: unknown, fields: StoredRecord, conversationId: string): unknown;
}

/** Token counts as a list, without the zeros at the end. */
const usage: ShortForm = {
  field: 'usage',
  shortField: 'tokens',
  encode(long) {
    if (!isObject(long) || Object.keys(long).length !== COUNTS.length) return undefined;
    const counts = COUNTS.map((name) => long[name]);
    if (!counts.every(Number.isFinite)) return undefined;
    while (counts.at(-1) === 0) counts.pop();
    return counts;
  },
  decode: (short) => (Array.isArray(short) ? usageIn(short) : undefined),
};

/** In the order of `COUNTS`. */
const usageIn = ([input, output, cachedInput, cacheWrite, reasoning]: unknown[]): StoredRecord => ({
  inputTokens: input ?? 0,
  outputTokens: output ?? 0,
  cachedInputTokens: cachedInput ?? 0,
  cacheWriteTokens: cacheWrite ?? 0,
  reasoningTokens: reasoning ?? 0,
});

/** Content with a single text, as a string. */
const content: ShortForm = {
  field: 'content',
  shortField: 'onlyText',
  encode(long) {
    const [part, more] = Array.isArray(long) ? long : [];
    if (more !== undefined || !isObject(part) || part.type !== 'text' || typeof part.text !== 'string')
      return undefined;
    return Object.keys(part).length === 2 ? part.text : undefined;
  },
  decode: (text) => (typeof text === 'string' ? [{ type: 'text', text }] : undefined),
};

/** A key is `<conversation>/<call>/<number of suspensions>`. Only the number is not in the line already. */
const key: ShortForm = {
  field: 'idempotencyKey',
  shortField: 'suspensions',
  encode(long, fields, conversationId) {
    const start = startOf(fields, conversationId);
    if (typeof long !== 'string' || !long.startsWith(start)) return undefined;
    const suspensions = long.slice(start.length);
    return /^(?:0|[1-9]\d{0,8})$/.test(suspensions) ? Number(suspensions) : undefined;
  },
  decode: (short, fields, conversationId) =>
    typeof short === 'number' ? `${startOf(fields, conversationId)}${short}` : undefined,
};

const FORMS: ReadonlyMap<unknown, ShortForm> = new Map([
  ['model-reply', usage],
  ['user-message', content],
  ['tool-result', content],
  ['tool-started', key],
]);

const isObject = (value: unknown): value is StoredRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The beginning of the call's idempotency key. */
const startOf = ({ callId }: StoredRecord, conversationId: string): string => `${conversationId}/${callId}/`;

/** A value of the entry itself under the name of a short form. */
const isQuoted = (value: unknown): value is { readonly own: unknown } =>
  isObject(value) && Object.keys(value).join() === 'own';

/** Returns the fields of an entry as its line contains them. */
export function encodeFields(fields: StoredRecord, conversationId: string): StoredRecord {
  const form = FORMS.get(fields.type);
  if (!form) return fields;
  const own = fields[form.shortField];
  if (own !== undefined) return fields[form.field] === undefined ? { ...fields, [form.shortField]: { own } } : fields;
  const short = form.encode(fields[form.field], fields, conversationId);
  if (short === undefined) return fields;
  const { [form.field]: _, ...rest } = fields;
  return { ...rest, [form.shortField]: short };
}

/** Gives a record the fields that its entry contains. */
export function decodeFields(record: StoredRecord, conversationId: string): void {
  const form = FORMS.get(record.type);
  if (!form || !Object.hasOwn(record, form.shortField) || Object.hasOwn(record, form.field)) return;
  const short = record[form.shortField];
  if (isQuoted(short)) {
    record[form.shortField] = short.own;
    return;
  }
  const long = form.decode(short, record, conversationId);
  if (long === undefined) return;
  delete record[form.shortField];
  record[form.field] = long;
}
