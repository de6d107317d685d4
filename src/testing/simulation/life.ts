/**
 * The loop of a simulated life. Rule: one thing happens a step, and everything it leads to happens before the next; at
 * the end nothing goes wrong any more, all comes to rest, and what must hold at rest is held, twice.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import { everyPart } from '../../onDemand.ts';
import type { Host } from './host.ts';
import { Rest } from './rest.ts';
import type { SimulatedStore } from './world/store.ts';
import { CONVERSATION, type World } from './world/world.ts';

/** More than any run has left to do once nothing goes wrong any more. */
const REST_STEPS = 5000;

/** Everything that is due in this process happens. */
const flush = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Of the caller: each says what is wrong with a durable log. */
type Invariants = readonly ((log: readonly LogEntry[]) => string | undefined)[];

export class Life {
  steps = 0;
  readonly #world: World;
  readonly #store: SimulatedStore;
  readonly #host: Host;
  readonly #invariants: Invariants;
  readonly #atRest: Rest;

  constructor(world: World, store: SimulatedStore, host: Host, invariants: Invariants = []) {
    this.#world = world;
    this.#store = store;
    this.#host = host;
    this.#invariants = invariants;
    this.#atRest = new Rest(world, store, host);
  }

  async run(maxSteps: number): Promise<void> {
    const world = this.#world;
    const unwatch = watchUncaught((error) => world.violate('uncaught', String(error)));
    try {
      // A file that is loaded in the middle of a life takes a time that no tape decides.
      await everyPart();
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
    else if (profile.asked > 0 && this.#host.isAsked && tape.chance(profile.asked)) this.#host.decide();
    else if (profile.neighbour && tape.chance(0.1)) this.#host.beside();
    else if (this.#host.isAway || tape.chance(inCommit ? 2 * act : act)) this.#host.act();
    else this.#goOn();
    await flush();
  }

  /** What comes while an append or a summary is under way meets what is not durable yet. */
  get #inCommit(): boolean {
    return this.#world.pending.some(({ port }) => port === 'store') || this.#isSummingUp;
  }

  get #isSummingUp(): boolean {
    const { facts, life } = this.#world;
    return facts.streams.some(({ sumsUp, isOver, life: of }) => sumsUp && !isOver && of === life);
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
    this.#world.reach('crashes', this.#place);
    this.#world.crash();
    this.#host.crashed();
  }

  /** Where a crash meets what is under way. */
  get #place(): string {
    if (this.#isSummingUp) return 'summary';
    const ports = new Set(this.#world.pending.map(({ port }) => port));
    for (const port of ['store', 'tool', 'model', 'plugin'] as const) if (ports.has(port)) return port;
    return this.#host.conversation?.status ?? 'closed';
  }

  /** Nothing goes wrong any more: everything comes to its end, then once more in a fresh process. */
  async #rest(): Promise<void> {
    const world = this.#world;
    if (world.violations.length > 0) return;
    world.calm = true;
    await this.#settleAll();
    this.#holds();
    if (world.tape.chance(0.2) && this.#host.conversation) this.#atRest.holdsViews(this.#host.conversation);
    if (world.tape.next(2) === 1) {
      this.#host.approve();
      await this.#settleAll();
      this.#holds();
    }
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
    if (world.profile.fork && world.violations.length === 0) await this.#host.fork(() => this.#settleAll('closed'));
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
    this.#host.others.holds();
    for (const invariant of this.#invariants) {
      const fault = invariant(this.#store.logOf(CONVERSATION));
      if (fault !== undefined) this.#world.violate(invariant.name || 'invariant', fault);
    }
  }

  async #settleAll(then: 'open' | 'closed' = 'open'): Promise<void> {
    const world = this.#world;
    for (let step = 0; step < REST_STEPS; step++) {
      await flush();
      this.steps += 1;
      if (world.pending.length > 0) world.settle(0);
      else if (this.#host.isAway && then === 'open') this.#host.open();
      else {
        if (this.#host.conversation) this.#atRest.holdsTimers(this.#host.conversation);
        if (!world.ring()) return;
      }
    }
    world.violate('I6', `it has not come to rest within ${REST_STEPS} steps`);
  }
}

type Told = (error: unknown) => void;

const lives = new Set<Told>();
const tell = (error: unknown): void => {
  for (const told of lives) told(error);
};

/** Until the function it returns is called. */
export function watchUncaught(told: Told): () => void {
  if (lives.size === 0) process.on('unhandledRejection', tell);
  lives.add(told);
  return () => {
    lives.delete(told);
    if (lives.size === 0) process.off('unhandledRejection', tell);
  };
}
