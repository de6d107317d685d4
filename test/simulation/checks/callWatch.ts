/**
 * Checks the calls of a log. Invariant: each call has its records in order, one result, and one decision for each
 * suspension.
 */
import type { Decision, Json, LogEntry, StoredPart } from '../../../machines/internal.ts';
import { isObject } from '../../../src/validation.ts';
import type { CheckedWorld } from './checkedWorld.ts';
import { callKey, type Execution } from './lifeFacts.ts';
import { sameJson } from './sameJson.ts';

export interface WatchedCall {
  /** The seq of its entry. */
  madeAt: number;
  name: string;
  /** The arguments of the model, or those after a change before the run. */
  args: unknown;
  /** The arguments when the call was made, or last shown to a person. */
  argsShown: Json;
  status: 'called' | 'started' | 'suspended' | 'ended';
  suspension: number;
  /** The call is suspended because calls of its sub-agents wait, so nobody decides the call itself. */
  waitsWithin: boolean;
  /** Suspensions with a durable decision, and those whose decision was consumed. */
  decided: Set<number>;
  consumed: Set<number>;
  decisions: Map<number, Decision>;
  /** The process in which its last decision arrived during a run. */
  decidedInProcess: number | undefined;
  /** The host requested a retry that has not begun, and the number of such retries. */
  retry: boolean;
  retries: number;
  /** The host has settled the call. */
  settled: boolean;
  result: readonly StoredPart[] | undefined;
  /** The idempotency keys of its starts in order, and the key of each suspension. */
  keys: string[];
  keyOf: Map<number, string>;
  /** Its last execution. */
  execution: Execution | undefined;
  /** The number of its `state-changed` entries, and of its results. */
  writes: number;
  ends: number;
}
type OfCall = Extract<LogEntry, { callId?: string }>;

const fresh = (name: string, args: Json, madeAt: number): WatchedCall => ({
  madeAt,
  name,
  args,
  argsShown: args,
  status: 'called',
  suspension: 0,
  waitsWithin: false,
  decided: new Set(),
  consumed: new Set(),
  decisions: new Map(),
  decidedInProcess: undefined,
  retry: false,
  retries: 0,
  settled: false,
  result: undefined,
  keys: [],
  keyOf: new Map(),
  execution: undefined,
  writes: 0,
  ends: 0,
});

export class CallWatch {
  readonly calls = new Map<string, WatchedCall>();
  readonly #world: CheckedWorld;

  constructor(world: CheckedWorld) {
    this.#world = world;
  }

  learn(entry: LogEntry): void {
    const world = this.#world;
    if (entry.type === 'agent-output' && entry.item.type === 'tool-call') {
      const { callId, name, args } = entry.item;
      world.check(!this.calls.has(callId), 'I13', () => `the call id ${callId} is there twice`);
      this.calls.set(callId, fresh(name, args, entry.seq));
      return;
    }
    if (!('callId' in entry) || entry.callId === undefined) return;
    const call = this.calls.get(entry.callId);
    if (call) return this.#learnOf(call, entry);
    const stray = entry.type === 'tool-result' || entry.type === 'tool-started' || entry.type === 'tool-suspended';
    world.check(!stray, 'INV-1', () => `${entry.type} of ${entry.callId}, which nobody called`);
  }

  /** Checks one append. The result of a decided call is in the append of the entry that consumes the decision. */
  appended(entries: readonly LogEntry[]): void {
    const ends = entries.some(({ type }) => type === 'run-stop' || type === 'run-suspended');
    if (ends) return;
    for (const entry of entries) {
      if (entry.type !== 'tool-result' || entry.outcome === 'unknown' || entry.outcome === 'cancelled') continue;
      const { callId } = entry;
      const call = this.calls.get(callId);
      const used = !call?.decided.has(call.suspension) || call.consumed.has(call.suspension);
      this.#world.check(used, 'I16', () => `${callId} was decided and ends without its decision`);
    }
  }

  #learnOf(call: WatchedCall, entry: OfCall): void {
    const world = this.#world;
    const { callId = '' } = entry;
    const open = call.status !== 'ended' || call.retry;
    switch (entry.type) {
      case 'tool-started':
        world.check(open, 'I9', () => `${callId} starts after its result`);
        call.status = 'started';
        if (entry.args !== undefined) call.args = entry.args;
        return this.#started(call, entry);
      case 'tool-suspended':
        world.check(open, 'I7', () => `${callId} is suspended after its result`);
        world.check(entry.suspension === call.suspension + 1, 'I16', () => `${callId} skips a suspension`);
        call.suspension = entry.suspension;
        call.waitsWithin = entry.reason === 'sub-agent';
        call.status = 'suspended';
        if (entry.args !== undefined) call.argsShown = entry.args;
        // A hook's arguments are now the ones that a person sees.
        world.facts.hooked.delete(callKey(entry.conversationId, callId));
        return;
      case 'tool-result':
        world.check(open, 'INV-1', () => `${callId} has a second result, ${entry.outcome}`);
        return this.#ended(call, entry);
      case 'state-changed':
        call.writes += 1;
        return;
      case 'decision':
        return this.#decided(call, entry);
      case 'decision-consumed':
        world.check(
          call.decided.has(entry.suspension),
          'I17',
          () => `${callId}: a decision is used that is not durable`,
        );
        world.check(!call.consumed.has(entry.suspension), 'I16', () => `${callId}: a decision is used twice`);
        call.consumed.add(entry.suspension);
        return;
      case 'call-settled':
        call.retry = 'retry' in entry.how;
        if (call.retry) this.#retried(call);
        call.settled = true;
    }
  }

  /** The signal of a tool is aborted before its call ends without it. */
  #ended(call: WatchedCall, { callId, outcome, code, content }: Extract<LogEntry, { type: 'tool-result' }>): void {
    const world = this.#world;
    const { execution, status } = call;
    const works = status === 'started' && execution?.processId === world.processId && !execution.isOver;
    const isAbandoned = (outcome === 'cancelled' || code === 'timeout') && works;
    world.check(
      !isAbandoned || execution.signal.aborted,
      'ABORT',
      () => `${callId} is ${code}, and its signal is not aborted`,
    );
    call.status = 'ended';
    call.ends += 1;
    call.retry = false;
    call.result = content;
  }

  /** Early decisions expire with a retry, so the person is asked again. */
  #retried(call: WatchedCall): void {
    call.retries += 1;
    for (const suspension of call.decided) if (suspension > call.suspension) call.decided.delete(suspension);
  }

  /** A suspension has one key, the same after retries and crashes. */
  #started(call: WatchedCall, entry: Extract<LogEntry, { type: 'tool-started' }>): void {
    const { callId, idempotencyKey, args } = entry;
    const place = callKey(entry.conversationId, callId);
    const due = this.#world.facts.argsInPlace(place, editedBy(call.decisions.get(call.suspension)));
    // A repeated start has the first one's arguments, and a fork's start has the copied ones.
    const isCopy = this.#world.facts.forks.has(entry.conversationId);
    if (args !== undefined && (isCopy || sameJson(args, due))) call.argsShown = args;
    const key = call.keyOf.get(call.suspension);
    const used = key === undefined && call.keys.includes(idempotencyKey);
    const fits = !used && (key === undefined || key === idempotencyKey);
    this.#world.check(fits, 'I10', () => `${callId} starts with ${idempotencyKey} at suspension ${call.suspension}`);
    call.keyOf.set(call.suspension, idempotencyKey);
    call.keys.push(idempotencyKey);
  }

  #decided(call: WatchedCall, entry: Extract<LogEntry, { type: 'decision' }>): void {
    const world = this.#world;
    const { callId, suspension, decision } = entry;
    world.check(!call.decided.has(suspension), 'I16', () => `${callId} is decided twice`);
    call.decided.add(suspension);
    call.decisions.set(suspension, decision);
    call.decidedInProcess = world.facts.running.has(entry.conversationId) ? world.processId : undefined;
    if (decision.by === undefined) return;
    // The answer that resumes a parent contains the last decider. A duplicate repeats a decision that could not be
    // passed on.
    if (!isWakeUp(decision)) world.facts.deciders.add(decision.by);
    const allowed = !world.facts.turnedAway.has(decision.by);
    world.check(allowed, 'I38', () => `${decision.by} was turned away and decides ${callId}`);
  }
}

/** Returns true if the call waits for a person. */
export const isPending = ({ status, decided, suspension, waitsWithin }: WatchedCall): boolean =>
  status === 'suspended' && !decided.has(suspension) && !waitsWithin;

/** Returns the arguments of an edit. */
export const editedBy = (decision: Decision | undefined): Json | undefined =>
  decision?.action === 'edit' ? decision.args : undefined;

const isWakeUp = (decision: Decision): boolean =>
  decision.action === 'answer' && isObject(decision.payload) && 'decided' in decision.payload;
