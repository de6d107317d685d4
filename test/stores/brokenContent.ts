/**
 * Faults in entries, ids and lists of broken stores. Each fault is a function of the correct value; null means
 * nothing.
 */
import { posix } from 'node:path';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { ConversationInfo } from '../../src/stores/logStore.ts';

type Distortion = (entry: LogEntry) => LogEntry | null;

/** Every text of an entry's own fields, changed. */
const texts =
  (change: (text: string) => unknown): Distortion =>
  (entry) =>
    JSON.parse(JSON.stringify(entry), (key, value) =>
      typeof value === 'string' && key !== 'type' && key !== 'conversationId' ? change(value) : value,
    );
const values =
  (change: (value: unknown, key: string) => unknown): Distortion =>
  (entry) =>
    JSON.parse(JSON.stringify(entry), (key, value) => change(value, key));
/** A larger number is treated as a fraction. */
const isWhole = (value: unknown): value is number => Number.isInteger(value) && Math.abs(value as number) < 2 ** 51;
const isList = (value: unknown): value is unknown[] => Array.isArray(value);
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !isList(value);
const isEmpty = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0;

/** The values that replace a stored entry. */
export const distortions = {
  'cuts texts at a newline': texts((text) => text.split('\n', 1)[0]),
  'makes one kind of line break of all': texts((text) => text.replace(/\r\n?|[\u2028\u2029\u0085]/g, '\n')),
  'cuts texts at NUL': texts((text) => text.split('\0', 1)[0]),
  'replaces lone surrogates': texts((text) => Buffer.from(text).toString()),
  'normalises texts': texts((text) => text.normalize('NFKC')),
  'drops byte order marks': texts((text) => text.replace(/^\ufeff/, '')),
  'doubles backslashes': texts((text) => text.replaceAll('\\', '\\\\')),
  'guesses the type of a text': texts((text) => (/^(null|true|\d+)$/.test(text) ? JSON.parse(text) : text)),
  'takes an empty text for null': texts((text) => (text === '' ? null : text)),
  'takes null for absent': values((value) => (value === null ? undefined : value)),
  'keeps numbers in four bytes': values((value, key) =>
    typeof value === 'number' && !['seq', 'at', 'createdAt'].includes(key) ? Math.fround(value) : value,
  ),
  'keeps whole numbers in 32 bits': values((value, key) =>
    isWhole(value) && !['seq', 'at', 'createdAt'].includes(key) ? value | 0 : value,
  ),
  'keeps six digits of a cost': values((value, key) =>
    key === 'costUsd' && typeof value === 'number' ? Number(value.toFixed(6)) : value,
  ),
  'makes lists of empty objects': values((value) => (isEmpty(value) ? [] : value)),
  'loses keys named __proto__': values((value, key) => (key === '__proto__' ? undefined : value)),
  'loses keys with dots': values((value, key) => (key.includes('.') ? undefined : value)),
  'keeps a thousand members': values((value) => {
    if (isList(value)) return value.slice(0, 1000);
    return isObject(value) ? Object.fromEntries(Object.entries(value).slice(0, 1000)) : value;
  }),
  'keeps fifty levels': (entry) => (JSON.stringify(entry).includes('[{"in":'.repeat(26)) ? null : entry),
  'drops types it does not know': (entry) => ((entry.type as string) === 'later-kind' ? null : entry),
  'drops checkpoints': (entry) => (entry.type === 'checkpoint' ? null : entry),
  'takes the fields of a value for those of the entry': (entry) =>
    entry.type === 'extension' && isObject(entry.value) ? ({ ...entry, ...entry.value } as LogEntry) : entry,
  'puts its own conversation id on entries': (entry) => ({ ...entry, conversationId: 'c' }),
  'loses the run': (entry) => ({ ...entry, runId: null }),
  'rounds times': (entry) => ({ ...entry, at: Math.max(0, Math.round(entry.at)) }),
} satisfies { [fault: string]: Distortion };

/** The results for a large log or entry. */
export const limits = {
  'keeps 60,000 characters of a text': texts((text) => text.slice(0, 60_000)),
  'keeps seqs in ten bits': (entry) => ({ ...entry, seq: entry.seq & 1023 }),
  'reads 65,536 entries': (entry) => (entry.seq < 65_536 ? entry : null),
} satisfies { [fault: string]: Distortion };

/** The key a conversation is kept under, by its id. */
export const idFaults = {
  'ignores the case of ids': (id) => id.toLowerCase(),
  'trims ids': (id) => id.trim(),
  'cuts ids': (id) => id.slice(0, 120),
  'normalises ids': (id) => id.normalize('NFKC'),
  'takes ids for paths': (id) => posix.normalize(id.replaceAll('\\', '/')),
  'takes ids for numbers': (id) => (Number.isFinite(Number(id)) && id !== '' ? String(Number(id)) : id),
  'writes ids as UTF-8': (id) => Buffer.from(id).toString(),
  'decodes ids': (id) => id.replace(/%20|\+/g, ' '),
  'looks ids up in an object': (id) => (id in {} ? 'object' : id),
  'takes ids for names of its own files': (id) => id.replace(/\.(jsonl|lock|blobs)/g, ''),
  'gives no reason when it refuses an id': (id) => {
    if (/^[\w. %-]+$/.test(id)) return id;
    throw new Error('no');
  },
  'refuses ids that begin with a dot or a dash': (id) => {
    if (!/^[.-]/.test(id)) return id;
    throw new Error('no');
  },
} satisfies { [fault: string]: (id: string) => string };

/** The values that the list reads in place of an entry. */
export const sights = {
  'lists sub-agents': (entry) => (entry.type === 'conversation' ? without(entry, 'parent') : entry),
  'takes an unknown price for nothing': (entry) =>
    entry.type === 'model-reply' && entry.costUsd === null ? { ...entry, costUsd: 0 } : entry,
  'takes a price of nothing for unknown': (entry) =>
    entry.type === 'model-reply' && entry.costUsd === 0 ? { ...entry, costUsd: null } : entry,
  'adds up six digits of a cost': (entry) =>
    entry.type === 'model-reply' && entry.costUsd !== null
      ? { ...entry, costUsd: Number(entry.costUsd.toFixed(6)) }
      : entry,
  'counts no cost of sub-agents': (entry) => (entry.type === 'extension' ? null : entry),
  'sees no suspension': (entry) => (entry.type === 'run-suspended' ? null : entry),
  'sees no resumption': (entry) => (entry.type === 'run-resumed' ? null : entry),
  'sees no stop': (entry) => (entry.type === 'run-stop' ? null : entry),
  'counts no second turn': (entry) => (entry.type === 'model-reply' && entry.seq > 1 ? null : entry),
  'keeps a cause that no stop gave': (entry) =>
    entry.type === 'run-stop' && entry.cause === undefined ? { ...entry, cause: 'end_turn' } : entry,
} satisfies { [fault: string]: Distortion };

/** The values that are listed in place of a conversation. `held`: one of its handles is open. */
export const listings = {
  'lists every conversation as idle': (info) => ({ ...info, status: 'idle' }),
  'lists what is held as active': (info, { held }) => (held ? { ...info, status: 'active' } : info),
  'lists a run nobody holds as active': (info, { last }) =>
    last?.type === 'run-started' ? { ...info, status: 'active' } : info,
  'lists keys for ids': (info) => ({ ...info, id: encodeURIComponent(info.id) }),
  'lists no place': (info) => ({ ...info, cwd: '' }),
  'lists the latest time': (info) => ({ ...info, updatedAt: Math.max(info.updatedAt, info.createdAt) }),
  'lists only what began as a conversation': (info, { first }) => (first?.type === 'conversation' ? info : null),
} satisfies {
  [fault: string]: (
    info: ConversationInfo,
    seen: { held: boolean; first: LogEntry | undefined; last: LogEntry | undefined },
  ) => ConversationInfo | null;
};

function without<T extends object>(value: T, key: keyof T): T {
  const { [key]: _, ...rest } = value;
  return rest as T;
}
