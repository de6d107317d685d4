/**
 * Copies any value as JSON, within limits and without credentials. Invariant: an app's value can contain anything
 * (cycles, actors, throwing getters, megabytes), so no part of it is used directly. Omitted parts are marked in their
 * place.
 */
import type { Json } from '../../machines/vocabulary.ts';
import { beginning } from '../printable.ts';

export interface ExcerptLimits {
  /** The most characters of one string. */
  text: number;
  /** The most items of a list, and fields of an object. */
  items: number;
  depth: number;
  /** The most values in total. */
  values: number;
}

const EVENT: ExcerptLimits = { text: 500, items: 20, depth: 5, values: 80 };
/** The limits of a whole context that a page requests. */
export const CONTEXT: ExcerptLimits = { text: 4000, items: 200, depth: 12, values: 5000 };
/** The limits of a log entry that is too large for a frame. */
export const ENTRY: ExcerptLimits = { text: 8000, items: 500, depth: 20, values: 20_000 };

export const REDACTED = '[redacted]';
const SECRET_KEY = /authorization|api[-_]?key|passw(or)?d|secret|credential|cookie|(^|[-_a-z])token$/i;
/** Keys of model providers, clouds and code hosts, and tokens with a recognizable prefix. */
const SECRET_SHAPE =
  /\b(?:sk-[\w-]{16,}|[sr]k_(?:live|test)_\w{10,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|npm_\w{30,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|xox[abprs]-[\w-]{10,}|eyJ[\w-]{10,1000}\.eyJ[\w-]{10,8000}\.[\w-]+)\b|\bBearer [\w.~+/-]{12,}=*/g;

/** JSON fields within a string. The string may be cut, so the last value may have no end. */
const QUOTED_FIELD = /("(?:[^"\\]|\\.){1,100}"\s*:\s*")(?:[^"\\]|\\[\s\S])+(?:"|\\?$)/g;
/** Lines of configuration files. */
const SETTING =
  /\b([A-Z][A-Z0-9_]{0,60}?(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|CREDENTIAL)(?:_[A-Z0-9_]{0,60})?[ \t]?=[ \t]?)(?!\s)[^\n]+/g;
const BASIC = /\b(authorization["']?\s*[:=]\s*["']?basic\s+)[\w+/-]{8,}=*/gi;
const URL_PASSWORD = /\b([a-z][a-z\d+.-]{1,20}:\/\/[^\s/:@?#"'<>]{0,100}:)[^\s/@"'<>]{1,200}(?=@)/gi;
const PRIVATE_KEY = /(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[\s\S]+?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g;
/** If a pattern has a first group, the text of that group stays visible. */
const CREDENTIALS = [SECRET_SHAPE, QUOTED_FIELD, SETTING, BASIC, URL_PASSWORD, PRIVATE_KEY];
/** A cheap test that matches every string which the patterns above could change. */
const HINT =
  /sk-|k_(?:live|test)_|gh[pousr]_|github_pat|glpat-|npm_|AKIA|AIza|xox|eyJ|bearer|authorization|api|passw|secret|credential|cookie|token|private key|:\/\/[^\s/@]{0,100}:[^\s/@]{1,200}@/i;

/** Returns the parts of the text to hide, in order. */
function credentialsIn(text: string): { from: number; to: number }[] {
  const credentials = CREDENTIALS.flatMap((pattern) =>
    [...text.matchAll(pattern)].flatMap(({ index, 0: whole, 1: keptText = '' }) => {
      const isField = pattern === QUOTED_FIELD;
      const name = isField ? keptText.slice(1, keptText.lastIndexOf('"', keptText.length - 2)) : '';
      if (isField && !SECRET_KEY.test(name)) return [];
      const end = isField && whole.endsWith('"') ? 1 : 0;
      return [{ from: index + keptText.length, to: index + whole.length - end }];
    }),
  );
  return credentials.sort((a, b) => a.from - b.from);
}

/** Returns the text up to `end`, without credentials. The text after `end` only shows where a credential ends. */
function hiddenUpTo(text: string, end: number): string {
  let shown = '';
  let at = 0;
  for (const { from, to } of HINT.test(text) ? credentialsIn(text) : []) {
    if (from >= end) break;
    if (from >= at) shown += text.slice(at, from) + REDACTED;
    at = Math.max(at, to);
  }
  return shown + text.slice(at, Math.max(at, end));
}

/** Replaces everything that looks like a credential with `[redacted]`. */
export const withoutCredentials = (text: string): string => hiddenUpTo(text, text.length);

interface Copying {
  limits: ExcerptLimits;
  valuesLeft: number;
  ancestors: Set<object>;
  clean: (text: string) => string;
}

/** A credential may end this many characters after the cut. */
const REACH = 500;

function textOf(whole: string, { limits, clean }: Copying): string {
  const text = clean(whole);
  if (text.length <= limits.text) return withoutCredentials(text);
  const end = beginning(text, limits.text).length;
  const head = text.slice(0, end + REACH);
  return `${hiddenUpTo(head, end)}… ${text.length - end} more characters`;
}

function isActor(value: object): value is { sessionId: string; id?: unknown } {
  const { sessionId, send } = value as { sessionId?: unknown; send?: unknown };
  return typeof sessionId === 'string' && typeof send === 'function';
}

/** Returns the replacement for the fields of an object, or undefined if its fields are shown. */
function summaryOf(value: object): Json | undefined {
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

/** The value of a field or of a map, by its name. */
const isCredential = (name: unknown, value: unknown): boolean =>
  typeof name === 'string' && typeof value === 'string' && value !== '' && SECRET_KEY.test(name);

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
    const copied = isCredential(name, field) ? REDACTED : copyOf(field, copying, depth + 1);
    const key = withoutCredentials(copying.clean(name));
    if (copied !== undefined) Object.defineProperty(fields, key, { value: copied, enumerable: true });
  }
  if (names.length > copying.limits.items) fields['…'] = `${names.length - copying.limits.items} more`;
  return fields;
}

function objectOf(value: object, copying: Copying, depth: number): Json {
  const word = summaryOf(value);
  if (typeof word === 'string') return textOf(word, copying);
  if (copying.ancestors.has(value)) return '[circular]';
  if (depth >= copying.limits.depth) return Array.isArray(value) ? `[${value.length} items]` : '[object]';
  copying.ancestors.add(value);
  try {
    if (Array.isArray(value)) return listOf(value, copying, depth);
    if (value instanceof Set) return listOf([...value], copying, depth);
    if (value instanceof Map) {
      const pairs = [...value].map(([name, field]) => [name, isCredential(name, field) ? REDACTED : field]);
      return listOf(pairs, copying, depth);
    }
    return fieldsOf((word as object | undefined) ?? value, copying, depth);
  } finally {
    copying.ancestors.delete(value);
  }
}

function copyOf(value: unknown, copying: Copying, depth: number): Json | undefined {
  copying.valuesLeft -= 1;
  if (copying.valuesLeft < 0) return '…';
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
const WHOLE: ExcerptLimits = {
  text: Number.POSITIVE_INFINITY,
  items: Number.POSITIVE_INFINITY,
  depth: 500,
  values: Number.POSITIVE_INFINITY,
};

/** Removes credentials from JSON for a page. The value is copied only if it may contain one. */
export const pageJson = <Value extends object>(value: Value, text: string = JSON.stringify(value)): Value =>
  HINT.test(text) ? (excerpt(value, WHOLE) as Value) : value;

/** Never throws. `clean` removes secrets from each string before it is cut. */
export function excerpt(value: unknown, limits: ExcerptLimits = EVENT, clean: Copying['clean'] = asIs): Json {
  try {
    return copyOf(value, { limits, valuesLeft: limits.values, ancestors: new Set(), clean }, 0) ?? null;
  } catch {
    return '[cannot be read]';
  }
}
