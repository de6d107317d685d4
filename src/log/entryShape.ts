/**
 * Checks that a log from a store can be read: seqs count up from 0, and each entry has the fields that readers of its type
 * need. Also closes the log of a process that died. Invariant: unknown fields and types of later versions are accepted. An
 * error names the seq of the refused entry.
 */
import {
  entryKinds,
  type Fields,
  type LogEntry,
  type LogState,
  type NewEntry,
  repairs,
  type Shape,
} from '../../machines/internal.ts';
import { CorruptLogError } from '../errors.ts';
import { type LogHandle, noticeEntries } from '../stores/logStore.ts';
import { display, isObject } from '../validation.ts';

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isNumber: Check = (value) => typeof value === 'number';
const isAnything: Check = () => true;
const isEvery =
  (check: Check): Check =>
  (value) => {
    if (!Array.isArray(value)) return false;
    // The list's own `every` would skip its holes.
    for (let index = 0; index < value.length; index++) if (!check(value[index])) return false;
    return true;
  };

/** The fields that reading depends on, each with its check. */
const requiredOf = (fields: Fields): [name: string, check: Check][] =>
  Object.entries(fields)
    .filter(([, { isRequired }]) => isRequired)
    .map(([name, { shape, isOptional }]) => {
      const check = checkOf(shape);
      return [name, isOptional ? (value) => value === undefined || check(value) : check];
    });

function hasRequired(fields: Fields): Check {
  const checks = requiredOf(fields);
  return (value) => isObject(value) && checks.every(([name, check]) => check(value[name]));
}

/** Values of a later version pass: a text need not be a known one, and a number need not be in its range. */
function checkOf(shape: Shape): Check {
  switch (shape.kind) {
    case 'text':
    case 'words':
    case 'bytes':
    case 'choice':
      return isText;
    case 'number':
    case 'amount':
    case 'ordinal':
    case 'position':
      return isNumber;
    case 'list':
      return isEvery(checkOf(shape.each));
    case 'nullable': {
      const check = checkOf(shape.value);
      return (value) => value === null || check(value);
    }
    case 'fields':
      return hasRequired(shape.fields);
    case 'tagged': {
      const { tag, other } = shape;
      const known = new Map(Object.entries(shape.variants).map(([value, fields]) => [value, hasRequired(fields)]));
      const unknown: Check = other ? hasRequired(other) : () => false;
      return (value) => isObject(value) && isText(value[tag]) && (known.get(value[tag] as string) ?? unknown)(value);
    }
    case 'record':
    case 'oneOf':
      return isObject;
    case 'json':
    case 'flag':
    case 'yes':
      return isAnything;
  }
}

const ENVELOPE: readonly [name: string, check: Check][] = [
  ['seq', isNumber],
  ['type', isText],
];
const CHECKS: ReadonlyMap<unknown, readonly [name: string, check: Check][]> = new Map(
  Object.entries(entryKinds).map(([kind, { fields }]) => [kind, [...ENVELOPE, ...requiredOf(fields as Fields)]]),
);

/** The entry as it is written today: `conversationId` of a `sub-agent` entry was the sub-agent's once, not the log's. */
const current = (entry: LogEntry, id: string): LogEntry =>
  entry.type === 'sub-agent' && entry.child === undefined
    ? Object.freeze({ ...entry, conversationId: id, child: entry.conversationId })
    : entry;

/** The entry itself. Throws CorruptLogError `corrupt`. */
export function readable(entry: LogEntry): LogEntry {
  const found = Object(entry) as { [name: string]: unknown };
  const [odd] = (CHECKS.get(found.type) ?? ENVELOPE).find(([name, check]) => !check(found[name])) ?? [];
  if (odd === undefined) return entry;
  const where = `entry ${found.seq} (${found.type}) of conversation "${found.conversationId}"`;
  const got = found[odd] === undefined ? 'nothing' : display(found[odd]);
  throw new CorruptLogError('corrupt', `${where} cannot be used: its ${odd} is ${got}; the log was left as it is`);
}

/** Returns the next entry of a log. Throws CorruptLogError: `gap` if an entry is missing, `fork` if a seq repeats, `corrupt` if it is unreadable. */
export function nextEntry(entry: LogEntry, id: string, expected: number): LogEntry {
  const { seq } = readable(entry);
  if (seq === expected) return current(entry, id);
  const what = `the log of conversation "${id}" goes on with entry ${seq}, expected entry ${expected}`;
  throw new CorruptLogError(seq < expected ? 'fork' : 'gap', `${what}; it was left as it is`);
}

/** Returns the entries that close a log whose process died, after notices about damage that its store tolerated. */
export const mended = (
  { notices = [] }: LogHandle,
  entries: readonly LogEntry[],
  logState: LogState,
  isIdempotent: (name: string) => boolean,
): NewEntry[] => [...noticeEntries(notices, entries), ...repairs(logState, isIdempotent)];
