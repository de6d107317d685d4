/**
 * Tool calls and what became of them. Rule: the first result of a call counts; one that comes before its call waits
 * for it until the stop; only the host's word on an unknown outcome replaces a result.
 */
import type { GroupName } from '../../machines/vocabulary.ts';
import { type CallBook, enterCall, firstCall, lacksOutcome, placeOf } from './callBook.ts';
import { type Ledger, outdateCall, outdateRound } from './ledger.ts';
import type { SettlementReading } from './reading.ts';
import { addCallStep } from './resolutionStep.ts';
import type { ToolCallView, ToolResultView } from './view.ts';

/** More results than this do not wait for their calls. */
const EARLY_MAX = 1024;

/** Adds a call to the open cycle and gives it the result that waited for it. Says what was odd. */
export function addCall(
  ledger: Ledger,
  book: CallBook,
  call: ToolCallView,
  kind: GroupName,
): 'call_repeated' | undefined {
  const { callId } = call;
  addCallStep(ledger, kind);
  const repeated = enterCall(ledger, book, call);
  const early = book.early.size === 0 ? undefined : book.early.get(callId);
  if (early !== undefined) {
    book.early.delete(callId);
    attach(ledger, book, ledger.calls.size - 1, early);
  }
  return repeated ? 'call_repeated' : undefined;
}

/** Gives a result to its call, also behind the stop, or keeps it for a call to come. */
export function addResult(
  ledger: Ledger,
  book: CallBook,
  callId: string,
  result: ToolResultView,
  active: boolean,
): 'orphan' | 'result_repeated' | undefined {
  const at = placeOf(ledger, book, callId);
  if (at !== undefined) {
    if (ledger.calls.at(at).result !== null && book.retried.get(at) !== 1) return 'result_repeated';
    attach(ledger, book, at, result);
    return undefined;
  }
  if (!active) return 'orphan';
  if (book.early.has(callId)) return 'result_repeated';
  if (book.early.size >= EARLY_MAX) return 'orphan';
  book.early.set(callId, result);
  return undefined;
}

/** The host's word. A retry leaves what is known until the next result. */
export function settle(
  ledger: Ledger,
  book: CallBook,
  callId: string,
  settlement: SettlementReading,
): 'orphan' | 'settled_already' | undefined {
  const at = placeOf(ledger, book, callId);
  if (at === undefined) return 'orphan';
  if (!lacksOutcome(ledger.calls.at(at))) return 'settled_already';
  if (settlement === 'retry') book.retried.set(at, 1);
  else attach(ledger, book, at, settlement);
  return undefined;
}

/** The calls of the cycle that closes without a result, each named once. */
export function unanswered(ledger: Ledger, book: CallBook): string[] {
  const { calls } = ledger;
  const ids: string[] = [];
  for (let at = Math.max(book.checked, firstCall(ledger)); at < calls.size; at++) {
    const { callId, result } = calls.at(at);
    if (result === null) ids.push(callId);
  }
  book.checked = calls.size;
  return ids;
}

function attach(ledger: Ledger, book: CallBook, at: number, result: ToolResultView): void {
  const { callId, name, args, result: before } = ledger.calls.at(at);
  ledger.replying = false;
  ledger.calls = ledger.calls.replace(ledger.owner, at, Object.freeze({ callId, name, args, result }));
  outdateCall(ledger, at);
  if (before === null) {
    if (result.outcome === 'unknown') book.unknown.set(at, ledger.rounds.size);
    feed(ledger, at);
  } else {
    outdateRound(ledger, book.unknown.get(at) ?? -1);
    book.retried.set(at, 0);
  }
}

/** A result is input of the round that comes next, where that round is of the same cycle. */
function feed(ledger: Ledger, at: number): void {
  if (at >= firstCall(ledger)) ledger.results = ledger.results.push(ledger.owner, at);
}
