/** Cancels, decides, settles and subscribes as a host does. */
import type { Decision, Json } from '../../../machines/internal.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import { drawDecision } from './drawDecision.ts';
import type { SimulatedStore } from './world/simulatedStore.ts';
import { CONVERSATION, type SimulatedWorld } from './world/simulatedWorld.ts';

export class HostActions {
  #decisions = 0;
  #last: Decision | undefined;
  readonly #world: SimulatedWorld;
  readonly #store: SimulatedStore;

  constructor(world: SimulatedWorld, store: SimulatedStore) {
    this.#world = world;
    this.#store = store;
  }

  cancel(conversation: Conversation): void {
    const afterwards = this.#world.checks.cancelling?.(conversation);
    const cancelled = conversation.cancel();
    afterwards?.(cancelled);
  }

  decide(conversation: Conversation): void {
    const world = this.#world;
    this.#decisions += 1;
    const { pending } = conversation;
    const { calls } = this.#store.callsOf(CONVERSATION);
    const argsOf = (name: string): Json => world.argsFor(name);
    const context = { pending, calls, last: this.#last, argsOf };
    const { target, decision } = drawDecision(world.tape, context, `person ${this.#decisions}`);
    this.#last = decision;
    conversation.decide(decision).then(
      (receipt) => {
        world.reach('receipts', `${target} ${receipt}`);
        world.checks.decided?.(decision, receipt);
      },
      (error: unknown) => world.checks.failed?.('decide', error),
    );
  }

  settle(conversation: Conversation): void {
    const { tape } = this.#world;
    const { unsettled } = conversation;
    if (unsettled.length === 0) return;
    const { callId } = tape.pick(unsettled);
    const how = tape.pick([{ ran: { by: 'host' } }, { didNotRun: true }, { retry: true }] as const);
    conversation.settle(callId, how).catch((error: unknown) => this.#world.checks.failed?.('settle', error));
  }

  /** Adds a subscriber that sometimes throws. */
  watch(conversation: Conversation): void {
    const { tape } = this.#world;
    const from = tape.next(5);
    if (tape.chance(0.3)) conversation.view();
    const shown = this.#world.checks.watching?.(from);
    conversation.log$(from).subscribe((entry) => {
      shown?.(entry);
      if (tape.chance(0.05)) throw new Error('a subscriber broke');
    });
  }
}
