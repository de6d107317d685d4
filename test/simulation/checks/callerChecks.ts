/**
 * Compares the library's answers to its caller (results, receipts, errors) with the durable log. Invariant: an answer
 * is true immediately, and also after a crash. An error is a RunchartError. Answers are not compared if the store
 * reported a failure for entries that it had stored.
 */
import type { Decision, DecisionReceipt, LogEntry } from '../../../machines/internal.ts';
import { type Conversation, runtimeOf } from '../../../src/conversation/conversation.ts';
import type { Receipt } from '../../../src/conversation/receipts.ts';
import type { Run, RunResult } from '../../../src/conversation/run.ts';
import { RunchartError } from '../../../src/errors.ts';
import type { CallerSignal } from '../../../src/testing/simulation/callerSignal.ts';
import type { Afterwards } from '../../../src/testing/simulation/lifeChecks.ts';
import type { SimulatedStore } from '../../../src/testing/simulation/world/simulatedStore.ts';
import { CONVERSATION } from '../../../src/testing/simulation/world/simulatedWorld.ts';
import { answerOnRecord } from './answerWatch.ts';
import type { CheckedWorld } from './checkedWorld.ts';
import { sameJson } from './sameJson.ts';
import { sameUsage, sumOf } from './spending.ts';

/** The simulated milliseconds that a cancel may take. */
const CANCEL_MS = 100;

export class CallerChecks {
  readonly #openReceipts = new Set<string>();
  readonly #listeners = new WeakMap<AbortSignal, Set<unknown>>();
  readonly #world: CheckedWorld;
  readonly #store: SimulatedStore;

  constructor(world: CheckedWorld, store: SimulatedStore) {
    this.#world = world;
    this.#store = store;
  }

  /** The messages whose receipts are not settled in this process. */
  get openReceipts(): readonly string[] {
    return [...this.#openReceipts];
  }

  /** The store reported a failure for entries that it has stored. */
  get storeLied(): boolean {
    return this.#store.falselyRefused.size > 0;
  }

  crashed(): void {
    this.#openReceipts.clear();
  }

  /** Checks that a conversation opens with all durable entries. `durable` is their number when the opening began. */
  checkOpening(conversation: Conversation, durable: number): void {
    if (!this.#store.logs.has(CONVERSATION) || this.storeLied) return;
    const { length: stored } = this.#store.logOf(CONVERSATION);
    const { length: read } = conversation.log();
    // The opening's own entries are durable shortly before they are visible.
    this.#world.check(read >= durable && read <= stored, 'I20', () => `${read} entries were read of ${durable}`);
  }

  /** Checks that the log contains the end of a run with a result. */
  checkRun(run: Run): void {
    const world = this.#world;
    run.result.then((result) => {
      const watch = this.#world.watchOf(CONVERSATION);
      if (this.storeLied || result.cause === 'store' || !watch.runs.has(result.runId)) return;
      world.check(watch.ended.has(result.runId), 'I22', () => `${result.runId} is reported as over and has no end`);
      this.#checkResult(result);
    });
  }

  /** Checks each field of a result against the entries of its run. */
  #checkResult({ runId, reason, cause, text, turns, usage, costUsd, calls, output, error }: RunResult): void {
    const written = this.#store.logOf(CONVERSATION).filter((entry) => entry.runId === runId);
    // A suspended run may be cancelled before its caller reads the result, so later entries do not count.
    const ends = reason === null ? ['run-suspended'] : ['run-stop', 'run-suspended'];
    const stop = written.filter(({ type }) => ends.includes(type)).at(-1);
    const entries = stop && reason === null ? written.slice(0, written.indexOf(stop) + 1) : written;
    const hold = (same: boolean, what: string): void =>
      this.#world.check(same, 'RESULT', () => `the result of ${runId} has another ${what} than its log`);
    const suspended = stop?.type === 'run-suspended';
    hold(suspended ? reason === null : stop?.type === 'run-stop' && stop.reason === reason, 'reason');
    if (stop?.type === 'run-stop') hold(stop.cause === cause, 'cause');
    // The usage of sub-agents may be recorded after the end of the run.
    const at = stop && entries.indexOf(stop);
    const spent = sumOf(entries.slice(0, at));
    hold(this.#world.facts.hasSubAgents || sameUsage(spent, { ...usage, costUsd }), 'use');
    hold(turns === entries.filter(({ type }) => type === 'model-reply').length, 'number of turns');
    hold(text === lastText(entries), 'text');
    hold(sameJson(output, answerOnRecord(entries)?.value), 'answer');
    if (error?.code === 'output_invalid') this.#world.watchOf(CONVERSATION).answers?.gaveUp(runId);
    const mine = new Set(calls.map(({ callId }) => callId));
    hold(mine.size === calls.length, 'list of calls, one of them twice');
    for (const entry of entries) {
      if (entry.type === 'tool-result') hold(mine.has(entry.callId), `list of calls, without ${entry.callId}`);
    }
  }

  /** Checks a receipt against the log. */
  checkReceipt({ messageId, delivered }: Receipt): void {
    this.#openReceipts.add(messageId);
    delivered.then((answer) => {
      this.#openReceipts.delete(messageId);
      if (this.storeLied) return;
      const place = this.#world.watchOf(CONVERSATION).messages.places.get(messageId);
      const isTrue = (answer === 'delivered') === (place === 'delivered');
      this.#world.check(isTrue, 'I29', () => `${messageId} is ${place}, its receipt is ${answer}`);
    }, this.#checkUndelivered(messageId));
  }

  /** An unsettled message stays queued until the next opening, unless the store refused it or has not answered. */
  #checkUndelivered(messageId: string): (error: unknown) => void {
    return (error) => {
      this.#openReceipts.delete(messageId);
      const { queued } = this.#world.watchOf(CONVERSATION).messages;
      const mayBeQueued = queued.includes(messageId) || this.storeLied || this.#world.facts.hasLostMessage(messageId);
      // A close waits for a limited time, so an unanswered append may be stored or not.
      const isSilent = this.#world.pending.some(({ port }) => port === 'store');
      this.#world.check(mayBeQueued || isSilent, 'I29', () => `the receipt of ${messageId} is ${String(error)}`);
      this.checkError('deliver', error);
    };
  }

  /** Checks that every end of a run takes at most `CANCEL_MS`, in every state. */
  #checkDuration(ended: Promise<unknown>, what: string): Promise<void> {
    const world = this.#world;
    const since = world.elapsedMs;
    return ended.then(() => {
      const took = world.elapsedMs - since;
      world.check(took <= CANCEL_MS, 'I26', () => `${what} took ${took} ms`);
    });
  }

  /** Called before a cancel begins. */
  cancelling(conversation: Conversation): Afterwards {
    const world = this.#world;
    const watch = world.watchOf(CONVERSATION);
    const { cycle, runId } = watch;
    // A run ends even if the store refuses its stop or is too slow. The next run or opening writes the stop.
    const isOver = runtimeOf(conversation).runId !== runId;
    return (done) => {
      this.#checkDuration(done, 'a cancel').then(() => {
        if (this.storeLied || isOver || conversation.status === 'error' || cycle !== 'running') return;
        const id = runId ?? '';
        const isStopped = watch.ended.has(id) || world.lostStops.has(id);
        world.check(isStopped, 'I22', () => `${runId} was cancelled and has no stop`);
      });
    };
  }

  /** Called before a message of this run is withdrawn. A queued message is returned when the store has answered. */
  withdrawing(run: Run): Afterwards | undefined {
    const { cycle, runId } = this.#world.watchOf(CONVERSATION);
    if (cycle !== 'running' || runId !== run.id) return undefined;
    return (done) => void this.#checkDuration(done, 'a withdrawal');
  }

  /** Called before a signal is aborted. */
  aborting({ signal, run }: CallerSignal): (() => void) | undefined {
    const { cycle, runId } = this.#world.watchOf(CONVERSATION);
    if (signal.aborted || cycle !== 'running' || run === undefined || runId !== run.id) return undefined;
    return () => {
      this.#world.count('abort-of-run');
      void this.#checkDuration(run.result, 'the abort of a signal');
    };
  }

  /** Counts the listeners of a signal. */
  listensTo({ signal }: CallerSignal): void {
    const listeners = new Set<unknown>();
    this.#listeners.set(signal, listeners);
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    Object.defineProperties(signal, {
      addEventListener: {
        value: (type: string, listener: EventListener, options?: AddEventListenerOptions) => {
          listeners.add(listener);
          add(type, listener, options);
        },
      },
      removeEventListener: {
        value: (type: string, listener: EventListener) => {
          listeners.delete(listener);
          remove(type, listener);
        },
      },
    });
  }

  /** Returns true if a listener remains on the signal of a run that has ended. */
  isStillHeard({ isOver, signal }: CallerSignal): boolean {
    return isOver && !signal.aborted && (this.#listeners.get(signal)?.size ?? 0) > 0;
  }

  /** Checks that an accepted decision is durable, and that no other is. */
  checkDecision(decision: Decision, receipt: DecisionReceipt): void {
    const world = this.#world;
    if (this.storeLied) return;
    const { calls } = world.watchOf(CONVERSATION).calls;
    const taken = receipt === 'applied' || receipt === 'held';
    // A cancel may have ended the call before the decision was stored.
    const moot = taken && calls.get(decision.callId)?.status === 'ended';
    const isDurable = moot ? taken : world.facts.deciders.has(decision.by ?? '');
    const detail = (): string => `${decision.by} received ${receipt}: ${JSON.stringify(decision)}`;
    world.check(taken === isDurable, taken ? 'I22' : 'I16', detail);
  }

  /** Checks that every error is a RunchartError. */
  checkError(act: string, error: unknown): void {
    const isTyped = RunchartError.isRunchartError(error);
    this.#world.check(isTyped, 'errors', () => `${act} failed with ${String(error)}`);
  }
}

/** Returns the text of a run's last reply, or of its interrupted reply if that is kept. */
function lastText(entries: readonly LogEntry[]): string {
  let text = '';
  let open = '';
  for (const entry of entries) {
    if (entry.type === 'agent-output' && entry.item.type === 'assistant') open += entry.item.text;
    if (entry.type !== 'model-reply') continue;
    text = open;
    open = '';
  }
  return open === '' ? text : open;
}
