/**
 * Tool calls and what became of them. Rule: the first result of a call counts; one that comes before its call waits
 * for it until the stop; only the host's word on an unknown outcome replaces a result.
 */
import type { GroupName } from '../../machines/vocabulary.ts';
import { type CallBook, enterCall, firstCall, lacksOutcome, placeOf } from './callBook.ts';
import { type Ledger, outdateCall, outdateRound } from './ledger.ts';
import type { CallReading, SettlementReading } from './reading.ts';
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
  if (settlement === 'retry') {
    // What was decided for a later suspension expired with the run that cut the call off.
    book.decided.delete(at);
    book.retried.set(at, 1);
  } else attach(ledger, book, at, settlement);
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

/** What is known of a call before its result: that it was started, waits, or that somebody decided about it. */
export function follow(ledger: Ledger, book: CallBook, reading: CallReading): void {
  if (reading.type === 'tool-suspended') ledger.replying = false;
  const at = placeOf(ledger, book, reading.callId);
  if (at === undefined || (ledger.calls.at(at).result !== null && book.retried.get(at) !== 1)) return;
  const { ranArgs: _, ...call } = ledger.calls.at(at);
  switch (reading.type) {
    case 'tool-started': {
      const { args } = reading;
      book.running.add(at);
      const differs = args !== undefined && JSON.stringify(args) !== JSON.stringify(call.args);
      return change(ledger, book, at, differs ? { ...call, ranArgs: args } : call);
    }
    case 'tool-suspended': {
      const { suspension } = reading;
      book.running.delete(at);
      book.suspensions.set(at, suspension);
      const early = book.decided.get(at);
      if (early?.suspension === suspension) book.decided.delete(at);
      const { decidedBy: __, ...undecided } = ledger.calls.at(at);
      return change(ledger, book, at, early?.suspension === suspension ? decidedBy(undecided, early.by) : undecided);
    }
    case 'decision': {
      const { suspension, by } = reading;
      const now = book.suspensions.get(at) ?? 0;
      if (suspension > now && !book.decided.has(at)) book.decided.set(at, { suspension, by });
      if (suspension === now) change(ledger, book, at, decidedBy(ledger.calls.at(at), by));
    }
  }
}

/** The first decision counts. */
const decidedBy = (call: ToolCallView, by: string | undefined): ToolCallView =>
  by === undefined || call.decidedBy !== undefined ? call : { ...call, decidedBy: by };

/** Nothing runs behind a stop. */
export function rest(ledger: Ledger, book: CallBook): void {
  const running = [...book.running];
  book.running.clear();
  for (const at of running) change(ledger, book, at, ledger.calls.at(at));
}

function change(ledger: Ledger, book: CallBook, at: number, call: ToolCallView): void {
  const state = call.result ? 'ended' : book.running.has(at) ? 'running' : 'waiting';
  ledger.calls = ledger.calls.replace(ledger.owner, at, Object.freeze({ ...call, state }));
  outdateCall(ledger, at);
  // Who read the result as an input reads the call.
  if (call.result) outdateRound(ledger, book.unknown.get(at) ?? -1);
}

function attach(ledger: Ledger, book: CallBook, at: number, result: ToolResultView): void {
  const call = ledger.calls.at(at);
  ledger.replying = false;
  book.running.delete(at);
  change(ledger, book, at, { ...call, result });
  if (call.result === null) {
    if (result.outcome === 'unknown') book.unknown.set(at, ledger.rounds.size);
    feed(ledger, at);
  } else {
    book.retried.set(at, 0);
  }
}

/** A result is input of the round that comes next, where that round is of the same cycle. */
function feed(ledger: Ledger, at: number): void {
  if (at >= firstCall(ledger)) ledger.results = ledger.results.push(ledger.owner, at);
}
