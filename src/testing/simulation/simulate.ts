/**
 * One simulated life of a conversation: real charts, real runtime, and a world in which everything that can go wrong
 * does. Rule: seed or tape decide all of it; the same numbers give the same log, byte for byte.
 */
import type { Decision, LogEntry } from '../../../machines/index.ts';
import { type Agent, createAgent } from '../../agent.ts';
import type { Ports } from '../../ports.ts';
import type { LogStore } from '../../stores/store.ts';
import { subAgents } from '../../subAgents/tool.ts';
import { Host } from './host.ts';
import { SimulatedModel } from './model.ts';
import { simulatedGuard, simulatedPlugin } from './plugin.ts';
import { drawProfile } from './profile.ts';
import { Rest } from './rest.ts';
import { SECRET } from './secret.ts';
import { SimulatedStore } from './store.ts';
import { recorded, seeded, type Tape } from './tape.ts';
import { Ledger, simulatedTools } from './tools.ts';
import { CONVERSATION, type Violation, World } from './world.ts';

export interface SimulationReport {
  readonly seed: number;
  readonly steps: number;
  readonly crashes: number;
  /** The durable log at the end. */
  readonly log: readonly LogEntry[];
  /** Every choice that was made; given back as `tape` it makes the same run. */
  readonly tape: readonly number[];
  readonly violations: readonly Violation[];
  /** Faults and acts by kind. */
  readonly faults: Readonly<Record<string, number>>;
}

export interface SimulationOptions {
  seed: number;
  /**
   * The agent to simulate, made anew for every process of the run: give it `ports` as its ports, and `world.store` as
   * its store, so that it outlives a crash. `world.model` calls the tools it is offered, and fails as models do.
   */
  agent?(ports: Partial<Ports>, world: { store: LogStore; model: SimulatedModel }): Agent;
  /** Choices to make instead of the seed's. */
  tape?: readonly number[];
  /** Steps before everything is let come to rest; 60 where it is not given. */
  maxSteps?: number;
}

/** More than any run has left to do once nothing goes wrong any more. */
const REST_STEPS = 5000;

/** Everything that is due in this process happens. */
const flush = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Lives one life. Never rejects for a defect it finds: that is a violation in the report. */
export async function simulate(options: SimulationOptions): Promise<SimulationReport> {
  const { seed, tape: numbers, maxSteps = 60 } = options;
  const tape: Tape = numbers ? recorded(numbers) : seeded(seed);
  const profile = drawProfile(tape);
  const world = new World(tape, profile, options.agent ? undefined : profile.policies);
  const store = new SimulatedStore(world);
  const model = new SimulatedModel(world);
  const own = ownAgent(world, store, model);
  const make = options.agent ?? own;
  const host = new Host(world, store, () => make(world.ports(), { store, model }));
  const life = new Life(world, store, host);
  await life.run(maxSteps);
  return {
    seed,
    steps: life.steps,
    crashes: world.life,
    log: store.logOf(CONVERSATION),
    tape: tape.taken,
    violations: world.violations,
    faults: Object.fromEntries(world.faults),
  };
}

/** The agent that is simulated where the caller has none: everything an agent can be made of. */
function ownAgent(world: World, store: SimulatedStore, model: SimulatedModel): (ports: Partial<Ports>) => Agent {
  const { profile, tape, facts } = world;
  const own = simulatedTools(world, new Ledger(world, store));
  const authorize = ({ by }: Decision): boolean => {
    const away = world.fault('unauthorized', profile.unauthorized);
    if (away && by !== undefined) facts.turnedAway.add(by);
    return !away;
  };
  return (ports) => {
    const plugins = profile.plugin > 0 ? [simulatedPlugin(world), simulatedGuard(world)] : [];
    if (tape.next(2) === 1) plugins.reverse();
    const { policies } = profile;
    const tools = profile.spawns ? [...own, subAgents({ tools: own, limits: { turns: 2 }, maxSubAgents: 2 })] : own;
    return createAgent({ model, tools, plugins, policies, store, cwd: '/', secrets: [SECRET], authorize, ports });
  };
}

class Life {
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
    const uncaught = (error: unknown): void => world.violate('uncaught', String(error));
    process.on('unhandledRejection', uncaught);
    try {
      this.#host.open();
      await flush();
      this.#host.send();
      await flush();
      for (let step = 0; step < maxSteps && world.violations.length === 0; step++) await this.#step();
      await this.#rest();
    } finally {
      process.off('unhandledRejection', uncaught);
    }
  }

  async #step(): Promise<void> {
    const world = this.#world;
    const { tape, profile } = world;
    this.steps += 1;
    if (tape.chance(profile.crash)) this.#crash();
    else if (tape.chance(profile.jump)) world.jump(tape.pick([60_000, -60_000, 86_400_000]));
    else if (this.#host.isAway || tape.chance(this.#inCommit ? 2 * profile.act : profile.act)) this.#host.act();
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
    this.#crash();
    await flush();
    await this.#settleAll();
    this.#holds();
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
    this.#atRest.holdsDelivered(conversation);
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
