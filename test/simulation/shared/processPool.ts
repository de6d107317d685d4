/**
 * The pool of one process: the loop decides when its statements reach the database and whether they are answered. Invariant: a lost
 * answer does not show the fate of the statement. The statement was executed, will be executed, or never is.
 */
import type { Connection, PostgresPool } from '../../../src/stores/postgres/database.ts';
import type { Pending } from '../../../src/testing/simulation/world/simulatedWorld.ts';
import { type Answer, type StatementName, statementNamed } from './databaseModel.ts';
import type { SentStatement, SharedWorld } from './sharedWorld.ts';

type Notified = (message: { payload?: string }) => void;

/** The caller receives the loss of a connection as an error without a code of the database. */
const connectionLost = (): Error => new Error('Connection terminated unexpectedly');
const refusal = (code: string): Error => Object.assign(new Error(`error ${code}`), { code });

const FAULTS = ['lostBefore', 'lostAfter', 'lostAndLate', 'conflict', 'full'] as const;
/** The share of answers that come later than the next event. */
const SLOW = 0.15;
/** The share of renewals during which another transaction holds the row. */
const SKIPPED = 0.1;

/** The process as its pool sees it. */
export interface PoolOwner {
  readonly name: string;
  readonly isRunning: boolean;
  /** The database cannot be reached: statements wait for an answer, or fail at once. */
  readonly cut: 'no' | 'silent' | 'refusing';
  /** Receives statements and hints while the process runs. */
  receive(pending: Pending): void;
}

/** Receives the executed statements of the database. */
export type Executed = (process: string, name: StatementName, values: readonly unknown[], answer: Answer) => void;

export interface PoolPorts {
  shared: SharedWorld;
  owner: PoolOwner;
  executed: Executed;
  /** Sends a hint to all processes. */
  notify(payload: string): void;
}

interface Reply {
  resolve(rows: Answer): void;
  reject(error: Error): void;
}

class Statement implements SentStatement {
  readonly pool: ProcessPool;
  readonly name: StatementName;
  readonly values: readonly unknown[];
  /** Undefined: nobody waits for the answer. */
  readonly reply: Reply | undefined;

  constructor(pool: ProcessPool, name: StatementName, values: readonly unknown[], reply: Reply | undefined) {
    this.pool = pool;
    this.name = name;
    this.values = values;
    this.reply = reply;
  }

  get isOnItsWay(): boolean {
    return this.reply === undefined || this.pool.isConnected;
  }

  arrive(): void {
    this.pool.arrived(this);
  }
}

export class ProcessPool implements PostgresPool {
  readonly options: { max?: number };
  readonly #ports: PoolPorts;
  readonly #listening = new Set<PooledConnection>();
  /** The replies of statements that the database does not answer. */
  #unanswered: Reply[] = [];

  constructor(ports: PoolPorts) {
    this.#ports = ports;
    this.options = ports.shared.profile.isPooled ? { max: 1 } : {};
  }

  get isConnected(): boolean {
    return this.#ports.owner.cut === 'no';
  }

  async connect(): Promise<Connection> {
    return new PooledConnection(this);
  }

  async query(text: string, values: unknown[] = []): Promise<{ rows: Answer }> {
    return { rows: await this.send(text, values) };
  }

  send(text: string, values: readonly unknown[]): Promise<Answer> {
    const { owner, shared } = this.#ports;
    // The tables are there.
    if (text.startsWith('select max(version)')) return Promise.resolve([{ version: 1 }]);
    return new Promise((resolve, reject) => {
      if (owner.cut === 'refusing') return reject(connectionLost());
      const reply = { resolve, reject };
      if (owner.cut === 'silent') return void this.#unanswered.push(reply);
      shared.statements.push(new Statement(this, statementNamed(text), values, reply));
    });
  }

  arrived({ name, values, reply }: Statement): void {
    const { shared } = this.#ports;
    const { tape, profile } = shared;
    if (!reply) return void this.#execute(name, values);
    if (name === 'notify') {
      reply.resolve([]);
      return this.#ports.notify(String(values[1]));
    }
    const fault = shared.fault('statement', profile.statement) ? tape.pick(FAULTS) : undefined;
    if (fault) shared.trace?.(`${this.#ports.owner.name} ${name} ${fault}`);
    switch (fault) {
      case undefined:
        return this.#answer(reply, this.#execute(name, values));
      case 'lostBefore':
        return reply.reject(connectionLost());
      case 'lostAfter':
        this.#execute(name, values);
        return reply.reject(connectionLost());
      case 'lostAndLate':
        shared.statements.push(new Statement(this, name, values, undefined));
        return reply.reject(connectionLost());
      case 'conflict':
        return reply.reject(refusal('40001'));
      case 'full':
        return reply.reject(refusal('53100'));
    }
  }

  listen(connection: PooledConnection): void {
    this.#listening.add(connection);
  }

  forget(connection: PooledConnection): void {
    this.#listening.delete(connection);
  }

  /** A hint of any process. */
  notified(payload: string): void {
    const { shared, owner } = this.#ports;
    for (const connection of this.#listening) {
      if (!this.isConnected || shared.fault('hint-lost', shared.profile.hint)) continue;
      owner.receive({ port: 'plugin', settle: () => connection.notified(payload) });
    }
  }

  /** Cuts the process off from the database. A statement that was sent is executed later without an answer, or never. */
  cutOff(): void {
    for (const { reply } of this.#abandonAll()) if (reply) this.#unanswered.push(reply);
    if (this.#ports.owner.cut === 'refusing') this.#break();
  }

  /** The database can be reached again, over new connections. */
  heal(): void {
    this.#break();
  }

  /** The process has died. */
  crashed(): void {
    this.#abandonAll();
    this.#listening.clear();
    this.#unanswered = [];
  }

  #abandonAll(): Statement[] {
    const { shared } = this.#ports;
    const own = shared.statements.filter(
      (statement): statement is Statement =>
        statement instanceof Statement && statement.pool === this && !!statement.reply,
    );
    for (const statement of own) {
      shared.statements.splice(shared.statements.indexOf(statement), 1);
      const { name, values } = statement;
      if (name === 'notify') continue;
      const fate = shared.tape.pick(['never', 'executed', 'later'] as const);
      if (fate === 'executed') this.#execute(name, values);
      if (fate === 'later') shared.statements.push(new Statement(this, name, values, undefined));
    }
    return own;
  }

  #break(): void {
    for (const connection of this.#listening) connection.break();
    this.#listening.clear();
    for (const { reject } of this.#unanswered.splice(0)) reject(connectionLost());
  }

  #execute(name: StatementName, values: readonly unknown[]): Answer {
    const { shared, owner, executed } = this.#ports;
    const skips = name === 'renew' ? () => shared.fault('row-locked', SKIPPED) : undefined;
    const answer = shared.database.execute(name, values, shared.clock.elapsedMs, skips);
    shared.trace?.(
      `${owner.name} ${name} ${JSON.stringify(values).slice(0, 120)} ${JSON.stringify(answer).slice(0, 80)}`,
    );
    executed(owner.name, name, values, answer);
    return answer;
  }

  #answer(reply: Reply, rows: Answer): void {
    const { shared, owner } = this.#ports;
    const settle = (): void => reply.resolve(rows);
    if (owner.isRunning && !shared.fault('answer-slow', SLOW)) settle();
    else owner.receive({ port: 'store', settle });
  }
}

/** A connection for one statement at a time, or for hints. */
class PooledConnection implements Connection {
  readonly #pool: ProcessPool;
  readonly #notified = new Set<Notified>();
  readonly #broken = new Set<Notified>();

  constructor(pool: ProcessPool) {
    this.#pool = pool;
  }

  async query(text: string, values: unknown[] = []): Promise<{ rows: Answer }> {
    if (!text.startsWith('listen ')) return { rows: await this.#pool.send(text, values) };
    if (!this.#pool.isConnected) throw connectionLost();
    this.#pool.listen(this);
    return { rows: [] };
  }

  on(event: 'error' | 'notification' | 'end', listener: Notified): void {
    if (event === 'notification') this.#notified.add(listener);
    if (event === 'end') this.#broken.add(listener);
  }

  off(event: 'error' | 'notification' | 'end', listener: Notified): void {
    if (event === 'notification') this.#notified.delete(listener);
    if (event === 'end') this.#broken.delete(listener);
  }

  release(): void {
    this.#pool.forget(this);
  }

  notified(payload: string): void {
    for (const listener of this.#notified) listener({ payload });
  }

  break(): void {
    for (const listener of this.#broken) listener({});
  }
}
