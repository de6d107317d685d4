/** Cancels, decides, settles and subscribes as a host does. Rule: what it is answered is compared with the durable log. */
import type { Decision, Json } from '../../../machines/internal.ts';
import { type Conversation, runtimeOf } from '../../conversation/conversation.ts';
import { drawDecision } from './decision.ts';
import type { CallerChecks } from './watch/callerChecks.ts';
import type { SimulatedStore } from './world/store.ts';
import { CONVERSATION, type World } from './world/world.ts';

/** Simulated milliseconds that a cancel may take. */
const CANCEL_MS = 100;

export class HostActions {
  #decisions = 0;
  #last: Decision | undefined;
  readonly #world: World;
  readonly #store: SimulatedStore;
  readonly #callerChecks: CallerChecks;

  constructor(world: World, store: SimulatedStore, callerChecks: CallerChecks) {
    this.#world = world;
    this.#store = store;
    this.#callerChecks = callerChecks;
  }

  cancel(conversation: Conversation): void {
    const world = this.#world;
    const watch = this.#store.watchOf(CONVERSATION);
    const { cycle, runId } = watch;
    // A run whose stop the store was too slow for, or refused, is over: the next run or opening writes it.
    const isOver = runtimeOf(conversation).runId !== runId;
    this.checkDuration(conversation.cancel(), 'a cancel').then(() => {
      if (this.#callerChecks.storeLied || isOver || conversation.status === 'error' || cycle !== 'running') return;
      const id = runId ?? '';
      world.check(
        watch.ended.has(id) || this.#store.lostStops.has(id),
        'I22',
        () => `${runId} was cancelled and has no stop`,
      );
    });
  }

  /** Whatever ends a run does so within CANCEL_MS, in every state. */
  checkDuration(ended: Promise<unknown>, what: string): Promise<void> {
    const world = this.#world;
    const since = world.elapsedMs;
    return ended.then(() => {
      const took = world.elapsedMs - since;
      world.check(took <= CANCEL_MS, 'I26', () => `${what} took ${took} ms`);
    });
  }

  decide(conversation: Conversation): void {
    const world = this.#world;
    const { calls } = this.#store.watchOf(CONVERSATION);
    this.#decisions += 1;
    const by = `person ${this.#decisions}`;
    const { pending } = conversation;
    const argsOf = (name: string): Json => world.argsFor(name);
    const context = { pending, calls: calls.calls, last: this.#last, argsOf };
    const { target, decision } = drawDecision(world.tape, context, by);
    this.#last = decision;
    conversation.decide(decision).then(
      (receipt) => {
        world.reach('receipts', `${target} ${receipt}`);
        if (this.#callerChecks.storeLied) return;
        const taken = receipt === 'applied' || receipt === 'held';
        // A cancel may have ended the call before the decision was stored.
        const moot = taken && calls.calls.get(decision.callId)?.status === 'ended';
        const isDurable = moot ? taken : world.facts.deciders.has(by);
        world.check(
          taken === isDurable,
          taken ? 'I22' : 'I16',
          () => `${by} was told ${receipt}: ${JSON.stringify(decision)}`,
        );
      },
      (error: unknown) => this.#callerChecks.checkError('decide', error),
    );
  }

  settle(conversation: Conversation): void {
    const { tape } = this.#world;
    const { unsettled } = conversation;
    if (unsettled.length === 0) return;
    const { callId } = tape.pick(unsettled);
    const how = tape.pick([{ ran: { by: 'host' } }, { didNotRun: true }, { retry: true }] as const);
    conversation.settle(callId, how).catch((error: unknown) => this.#callerChecks.checkError('settle', error));
  }

  /** A subscriber that throws at times; it gets every entry from where it began, once. */
  watch(conversation: Conversation): void {
    const { tape } = this.#world;
    let next = tape.next(5);
    if (tape.chance(0.3)) conversation.view();
    conversation.log$(next).subscribe(({ seq }) => {
      this.#world.check(seq === next, 'I3', () => `a subscriber is shown entry ${seq}, where ${next} is next`);
      next = seq + 1;
      if (tape.chance(0.05)) throw new Error('a subscriber broke');
    });
  }
}
