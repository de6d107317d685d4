/**
 * The loop of a simulated life. Rule: one thing happens a step, and everything it leads to happens before the next; at
 * the end nothing goes wrong any more, all comes to rest, and what must hold at rest is held, twice.
 */
import type { Host } from './host.ts';
import { Rest } from './rest.ts';
import type { SimulatedStore } from './store.ts';
import { watchUncaught } from './uncaught.ts';
import type { World } from './world.ts';

/** More than any run has left to do once nothing goes wrong any more. */
const REST_STEPS = 5000;

/** Everything that is due in this process happens. */
const flush = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class Life {
  steps = 0;
  readonly #world: World;
  readonly #host: Host;
  readonly #atRest: Rest;

  constructor(world: World, store: SimulatedStore, host: Host) {
    this.#world = world;
    this.#host = host;
    this.#atRest = new Rest(world, store, host);
  }

  async run(maxSteps: number): Promise<void> {
    const world = this.#world;
    const unwatch = watchUncaught((error) => world.violate('uncaught', String(error)));
    try {
      this.#host.open();
      await flush();
      this.#host.send();
      await flush();
      for (let step = 0; step < maxSteps && world.violations.length === 0; step++) await this.#step();
      await this.#rest();
    } finally {
      unwatch();
    }
  }

  async #step(): Promise<void> {
    const world = this.#world;
    const { tape, profile } = world;
    this.steps += 1;
    const { crash, act, jump } = profile;
    const inCommit = this.#inCommit;
    if (tape.chance(inCommit ? 3 * crash : crash)) this.#crash();
    else if (tape.chance(jump)) world.jump(tape.pick([60_000, -60_000, 86_400_000]));
    else if (this.#host.isAway || tape.chance(inCommit ? 2 * act : act)) this.#host.act();
    else this.#goOn();
    await flush();
  }

  /** What comes while an append is under way meets what is not durable yet. */
  get #inCommit(): boolean {
    return this.#world.pending.some(({ port }) => port === 'store');
  }

  /** Something under way comes to its end, or time passes; with nothing to do the host does something. */
  #goOn(): void {
    const world = this.#world;
    const { pending, timers, tape } = world;
    if (pending.length > 0 && !(timers.length > 0 && tape.chance(0.1))) world.settle(tape.next(pending.length));
    else if (!world.ring()) this.#host.act();
  }

  #crash(): void {
    this.#world.count('crash');
    this.#world.crash();
    this.#host.crashed();
  }

  /** Nothing goes wrong any more: everything comes to its end, then once more in a fresh process. */
  async #rest(): Promise<void> {
    const world = this.#world;
    if (world.violations.length > 0) return;
    world.calm = true;
    await this.#settleAll();
    this.#holds();
    if (world.tape.chance(0.2) && this.#host.conversation) this.#atRest.holdsViews(this.#host.conversation);
    if (world.tape.next(2) === 1) await this.#goOnLiving();
    const { conversation } = this.#host;
    const before = conversation && conversation.status !== 'error' ? this.#atRest.readingOf(conversation) : undefined;
    const entries = conversation?.log().length ?? 0;
    this.#crash();
    await flush();
    await this.#settleAll();
    this.#holds();
    if (before !== undefined && this.#host.conversation)
      this.#atRest.holdsReread(this.#host.conversation, before, entries);
    await this.#goOnLiving();
    if (this.#host.conversation) this.#atRest.holdsViews(this.#host.conversation);
  }

  /** What waits is ended, and the next message is answered like the first. */
  async #goOnLiving(): Promise<void> {
    const { conversation } = this.#host;
    if (this.#world.violations.length > 0 || !conversation) return;
    conversation.cancel();
    await this.#settleAll();
    this.#host.ask('are you there?');
    await this.#settleAll();
    this.#holds();
  }

  #holds(): void {
    const { conversation } = this.#host;
    if (conversation) this.#atRest.holds(conversation);
    else this.#world.violate('I6', 'the conversation does not open');
  }

  async #settleAll(): Promise<void> {
    const world = this.#world;
    for (let step = 0; step < REST_STEPS; step++) {
      await flush();
      this.steps += 1;
      if (world.pending.length > 0) world.settle(0);
      else if (this.#host.isAway) this.#host.open();
      else {
        if (this.#host.conversation) this.#atRest.holdsTimers(this.#host.conversation);
        if (!world.ring()) return;
      }
    }
    world.violate('I6', `it has not come to rest within ${REST_STEPS} steps`);
  }
}
