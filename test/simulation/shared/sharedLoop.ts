/**
 * The loop of a life of several processes. Invariant: each step does one thing, and all its consequences happen before the next one.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import { CLIENTS } from './sharedClients.ts';
import type { SharedLife } from './sharedLife.ts';
import type { SimulatedProcess } from './simulatedProcess.ts';

const REST_STEPS = 20_000;
/** A request that nobody can answer is refused after a minute. */
const REST_MS = 600_000;
/** Without any timer, time passes in these steps. */
const IDLE_MS = 500;

const flush = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const ASKS = {
  send: 6,
  decide: 3,
  cancel: 1.5,
  steer: 1,
  followUp: 1,
  resume: 1.5,
  settle: 1,
  show: 1,
  create: 0.5,
  sendAgain: 1,
  leave: 1,
} as const;
/** While a call waits for a person, most requests decide it. */
const WHILE_WAITING = { ...ASKS, decide: 14 } as const;

export class SharedLoop {
  steps = 0;
  readonly #life: SharedLife;
  #messages = 0;

  constructor(life: SharedLife) {
    this.#life = life;
  }

  async run(): Promise<void> {
    const { processes, clients, ids, shared, checks } = this.#life;
    for (const process of processes) process.start();
    for (const id of ids) clients.ask('create', id, {});
    await flush();
    for (let step = 0; step < shared.profile.steps && shared.violations.length === 0; step += 1) {
      this.steps += 1;
      this.#step();
      await flush();
    }
    checks.growing(ids);
    if (shared.violations.length > 0) return;
    shared.faultFree = true;
    for (const { world } of processes) world.faultFree = true;
    await this.#comeToRest();
    // A conversation whose holder died is recovered by the next request.
    for (const id of ids) clients.ask('show', id, {});
    await this.#comeToRest();
    for (const id of ids) clients.ask('cancel', id, {});
    await this.#comeToRest();
    this.#checkRest();
    for (const id of ids) clients.ask('send', id, { content: `are you there, ${id}?`, messageId: `last of ${id}` });
    await this.#comeToRest();
    this.#checkRest();
    for (const id of ids) this.#checkAnswered(id);
  }

  #step(): void {
    const { shared, processes } = this.#life;
    const { profile, tape } = shared;
    if (shared.fault('crash', profile.crash)) this.#among(processes, ({ isUp }) => isUp)?.crash();
    else if (shared.fault('stop', profile.stall))
      this.#among(processes, ({ isRunning }) => isRunning)?.stop(tape.chance(0.3));
    else if (shared.fault('cut', profile.cut))
      this.#among(processes, ({ isUp, cut }) => isUp && cut === 'no')?.cutOff(
        tape.pick(['silent', 'refusing'] as const),
      );
    else if (shared.fault('delay', profile.delay))
      shared.clock.elapsedMs += profile.leaseMs * tape.pick([0.4, 1.1] as const);
    else if (tape.chance(0.06)) this.#among(processes, needsRepair)?.repair();
    else if (tape.chance(profile.act)) this.#act();
    else if (tape.chance(profile.haste) && this.#ring()) return;
    else if (!this.#goOn() && !this.#ring()) this.#among(processes, needsRepair)?.repair();
  }

  #among(
    processes: readonly SimulatedProcess[],
    is: (process: SimulatedProcess) => boolean,
  ): SimulatedProcess | undefined {
    const those = processes.filter(is);
    return those.length > 0 ? this.#life.shared.tape.pick(those) : undefined;
  }

  /** A statement reaches the database, or something reaches a process. */
  #goOn(): boolean {
    const { shared, processes } = this.#life;
    const { arriving } = shared;
    const running = processes.filter(({ deliverable }) => deliverable.length > 0);
    const count = arriving.length + running.reduce((sum, { deliverable }) => sum + deliverable.length, 0);
    if (count === 0) return false;
    let at = shared.tape.next(count);
    const statement = arriving[at];
    if (statement) {
      shared.arrive(statement);
      return true;
    }
    at -= arriving.length;
    for (const { world } of running) {
      if (at < world.pending.length) {
        world.settle(at);
        return true;
      }
      at -= world.pending.length;
    }
    return false;
  }

  /** Fires the next timer of a process that runs. */
  #ring(): boolean {
    const { shared, processes } = this.#life;
    const owners = new Set(processes.filter(({ isRunning }) => isRunning).map(({ name }) => name));
    return shared.clock.ring((owner) => owner === CLIENTS || owners.has(owner), Number.MAX_VALUE);
  }

  /** A client acts. */
  #act(): void {
    const { shared, clients, processes, readers, ids } = this.#life;
    const { tape } = shared;
    const due = clients.due;
    if (due.length > 0 && tape.chance(0.5)) return clients.send(tape.pick(due));
    const waitingReaders = readers.filter(({ state }) => state === 'due');
    if (waitingReaders.length > 0 && tape.chance(0.4)) return tape.pick(waitingReaders).connect(processes);
    const id = tape.pick(ids);
    const waiting = waitingCalls(this.#life.checks.logOf(id));
    const kind = tape.weighted<keyof typeof ASKS>(waiting.length > 0 ? WHILE_WAITING : ASKS);
    switch (kind) {
      case 'sendAgain':
        return clients.sendAgain();
      case 'leave':
        return tape.pick(readers).leave();
      case 'send':
      case 'steer':
      case 'followUp':
        return this.#send(kind, id);
      case 'decide': {
        const callId = waiting.length > 0 ? tape.pick(waiting) : 'c1';
        const action = tape.pick(['approve', 'approve', 'deny'] as const);
        return void clients.ask('decide', id, { callId, action });
      }
      case 'settle': {
        const unknown = unknownCalls(this.#life.checks.logOf(id));
        if (unknown.length === 0) return;
        const how = tape.pick([{ ran: { by: 'host' } }, { didNotRun: true }, { retry: true }] as const);
        return void clients.ask('settle', id, { callId: tape.pick(unknown), how });
      }
      case 'resume':
        return void clients.ask('resume', id, {}, false);
      default:
        clients.ask(kind, id, {});
    }
  }

  #send(kind: 'send' | 'steer' | 'followUp', id: string): void {
    const { clients, shared } = this.#life;
    this.#messages += 1;
    const content = `${kind} ${this.#messages} to ${id};`;
    const isNamed = shared.tape.chance(0.7);
    const named = isNamed ? { messageId: `m${this.#messages}` } : {};
    clients.ask(kind, id, { content, ...named, ...(kind !== 'send' && { kind }) }, isNamed);
  }

  /** Without faults, every request is answered, and every reader has every entry. */
  async #comeToRest(): Promise<void> {
    const { shared, clients, processes, readers } = this.#life;
    const until = shared.clock.elapsedMs + REST_MS;
    for (let step = 0; step < REST_STEPS && shared.violations.length === 0; step += 1) {
      if (shared.clock.elapsedMs > until) break;
      for (const process of processes) if (needsRepair(process)) process.repair();
      for (const ask of clients.due) clients.send(ask);
      for (const reader of readers) {
        reader.comeAgain();
        if (reader.state === 'due' && !reader.isComplete) reader.connect(processes);
      }
      this.steps += 1;
      const [statement] = shared.statements;
      const busy = processes.find(({ deliverable }) => deliverable.length > 0);
      if (statement) shared.arrive(statement);
      else if (busy) busy.world.settle(0);
      else if (this.#isAtRest) return;
      else if (!this.#ring()) shared.clock.elapsedMs += IDLE_MS;
      await flush();
    }
    if (shared.violations.length === 0) shared.violate('I6', `it does not come to rest: ${this.#restless}`);
  }

  get #isAtRest(): boolean {
    return this.#restless === '';
  }

  /** The parts that are not at rest. */
  get #restless(): string {
    const { clients, readers, ids, shared } = this.#life;
    const asked = clients.asks.filter(({ state }) => state !== 'over').map(({ kind, by }) => `${kind} of ${by}`);
    const reading = readers
      .filter(({ isComplete }) => !isComplete)
      .map(({ next, state }) => `a reader ${state} at ${next}`);
    const running = ids.filter((id) => {
      const row = shared.database.conversations.get(id);
      if (row?.cycle !== 'running') return false;
      // The run of a dead holder is taken over where a reader follows it.
      const isRead = readers.some(({ conversation, state }) => conversation === id && state === 'reading');
      return isRead || row.leaseUntil > shared.clock.elapsedMs;
    });
    const twice = clients.underWay > asked.length ? ['a request that was sent twice'] : [];
    return [...asked, ...twice, ...reading, ...running.map((id) => `a run of ${id}`)].join(', ');
  }

  #checkRest(): void {
    const { checks, ids, clients, shared } = this.#life;
    if (shared.violations.length === 0) checks.atRest(ids, clients.asks);
  }

  #checkAnswered(id: string): void {
    const log = this.#life.checks.logOf(id);
    const ends = log.filter(({ runId }) => runId === `run_last of ${id}`);
    this.#life.shared.check(
      ends.some((end) => end.type === 'run-suspended' || (end.type === 'run-stop' && end.reason === 'completed')),
      'I6',
      () => `the last message to ${id} was not answered: ${JSON.stringify(ends.at(-1))}`,
    );
  }
}

const needsRepair = ({ isUp, isStopped, cut }: SimulatedProcess): boolean => !isUp || isStopped || cut !== 'no';

function waitingCalls(log: readonly LogEntry[]): string[] {
  const waiting = new Set<string>();
  for (const entry of log) {
    if (entry.type === 'tool-suspended') waiting.add(entry.callId);
    if (entry.type === 'tool-result') waiting.delete(entry.callId);
  }
  return [...waiting];
}

const unknownCalls = (log: readonly LogEntry[]): string[] =>
  log.flatMap((entry) => (entry.type === 'tool-result' && entry.outcome === 'unknown' ? [entry.callId] : []));
