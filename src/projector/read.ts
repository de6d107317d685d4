/**
 * The door of the projector: any value becomes an entry. Rule: it never throws, takes the wire events that
 * `wireEventSchema` takes and no others, and says what is odd about the rest.
 */
import { malformed, odd, type Reading } from './reading.ts';
import { readRuntime } from './readRuntime.ts';
import { readWire } from './readWire.ts';

/** A value with what its envelope says. */
export interface Entry {
  reading: Reading;
  /** Undefined where there is none. */
  seq: number | undefined;
  runId: string | undefined;
  /** Whose entry it is, where it says so. */
  conversationId: string | undefined;
  /** A sub-agent's entry of an old log: the id it holds is that of the sub-agent; whose entry it is, it does not say. */
  tellsOfChild: boolean;
  /** There is a seq, but it is no whole number from 0 on. */
  badSeq: boolean;
}

/** Longer words of strangers are cut in diagnostics. */
const WORD_MAX = 80;
const cut = (word: string): string => (word.length > WORD_MAX ? `${word.slice(0, WORD_MAX)}…` : word);

export function readEntry(value: unknown): Entry {
  try {
    return read(value);
  } catch {
    return UNREADABLE;
  }
}

const bare = (reading: Reading): Entry => ({
  reading,
  seq: undefined,
  runId: undefined,
  conversationId: undefined,
  tellsOfChild: false,
  badSeq: false,
});

/** What a getter or a proxy that throws is read as. */
export const UNREADABLE: Entry = bare(odd('unreadable'));

function read(value: unknown): Entry {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return bare(odd('unknown', { is: value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value }));
  }
  const entry = value as Record<string, unknown>;
  const { seq, runId, conversationId } = entry;
  const tellsOfChild = entry.type === 'sub-agent' && entry.child === undefined;
  const hasSeq = typeof seq === 'number' && Number.isSafeInteger(seq) && seq >= 0;
  return {
    reading: readEvent(entry),
    seq: hasSeq ? seq : undefined,
    runId: typeof runId === 'string' ? runId : undefined,
    conversationId: typeof conversationId === 'string' && !tellsOfChild ? conversationId : undefined,
    tellsOfChild,
    badSeq: !hasSeq && seq !== undefined,
  };
}

function readEvent(entry: Record<string, unknown>): Reading {
  const { type } = entry;
  if (typeof type !== 'string') return odd('unknown', { type: typeof type === 'number' ? String(type) : typeof type });
  const reading = readWire(type, entry) ?? readRuntime(type, entry);
  if (reading !== undefined) return typeof reading === 'string' ? malformed(type, reading) : reading;
  return odd(type.startsWith('xstate.') ? 'reserved' : 'unknown', { type: cut(type) });
}
