/**
 * A copy of any value as JSON, within bounds and without credentials. Rule: what an app holds may be anything (cycles,
 * actors, getters that throw, megabytes), so nothing of it is taken as it is; what was left out is said in its place.
 */
import type { Json } from '../../machines/vocabulary.ts';

export interface ExcerptLimits {
  /** Characters of one text. */
  text: number;
  /** Items of a list, and fields of an object. */
  items: number;
  depth: number;
  /** Values in all. */
  values: number;
}

const EVENT: ExcerptLimits = { text: 500, items: 20, depth: 5, values: 80 };
/** Of a whole context that somebody asked for. */
export const CONTEXT: ExcerptLimits = { text: 4000, items: 200, depth: 12, values: 5000 };
/** Of a log entry that is too large for a frame. */
export const ENTRY: ExcerptLimits = { text: 8000, items: 500, depth: 20, values: 20_000 };

export const REDACTED = '[redacted]';
const SECRET_KEY = /authorization|api[-_]?key|passw(or)?d|secret|credential|cookie|(^|[-_a-z])token$/i;
/** Keys of providers and of clouds, and tokens that say what they are. */
const SECRET_SHAPE =
  /\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|xox[abprs]-[\w-]{10,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]+)\b|\bBearer [\w.~+/-]{12,}=*/g;

interface Copying {
  limits: ExcerptLimits;
  left: number;
  above: Set<object>;
  clean: (text: string) => string;
}

/** Characters behind a cut in which the end of a credential is looked for. */
const REACH = 500;

function textOf(whole: string, { limits, clean }: Copying): string {
  const text = clean(whole);
  if (text.length <= limits.text) return text.replace(SECRET_SHAPE, REDACTED);
  const head = text.slice(0, limits.text + REACH);
  let shown = '';
  let from = 0;
  // One that the cut goes through is known by its whole.
  for (const { index, 0: found } of head.matchAll(SECRET_SHAPE)) {
    if (index >= limits.text) break;
    shown += head.slice(from, index) + REDACTED;
    from = index + found.length;
  }
  return `${shown}${head.slice(from, limits.text)}… ${text.length - limits.text} more characters`;
}

function isActor(value: object): value is { sessionId: string; id?: unknown } {
  const { sessionId, send } = value as { sessionId?: unknown; send?: unknown };
  return typeof sessionId === 'string' && typeof send === 'function';
}

/** What is shown of an object in place of its fields; nothing where its fields are shown. */
function inOneWord(value: object): Json | undefined {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof Error) return { name: value.name, message: value.message };
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
  if (typeof (value as { then?: unknown }).then === 'function') return '[promise]';
  if (isActor(value)) return `[actor ${typeof value.id === 'string' ? value.id : value.sessionId}]`;
  return undefined;
}

function listOf(values: readonly unknown[], copying: Copying, depth: number): Json {
  const { items } = copying.limits;
  const copied = values.slice(0, items).map((item) => copyOf(item, copying, depth + 1) ?? null);
  return values.length > items ? [...copied, `… ${values.length - items} more`] : copied;
}

function fieldsOf(value: object, copying: Copying, depth: number): Json {
  const fields: { [key: string]: Json } = {};
  const names = Object.keys(value);
  for (const name of names.slice(0, copying.limits.items)) {
    let field: unknown;
    try {
      field = (value as { [key: string]: unknown })[name];
    } catch {
      field = '[cannot be read]';
    }
    const hidden = typeof field === 'string' && field !== '' && SECRET_KEY.test(name);
    const copied = hidden ? REDACTED : copyOf(field, copying, depth + 1);
    if (copied !== undefined) Object.defineProperty(fields, copying.clean(name), { value: copied, enumerable: true });
  }
  if (names.length > copying.limits.items) fields['…'] = `${names.length - copying.limits.items} more`;
  return fields;
}

function objectOf(value: object, copying: Copying, depth: number): Json {
  const word = inOneWord(value);
  if (typeof word === 'string') return textOf(word, copying);
  if (copying.above.has(value)) return '[circular]';
  if (depth >= copying.limits.depth) return Array.isArray(value) ? `[${value.length} items]` : '[object]';
  copying.above.add(value);
  try {
    if (Array.isArray(value)) return listOf(value, copying, depth);
    if (value instanceof Set) return listOf([...value], copying, depth);
    if (value instanceof Map) return listOf([...value], copying, depth);
    return fieldsOf((word as object | undefined) ?? value, copying, depth);
  } finally {
    copying.above.delete(value);
  }
}

function copyOf(value: unknown, copying: Copying, depth: number): Json | undefined {
  copying.left -= 1;
  if (copying.left < 0) return '…';
  switch (typeof value) {
    case 'string':
      return textOf(value, copying);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'boolean':
      return value;
    case 'bigint':
      return String(value);
    case 'function':
      return `[function ${value.name || 'without name'}]`;
    case 'symbol':
      return String(value);
    case 'object':
      return value === null ? null : objectOf(value, copying, depth);
    default:
      return undefined;
  }
}

const asIs = (text: string): string => text;

/** Never throws. `clean` takes secrets out of each text before it is cut. */
export function excerpt(value: unknown, limits: ExcerptLimits = EVENT, clean: Copying['clean'] = asIs): Json {
  try {
    return copyOf(value, { limits, left: limits.values, above: new Set(), clean }, 0) ?? null;
  } catch {
    return '[cannot be read]';
  }
}
