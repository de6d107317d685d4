/**
 * What the library told its caller, held against the durable log. Rule: what was told is true, then and after a crash;
 * a refusal has a type. A store that lied to the library excuses what the library says of it.
 */
import type { LogEntry } from '../../../../machines/internal.ts';
import type { Conversation } from '../../../conversation/conversation.ts';
import type { Receipt } from '../../../conversation/receipts.ts';
import type { Run, RunResult } from '../../../conversation/run.ts';
import { RunchartError } from '../../../errors.ts';
import type { SimulatedStore } from '../world/store.ts';
import { CONVERSATION, type World } from '../world/world.ts';
import { answerOnRecord } from './answerWatch.ts';
import { sameJson } from './sameJson.ts';
import { sameSpent, sumOf } from './spending.ts';

/** Of an agent whose log a crash would not be taken from. */
const OTHER_STORE = 'the agent keeps its log in another store: name none, or wrap the one that is given';

export class Told {
  readonly #owed = new Set<string>();
  readonly #world: World;
  readonly #store: SimulatedStore;

  constructor(world: World, store: SimulatedStore) {
    this.#world = world;
    this.#store = store;
  }

  /** Messages whose receipts this process still owes an answer. */
  get unsettled(): readonly string[] {
    return [...this.#owed];
  }

  /** The store told the library of a failure where there was none. */
  get isMisled(): boolean {
    return this.#store.misled.size > 0;
  }

  crashed(): void {
    this.#owed.clear();
  }

  /** What a fresh process knows is what the log says; `durable`: how many entries when it began to open. */
  opened(conversation: Conversation, durable: number): void {
    if (!this.#store.logs.has(CONVERSATION)) return this.#world.violate('setup', OTHER_STORE);
    if (this.isMisled) return;
    const { length: stored } = this.#store.logOf(CONVERSATION);
    const { length: read } = conversation.log();
    // Where it goes on by itself, what it writes is durable a moment before it is shown.
    this.#world.hold(read >= durable && read <= stored, 'I20', () => `${read} entries were read of ${durable}`);
  }

  /** A run whose result says that it is over has its end in the log. */
  over(run: Run): void {
    const world = this.#world;
    run.text.catch(() => undefined);
    run.result.then((result) => {
      const watch = this.#store.watchOf(CONVERSATION);
      if (this.isMisled || result.cause === 'store' || !watch.runs.has(result.runId)) return;
      world.hold(watch.ended.has(result.runId), 'I22', () => `${result.runId} was told as over and has no end`);
      this.#holdsResult(result);
    });
  }

  /** What a run is said to have come to is what its entries say. */
  #holdsResult({ runId, reason, cause, text, turns, usage, costUsd, calls, output, error }: RunResult): void {
    const written = this.#store.logOf(CONVERSATION).filter((entry) => entry.runId === runId);
    // A run that was suspended may be cancelled before its caller has read the result: what stands behind is not its own.
    const ends = reason === null ? ['run-suspended'] : ['run-stop', 'run-suspended'];
    const stop = written.filter(({ type }) => ends.includes(type)).at(-1);
    const entries = stop && reason === null ? written.slice(0, written.indexOf(stop) + 1) : written;
    const hold = (same: boolean, what: string): void =>
      this.#world.hold(same, 'RESULT', () => `the result of ${runId} tells another ${what} than its log`);
    const suspended = stop?.type === 'run-suspended';
    hold(suspended ? reason === null : stop?.type === 'run-stop' && stop.reason === reason, 'reason');
    if (stop?.type === 'run-stop') hold(stop.cause === cause, 'cause');
    // Sub-agents may go on to tell what they used when the run is over.
    const at = stop && entries.indexOf(stop);
    const spent = sumOf(entries.slice(0, at));
    hold(this.#world.profile.spawns || sameSpent(spent, { ...usage, costUsd }), 'use');
    hold(turns === entries.filter(({ type }) => type === 'model-reply').length, 'number of turns');
    hold(text === lastText(entries), 'text');
    hold(sameJson(output, answerOnRecord(entries)?.value), 'answer');
    if (error?.code === 'output_invalid') this.#store.watchOf(CONVERSATION).answers?.gaveUp(runId);
    const mine = new Set(calls.map(({ callId }) => callId));
    hold(mine.size === calls.length, 'list of calls, one of them twice');
    for (const entry of entries) {
      if (entry.type === 'tool-result') hold(mine.has(entry.callId), `list of calls, without ${entry.callId}`);
    }
  }

  /** A receipt is settled with the truth. */
  owed({ messageId, delivered }: Receipt): void {
    this.#owed.add(messageId);
    delivered.then((word) => {
      this.#owed.delete(messageId);
      if (this.isMisled) return;
      const place = this.#store.watchOf(CONVERSATION).messages.places.get(messageId);
      const isTrue = (word === 'delivered') === (place === 'delivered');
      this.#world.hold(isTrue, 'I29', () => `${messageId} is ${place}, told ${word}`);
    }, this.#leftOpen(messageId));
  }

  /** The message is left to the next opening: it is still queued then, unless a store refused it or is silent. */
  #leftOpen(messageId: string): (error: unknown) => void {
    return (error) => {
      this.#owed.delete(messageId);
      const { queued } = this.#store.watchOf(CONVERSATION).messages;
      const left = queued.includes(messageId) || this.isMisled || this.#world.facts.hasLostMessage(messageId);
      // A close does not wait for ever: what the store has not answered by then may be there or not.
      const isSilent = this.#world.pending.some(({ port }) => port === 'store');
      this.#world.hold(left || isSilent, 'I29', () => `the receipt of ${messageId} says ${String(error)}`);
      this.refused('deliver', error);
    };
  }

  /** A refusal with a type is an answer; anything else is a defect. */
  refused(act: string, error: unknown): void {
    const known = RunchartError.isRunchartError(error);
    this.#world.hold(known, 'errors', () => `${act} failed with ${String(error)}`);
  }
}

/** Of the last reply of a run; of what was cut off, where that is kept. */
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
