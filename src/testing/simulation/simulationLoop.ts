/**
 * The loop of one simulation. Invariant: each step does one thing, and all its consequences happen before the next
 * step. At the end faults are switched off, all open work ends, and the conversation is checked at rest, twice.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import { everyPart } from '../../onDemand.ts';
import type { Host } from './host.ts';
import type { SimulatedStore } from './world/simulatedStore.ts';
import { CONVERSATION, type SimulatedWorld } from './world/simulatedWorld.ts';

/** A conversation without faults needs fewer steps to come to rest. */
const REST_STEPS = 5000;

/** Waits until all promises and immediates of this process have settled. */
const flush = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Checks of the caller. Each returns the fault of a durable log. */
type Invariants = readonly ((log: readonly LogEntry[]) => string | undefined)[];

export class SimulationLoop {
  steps = 0;
  readonly #world: SimulatedWorld;
  readonly #store: SimulatedStore;
  readonly #host: Host;
  readonly #invariants: Invariants;

  constructor(world: SimulatedWorld, store: SimulatedStore, host: Host, invariants: Invariants = []) {
    this.#world = world;
    this.#store = store;
    this.#host = host;
    this.#invariants = invariants;
  }

  async run(maxSteps: number): Promise<void> {
    const world = this.#world;
    const unwatch = watchUncaught((error) => world.violate('uncaught', String(error)));
    try {
      // The tape cannot determine the loading time of a file, so all files are loaded first.
      await everyPart();
      this.#host.open();
      await this.#flush();
      this.#host.send();
      await this.#flush();
      for (let step = 0; step < maxSteps && world.violations.length === 0; step++) await this.#step();
      await this.#comeToRest();
      await world.checks.over?.();
      await this.#flush();
    } finally {
      unwatch();
    }
  }

  /** Waits for all consequences of the last step. */
  async #flush(): Promise<void> {
    await flush();
    await this.#world.callerCode?.settled();
  }

  async #step(): Promise<void> {
    const world = this.#world;
    const { tape, profile } = world;
    this.steps += 1;
    const { crash, act, clockJump } = profile;
    const inCommit = this.#inCommit;
    if (tape.chance(inCommit ? 3 * crash : crash)) await this.#crash();
    else if (tape.chance(clockJump)) world.clock.offsetMs += tape.pick([60_000, -60_000, 86_400_000]);
    else if (profile.decides > 0 && this.#host.hasPendingCall && tape.chance(profile.decides)) this.#host.decide();
    else if (profile.secondConversation && tape.chance(0.1)) this.#host.actElsewhere();
    else if (world.checks.act && tape.chance(0.1)) this.#host.actOnOwn();
    else if (this.#host.isClosed || tape.chance(inCommit ? 2 * act : act)) this.#host.act();
    else this.#goOn();
    await this.#flush();
    world.checks.stepped?.();
  }

  /** An append or a summary is in progress. Acts and crashes are then more likely. */
  get #inCommit(): boolean {
    return this.#world.pending.some(({ port }) => port === 'store') || this.#isSummingUp;
  }

  get #isSummingUp(): boolean {
    const { streams, processId } = this.#world;
    return streams.some(({ sumsUp, isOver, processId: of }) => sumsUp && !isOver && of === processId);
  }

  /** Ends one open operation, or fires a timer. If there is neither, the host acts. */
  #goOn(): void {
    const world = this.#world;
    const { pending, clock, tape } = world;
    if (pending.length > 0 && !(clock.waiting > 0 && tape.chance(0.1))) world.settle(tape.next(pending.length));
    else if (!world.ring()) this.#host.act();
  }

  async #crash(): Promise<void> {
    this.#world.count('crash');
    this.#world.reach('crashes', this.#place);
    this.#world.crash();
    this.#host.crashed();
    await this.#world.checks.crashed?.();
  }

  /** The operation that a crash interrupts. */
  get #place(): string {
    if (this.#isSummingUp) return 'summary';
    const ports = new Set(this.#world.pending.map(({ port }) => port));
    for (const port of ['store', 'tool', 'model', 'plugin'] as const) if (ports.has(port)) return port;
    return this.#host.conversation?.status ?? 'closed';
  }

  /** Waits for rest without faults, and again in a new process. */
  async #comeToRest(): Promise<void> {
    const world = this.#world;
    if (world.violations.length > 0) return;
    world.faultFree = true;
    await this.#settleAll();
    this.#check();
    if (this.#host.conversation) world.checks.restedFirst?.(this.#host.conversation);
    if (world.violations.length > 0) return;
    if (world.tape.next(2) === 1) {
      this.#host.approve();
      await this.#settleAll();
      this.#check();
    }
    if (world.tape.next(2) === 1) await this.#sendAnother();
    const { conversation } = this.#host;
    const afterwards = conversation && world.checks.leaving?.(conversation);
    await this.#crash();
    await this.#flush();
    await this.#settleAll();
    this.#check();
    if (this.#host.conversation) afterwards?.(this.#host.conversation);
    await this.#sendAnother();
    if (this.#host.conversation) world.checks.restedLast?.(this.#host.conversation);
    if (world.profile.fork && world.violations.length === 0) await this.#host.fork(() => this.#settleAll('closed'));
  }

  /** Cancels the waiting calls, and sends another message. */
  async #sendAnother(): Promise<void> {
    const { conversation } = this.#host;
    if (this.#world.violations.length > 0 || !conversation) return;
    conversation.cancel();
    await this.#settleAll();
    this.#host.ask('are you there?');
    await this.#settleAll();
    this.#check();
  }

  #check(): void {
    const world = this.#world;
    const { conversation } = this.#host;
    if (conversation) {
      const { status } = conversation;
      const isAtRest = status !== 'active' && status !== 'cancelling';
      world.check(isAtRest, 'I6', () => `nothing is left to do and it is ${status}`);
      world.checks.atRest?.(conversation);
    } else world.violate('I6', 'the conversation does not open');
    for (const invariant of this.#invariants) {
      const fault = invariant(this.#store.logOf(CONVERSATION));
      if (fault !== undefined) world.violate(invariant.name || 'invariant', fault);
    }
  }

  async #settleAll(then: 'open' | 'closed' = 'open'): Promise<void> {
    const world = this.#world;
    for (let step = 0; step < REST_STEPS; step++) {
      await this.#flush();
      this.steps += 1;
      if (world.pending.length > 0) world.settle(0);
      else if (this.#host.isClosed && then === 'open') this.#host.open();
      else {
        world.checks.waiting?.(this.#host.conversation);
        if (world.violations.some(({ invariant }) => invariant === 'HANG') || !world.ring()) return;
      }
    }
    world.violate('I6', `it has not come to rest within ${REST_STEPS} steps`);
  }
}

type ErrorListener = (error: unknown) => void;

const listeners = new Set<ErrorListener>();
const notifyAll = (error: unknown): void => {
  for (const listener of listeners) listener(error);
};

/** Receives unhandled rejections until the returned function is called. */
export function watchUncaught(listener: ErrorListener): () => void {
  if (listeners.size === 0) process.on('unhandledRejection', notifyAll);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) process.off('unhandledRejection', notifyAll);
  };
}
