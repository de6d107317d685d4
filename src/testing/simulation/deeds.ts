/** What a host does to a conversation, and what it is told of it. Rule: what is told is held against the durable log. */
import type { Decision, Json } from '../../../machines/internal.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import { drawDecision } from './decision.ts';
import type { Told } from './watch/told.ts';
import type { SimulatedStore } from './world/store.ts';
import { CONVERSATION, type World } from './world/world.ts';

/** Simulated milliseconds that a cancel may take. */
const CANCEL_MS = 100;

export class Deeds {
  #decisions = 0;
  #last: Decision | undefined;
  readonly #world: World;
  readonly #store: SimulatedStore;
  readonly #told: Told;

  constructor(world: World, store: SimulatedStore, told: Told) {
    this.#world = world;
    this.#store = store;
    this.#told = told;
  }

  cancel(conversation: Conversation): void {
    const world = this.#world;
    const watch = this.#store.watchOf(CONVERSATION);
    const { cycle, runId } = watch;
    this.inTime(conversation.cancel(), 'a cancel').then(() => {
      // A store that does not answer in time, or refuses the stop, leaves it to what begins next.
      if (this.#told.isMisled || conversation.status === 'error' || cycle !== 'running') return;
      const id = runId ?? '';
      world.hold(
        watch.ended.has(id) || this.#store.lostEnds.has(id),
        'I22',
        () => `${runId} was cancelled and has no stop`,
      );
    });
  }

  /** Whatever ends a run does so at once, wherever it stands. */
  inTime(over: Promise<void>, what: string): Promise<void> {
    const world = this.#world;
    const since = world.steady;
    return over.then(() => {
      const took = world.steady - since;
      world.hold(took <= CANCEL_MS, 'I26', () => `${what} took ${took} ms`);
    });
  }

  decide(conversation: Conversation): void {
    const world = this.#world;
    const { calls } = this.#store.watchOf(CONVERSATION);
    this.#decisions += 1;
    const by = `person ${this.#decisions}`;
    const { pending } = conversation;
    const argsOf = (name: string): Json => world.argsFor(name);
    const asked = { pending, calls: calls.calls, last: this.#last, argsOf };
    const { whom, decision } = drawDecision(world.tape, asked, by);
    this.#last = decision;
    conversation.decide(decision).then(
      (receipt) => {
        world.reach('receipts', `${whom} ${receipt}`);
        if (this.#told.isMisled) return;
        const taken = receipt === 'applied' || receipt === 'held';
        // What a hurried cancel overtook is about a call that has its end by then.
        const moot = taken && calls.calls.get(decision.callId)?.status === 'ended';
        const holds = moot ? taken : world.facts.deciders.has(by);
        world.hold(
          taken === holds,
          taken ? 'I22' : 'I16',
          () => `${by} was told ${receipt}: ${JSON.stringify(decision)}`,
        );
      },
      (error: unknown) => this.#told.refused('decide', error),
    );
  }

  settle(conversation: Conversation): void {
    const { tape } = this.#world;
    const { unsettled } = conversation;
    if (unsettled.length === 0) return;
    const { callId } = tape.pick(unsettled);
    const how = tape.pick([{ ran: { by: 'host' } }, { didNotRun: true }, { retry: true }] as const);
    conversation.settle(callId, how).catch((error: unknown) => this.#told.refused('settle', error));
  }

  /** A subscriber that throws at times; it is shown every entry from where it began, each once. */
  watch(conversation: Conversation): void {
    const { tape } = this.#world;
    let next = tape.next(5);
    if (tape.chance(0.3)) conversation.view();
    conversation.log$(next).subscribe(({ seq }) => {
      this.#world.hold(seq === next, 'I3', () => `a subscriber is shown entry ${seq}, where ${next} is next`);
      next = seq + 1;
      if (tape.chance(0.05)) throw new Error('a subscriber broke');
    });
  }
}
