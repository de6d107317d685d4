/**
 * Tool calls: the index by id, and their states and results. Invariant: the first result of a call counts. Only the
 * host's settlement of an unknown outcome replaces a result. A result that comes before its call is kept for it until
 * the stop. The newest call of an id counts. In earlier cycles only calls without an outcome are found, because the
 * others cannot change.
 */
import type { GroupName } from '../../machines/vocabulary.ts';
import { Lookup } from './collections.ts';
import { addCallStep } from './cycles.ts';
import type { CallReading, SettlementReading } from './readEntry.ts';
import { outdateCall, outdateRound, type Records } from './records.ts';
import type { ToolCallView, ToolResultView } from './view.ts';

/** Further early results are reported as orphans. */
const EARLY_MAX = 1024;

/** Adds a call to the open cycle, with a result that came early. Returns a diagnostic's code for a repeated call. */
export function addCall(
  records: Records,
  table: CallTable,
  call: ToolCallView,
  kind: GroupName,
): 'call_repeated' | undefined {
  const { callId } = call;
  addCallStep(records, kind);
  const repeated = enterCall(records, table, call);
  const early = table.early.size === 0 ? undefined : table.early.get(callId);
  if (early !== undefined) {
    table.early.delete(callId);
    attach(records, table, records.calls.size - 1, early);
  }
  return repeated ? 'call_repeated' : undefined;
}

/** Attaches a result to its call, also after the stop. Keeps it if the call has not come yet. */
export function addResult(
  records: Records,
  table: CallTable,
  callId: string,
  result: ToolResultView,
  active: boolean,
): 'orphan' | 'result_repeated' | undefined {
  const at = placeOf(records, table, callId);
  if (at !== undefined) {
    if (records.calls.at(at).result !== null && table.retried.get(at) !== 1) return 'result_repeated';
    attach(records, table, at, result);
    return undefined;
  }
  if (!active) return 'orphan';
  if (table.early.has(callId)) return 'result_repeated';
  if (table.early.size >= EARLY_MAX) return 'orphan';
  table.early.set(callId, result);
  return undefined;
}

/** Applies the host's settlement. A retry keeps the result until the next one comes. */
export function settleCall(
  records: Records,
  table: CallTable,
  callId: string,
  settlement: SettlementReading,
): 'orphan' | 'settled_already' | undefined {
  const at = placeOf(records, table, callId);
  if (at === undefined) return 'orphan';
  if (!lacksOutcome(records.calls.at(at))) return 'settled_already';
  if (settlement === 'retry') {
    // A decision for a later suspension expired with the run that interrupted the call.
    table.decided.delete(at);
    table.retried.set(at, 1);
  } else attach(records, table, at, settlement);
  return undefined;
}

/** Returns the calls of the closing cycle that have no result, each once. */
export function listUnanswered(records: Records, table: CallTable): string[] {
  const { calls } = records;
  const ids: string[] = [];
  for (let at = Math.max(table.checked, firstCall(records)); at < calls.size; at++) {
    const { callId, result } = calls.at(at);
    if (result === null) ids.push(callId);
  }
  table.checked = calls.size;
  return ids;
}

/** Applies the entries that come before a call's result: its start, its suspensions and its decisions. */
export function updateCall(records: Records, table: CallTable, reading: CallReading): void {
  if (reading.type === 'tool-suspended') records.replying = false;
  const at = placeOf(records, table, reading.callId);
  if (at === undefined || (records.calls.at(at).result !== null && table.retried.get(at) !== 1)) return;
  const { ranArgs: _, ...call } = records.calls.at(at);
  switch (reading.type) {
    case 'tool-started': {
      const { args } = reading;
      table.running.add(at);
      const differs = args !== undefined && JSON.stringify(args) !== JSON.stringify(call.args);
      return change(records, table, at, differs ? { ...call, ranArgs: args } : call);
    }
    case 'tool-suspended': {
      const { suspension } = reading;
      table.running.delete(at);
      table.suspensions.set(at, suspension);
      const early = table.decided.get(at);
      if (early?.suspension === suspension) table.decided.delete(at);
      const { decidedBy: __, ...undecided } = records.calls.at(at);
      return change(records, table, at, early?.suspension === suspension ? decidedBy(undecided, early.by) : undecided);
    }
    case 'decision': {
      const { suspension, by } = reading;
      const now = table.suspensions.get(at) ?? 0;
      if (suspension > now && !table.decided.has(at)) table.decided.set(at, { suspension, by });
      if (suspension === now) change(records, table, at, decidedBy(records.calls.at(at), by));
    }
  }
}

/** Only the first decision counts. */
const decidedBy = (call: ToolCallView, by: string | undefined): ToolCallView =>
  by === undefined || call.decidedBy !== undefined ? call : { ...call, decidedBy: by };

/** No call runs after a stop. */
export function clearRunning(records: Records, table: CallTable): void {
  const running = [...table.running];
  table.running.clear();
  for (const at of running) change(records, table, at, records.calls.at(at));
}

function change(records: Records, table: CallTable, at: number, call: ToolCallView): void {
  const state = call.result ? 'ended' : table.running.has(at) ? 'running' : 'waiting';
  records.calls = records.calls.replace(records.owner, at, Object.freeze({ ...call, state }));
  outdateCall(records, at);
  // The round that has this result as an input shows the call too.
  if (call.result) outdateRound(records, table.unknown.get(at) ?? -1);
}

function attach(records: Records, table: CallTable, at: number, result: ToolResultView): void {
  const call = records.calls.at(at);
  records.replying = false;
  table.running.delete(at);
  change(records, table, at, { ...call, result });
  if (call.result === null) {
    if (result.outcome === 'unknown') table.unknown.set(at, records.rounds.size);
    feed(records, at);
  } else {
    table.retried.set(at, 0);
  }
}

/** A result is an input of the next round if that round is in the same cycle. */
function feed(records: Records, at: number): void {
  if (at >= firstCall(records)) records.results = records.results.push(records.owner, at);
}

/**
 * A linear search is faster than the index for so few calls. Among more calls the newest are searched first: almost
 * every result belongs to them, and a large index is outside every cache.
 */
const SEARCH_MAX = 16;

export interface CallTable {
  /** The calls of the last cycle, from `SEARCH_MAX` calls on: id to position in `records.calls`. */
  index: Lookup<string> | undefined;
  /** Calls of earlier cycles that may still get an outcome. */
  late: Lookup<string>;
  /** Results that came before their calls. */
  early: Map<string, ToolResultView>;
  /**
   * Calls with an unknown outcome, which can be replaced. The value is the round that has it as an input, which may
   * not exist yet.
   */
  unknown: Lookup<number>;
  /** Calls whose next result counts again: 1 while that is so. */
  retried: Lookup<number>;
  /** Started calls without a result. */
  running: Set<number>;
  /** The number of suspensions of each call. `decided` contains decisions that came before their suspension. */
  suspensions: Lookup<number>;
  decided: Map<number, { suspension: number; by: string | undefined }>;
  /** Calls before this position were already checked for a missing result at a stop. */
  checked: number;
}

export const emptyCallTable = (): CallTable => ({
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

/** Returns an independent copy. */
export const branchCallTable = (table: CallTable): CallTable => ({
  index: table.index && new Lookup(table.index),
  late: new Lookup(table.late),
  early: new Map(table.early),
  unknown: new Lookup(table.unknown),
  retried: new Lookup(table.retried),
  running: new Set(table.running),
  suspensions: new Lookup(table.suspensions),
  decided: new Map(table.decided),
  checked: table.checked,
});

const lacksOutcome = ({ result }: ToolCallView): boolean => result === null || result.outcome === 'unknown';

const firstCall = ({ cycles }: Records): number => (cycles.size === 0 ? 0 : cycles.at(cycles.size - 1).calls);

export function placeOf(records: Records, table: CallTable, callId: string): number | undefined {
  return inLastCycle(records, table, callId) ?? table.late.get(callId);
}

function inLastCycle(records: Records, { index }: CallTable, callId: string): number | undefined {
  const { calls } = records;
  const first = firstCall(records);
  const from = index === undefined ? first : Math.max(first, calls.size - SEARCH_MAX);
  for (let at = calls.size - 1; at >= from; at--) if (calls.at(at).callId === callId) return at;
  return index?.get(callId);
}

/** Adds the call and makes it the one of its id. Returns true if the cycle already has a call of this id. */
function enterCall(records: Records, table: CallTable, call: ToolCallView): boolean {
  const at = records.calls.size;
  const repeated =
    table.index === undefined
      ? inLastCycle(records, table, call.callId) !== undefined
      : !table.index.set(call.callId, at);
  records.calls = records.calls.push(records.owner, call);
  if (table.index === undefined && at - firstCall(records) >= SEARCH_MAX) table.index = indexed(records);
  return repeated;
}

function indexed({ calls, cycles }: Records): Lookup<string> {
  const index = new Lookup<string>();
  for (let at = cycles.at(cycles.size - 1).calls; at < calls.size; at++) index.set(calls.at(at).callId, at);
  return index;
}

/** Prepares for the next cycle. */
export function leaveCycle(records: Records, table: CallTable): void {
  const { calls } = records;
  for (let at = firstCall(records); at < calls.size; at++) {
    const call = calls.at(at);
    if (lacksOutcome(call)) table.late.set(call.callId, at);
  }
  table.index = undefined;
}
