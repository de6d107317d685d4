/**
 * Where a call is found by its id. Rule: the newest call of an id counts; of the cycles before the last one only
 * calls that still lack their outcome are found, because nothing else can happen to the others.
 */
import { CallIndex } from './callIndex.ts';
import type { Ledger } from './ledger.ts';
import { Lookup } from './lookup.ts';
import type { ToolCallView, ToolResultView } from './view.ts';

/**
 * Up to so many calls are searched faster than looked up. Of many the newest are searched first: nearly every result is
 * one of theirs, while a large index lies outside of every cache.
 */
const SEARCH_MAX = 16;

export interface CallBook {
  /** The last cycle's calls, once they are many: id to place in the ledger. */
  index: CallIndex | undefined;
  /** Calls of earlier cycles whose outcome is still to be told. */
  late: Lookup<string>;
  /** Results that came before their calls. */
  early: Map<string, ToolResultView>;
  /** Unknown outcomes, the only ones that can be replaced, and the round they are input of, which may be to come. */
  unknown: Lookup<number>;
  /** Calls whose next result counts again: 1 while that holds. */
  retried: Lookup<number>;
  /** Calls that were started and have no result. */
  running: Set<number>;
  /** How often a call was suspended, and decisions that came before the suspension they are for. */
  suspensions: Lookup<number>;
  decided: Map<number, { suspension: number; by: string | undefined }>;
  /** Calls before it were asked for their result at a stop. */
  checked: number;
}

export const emptyCallBook = (): CallBook => ({
  index: undefined,
  late: new Lookup(),
  early: new Map(),
  unknown: new Lookup(),
  retried: new Lookup(),
  running: new Set(),
  suspensions: new Lookup(),
  decided: new Map(),
  checked: 0,
});

/** A book that goes on by itself. */
export const branchCallBook = (book: CallBook): CallBook => ({
  index: book.index && new CallIndex(book.index),
  late: new Lookup(book.late),
  early: new Map(book.early),
  unknown: new Lookup(book.unknown),
  retried: new Lookup(book.retried),
  running: new Set(book.running),
  suspensions: new Lookup(book.suspensions),
  decided: new Map(book.decided),
  checked: book.checked,
});

export const lacksOutcome = ({ result }: ToolCallView): boolean => result === null || result.outcome === 'unknown';

export const firstCall = ({ cycles }: Ledger): number => (cycles.size === 0 ? 0 : cycles.at(cycles.size - 1).calls);

export function placeOf(ledger: Ledger, book: CallBook, callId: string): number | undefined {
  return inLastCycle(ledger, book, callId) ?? book.late.get(callId);
}

function inLastCycle(ledger: Ledger, { index }: CallBook, callId: string): number | undefined {
  const { calls } = ledger;
  const first = firstCall(ledger);
  const from = index === undefined ? first : Math.max(first, calls.size - SEARCH_MAX);
  for (let at = calls.size - 1; at >= from; at--) if (calls.at(at).callId === callId) return at;
  return index?.get(calls, callId);
}

/** Makes the ledger's newest call the one of its id. Says whether the cycle had one before. */
export function enterCall(ledger: Ledger, book: CallBook, call: ToolCallView): boolean {
  const at = ledger.calls.size;
  const repeated =
    book.index === undefined
      ? inLastCycle(ledger, book, call.callId) !== undefined
      : !book.index.set(ledger.calls, call.callId, at);
  ledger.calls = ledger.calls.push(ledger.owner, call);
  if (book.index === undefined && at - firstCall(ledger) >= SEARCH_MAX) book.index = indexed(ledger);
  return repeated;
}

function indexed({ calls, cycles }: Ledger): CallIndex {
  const index = new CallIndex();
  for (let at = cycles.at(cycles.size - 1).calls; at < calls.size; at++) index.set(calls, calls.at(at).callId, at);
  return index;
}

/** Another cycle begins. */
export function leaveCycle(ledger: Ledger, book: CallBook): void {
  const { calls } = ledger;
  for (let at = firstCall(ledger); at < calls.size; at++) {
    const call = calls.at(at);
    if (lacksOutcome(call)) book.late.set(call.callId, at);
  }
  book.index = undefined;
}
