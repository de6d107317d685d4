/**
 * One place for processes that serve the conversations: an agent over the shared store, with the handlers of a server. Invariant: a
 * stopped process receives nothing. A dead one never acts again, though its statements may still be executed.
 */
import { type Agent, createAgent } from '../../../src/agent.ts';
import { type PostgresStore, postgresStore } from '../../../src/stores/postgres/postgresStore.ts';
import { withTime } from '../../../src/stores/postgres/storeTime.ts';
import { SimulatedModel } from '../../../src/testing/simulation/world/simulatedModel.ts';
import type { Pending } from '../../../src/testing/simulation/world/simulatedWorld.ts';
import { createHandlers } from '../../../src/transports/index.ts';
import { SCHEMA } from './databaseModel.ts';
import { type Executed, type PoolOwner, ProcessPool } from './processPool.ts';
import { ProcessWorld, type SharedWorld } from './sharedWorld.ts';
import { sharedTools, type ToolLedger } from './toolLedger.ts';

/** The common parts of the processes of a life. */
export interface Site {
  readonly shared: SharedWorld;
  readonly ledger: ToolLedger;
  executed: Executed;
  notify(payload: string): void;
}

interface RunningProcess {
  readonly agent: Agent;
  readonly store: PostgresStore;
  readonly pool: ProcessPool;
  readonly handle: (request: Request) => Promise<Response>;
}

export class SimulatedProcess implements PoolOwner {
  readonly world: ProcessWorld;
  cut: PoolOwner['cut'] = 'no';
  readonly #site: Site;
  readonly #model: SimulatedModel;
  #running: RunningProcess | undefined;
  /** The time at which the process was stopped. */
  #stoppedAt: number | undefined;
  /** The machine was stopped, and its clock with it. */
  #isFrozen = false;
  /** Called if the process dies: its clients lose their connections. */
  #crashListeners: (() => void)[] = [];

  constructor(site: Site, place: number) {
    this.#site = site;
    this.world = new ProcessWorld(site.shared, place);
    this.#model = new SimulatedModel(this.world);
  }

  get name(): string {
    return this.world.owner;
  }

  get isUp(): boolean {
    return this.#running !== undefined;
  }

  get isRunning(): boolean {
    return this.isUp && this.#stoppedAt === undefined;
  }

  get isStopped(): boolean {
    return this.#stoppedAt !== undefined;
  }

  start(): void {
    const { shared, ledger, executed, notify } = this.#site;
    const { world } = this;
    const { leaseMs, idleMs, onRestart } = shared.profile;
    const pool = new ProcessPool({ shared, owner: this.#ownerOfNow(), executed, notify });
    const time = {
      now: () => shared.clock.elapsedMs - world.lagMs,
      setTimer: world.timer(),
      random: () => shared.tape.next(10) / 10,
    };
    const store = postgresStore(withTime(pool, time), { schema: SCHEMA, leaseMs });
    const ports = world.ports();
    const policies = { onRestart };
    const agent = createAgent({ model: this.#model, tools: sharedTools(world, ledger), store, ports, policies });
    const handle = createHandlers(agent, {
      authorize: (request) => ({ by: request.headers.get('x-by') ?? 'somebody' }),
      beatMs: Number.POSITIVE_INFINITY,
      limits: { idleMs },
      setTimer: ports.setTimer,
      now: ports.now,
    });
    this.#running = { agent, store, pool, handle };
  }

  /** A dead process keeps its name, and stays dead when the next one starts at its place. */
  #ownerOfNow(): PoolOwner {
    const { name, world } = this;
    const isAlive = world.lifeline();
    const place = this;
    return {
      name,
      get isRunning() {
        return isAlive() && place.isRunning;
      },
      get cut() {
        return place.cut;
      },
      receive: (pending) => void (isAlive() && this.receive(pending)),
    };
  }

  receive(pending: Pending): void {
    this.world.pending.push(pending);
  }

  /** The events that the process receives now. */
  get deliverable(): readonly Pending[] {
    return this.isRunning ? this.world.pending : [];
  }

  /** Answers a request of a client. Undefined if the process cannot receive it. */
  answer(request: Request): Promise<Response> | undefined {
    return this.#running?.handle(request);
  }

  onCrash(listener: () => void): void {
    this.#crashListeners.push(listener);
  }

  notified(payload: string): void {
    this.#running?.pool.notified(payload);
  }

  crash(): void {
    this.#site.shared.trace?.(`${this.name} dies`);
    const { pool } = this.#running ?? {};
    this.#running = undefined;
    this.#stoppedAt = undefined;
    this.cut = 'no';
    this.world.crash();
    pool?.crashed();
    for (const listener of this.#crashListeners.splice(0)) listener();
  }

  /** Its clock stood still for a time. */
  get isBehind(): boolean {
    return this.world.lagMs > 0;
  }

  stop(isFrozen: boolean): void {
    this.#site.shared.trace?.(`${this.name} is stopped`);
    this.#stoppedAt = this.#site.shared.clock.elapsedMs;
    this.#isFrozen = isFrozen;
  }

  goOn(): void {
    if (this.#stoppedAt === undefined) return;
    this.#site.shared.trace?.(`${this.name} goes on`);
    if (this.#isFrozen) this.world.lagMs += this.#site.shared.clock.elapsedMs - this.#stoppedAt;
    this.#stoppedAt = undefined;
  }

  cutOff(cut: 'silent' | 'refusing'): void {
    this.#site.shared.trace?.(`${this.name} is cut off: ${cut}`);
    this.cut = cut;
    this.#running?.pool.cutOff();
  }

  heal(): void {
    if (this.cut === 'no') return;
    this.#site.shared.trace?.(`${this.name} reaches the database`);
    this.cut = 'no';
    this.#running?.pool.heal();
  }

  /** Ends every obstacle to its work. */
  repair(): void {
    this.goOn();
    this.heal();
    if (!this.isUp) this.start();
  }

  /** Ends the process in order: its conversations are closed, and its leases released. */
  async leave(): Promise<void> {
    const { agent, store } = this.#running ?? {};
    await agent?.close();
    await store?.close();
  }
}
