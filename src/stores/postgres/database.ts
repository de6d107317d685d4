/**
 * The database of a store: a pool of the user's, one statement or one transaction at a time. Invariant: a statement whose answer was
 * lost may have been carried out, now or later. So every statement can be repeated, or its caller handles the loss.
 */
import { ConfigurationError, RunchartError, thrownMessage } from '../../errors.ts';
import { type StoreTime, timeOf } from './storeTime.ts';

export type Row = { readonly [column: string]: unknown };

/** A connection to a database. */
export interface Queries {
  /** Sends a statement with its values and returns the rows. */
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

/** A pool of `pg`, or an object with its `query` and `connect`. */
export interface PostgresPool extends Queries {
  /** Takes a connection from the pool. */
  connect(): Promise<unknown>;
}

/** A connection of the pool. Only `query` is required. */
export interface Connection extends Queries {
  /** True: the connection is broken, and leaves the pool. */
  release?(isBroken?: boolean): void;
  on?(event: 'error' | 'notification' | 'end', listener: (value: { payload?: string }) => void): unknown;
  off?(event: 'error' | 'notification' | 'end', listener: (value: { payload?: string }) => void): unknown;
}

/** The longest wait for an answer of the database. */
const ANSWER_MS = 30_000;
const ATTEMPTS = 4;

const stateOf = (error: unknown): string | undefined => {
  const code: unknown = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined;
};

/** The connection was lost before the database answered, so the statement may have taken effect. */
export function isAnswerLost(error: unknown): boolean {
  if (RunchartError.isRunchartError(error)) return false;
  const state = stateOf(error);
  return state === undefined || state.startsWith('08') || state.startsWith('57P');
}

/** The statement had no effect and may succeed the next time: conflicts, deadlocks, a server that is read-only for a while. */
export const isTransient = (error: unknown): boolean =>
  ['40001', '40P01', '55P03', '25006'].includes(stateOf(error) ?? '');

/** The error of the database as the library throws it. */
export const storeError = (what: string, cause: unknown): RunchartError =>
  RunchartError.isRunchartError(cause)
    ? cause
    : new RunchartError('store', `${what}: ${thrownMessage(cause)}`, { cause });

/** A list as PostgreSQL writes it, which every driver passes on as text. */
export const arrayText = (values: readonly string[]): string =>
  `{${values.map((value) => `"${value.replace(/[\\"]/g, '\\$&')}"`).join(',')}}`;

const ORIGIN = Symbol('origin');
/** Where a store has its tables. */
interface StoreOrigin {
  pool: PostgresPool;
  schema: string;
}

export const withOrigin = <S extends object>(store: S, origin: StoreOrigin): S =>
  Object.assign(store, { [ORIGIN]: origin });
/** The pool and the schema of a store that `postgresStore` has made. */
export const originOf = (store: object): StoreOrigin | undefined => (store as { [ORIGIN]?: StoreOrigin })[ORIGIN];

const ignore = (): void => {};

export class Database {
  readonly #pool: PostgresPool;
  readonly time: StoreTime;
  readonly #guarded = new WeakSet<Connection>();
  /** The pool has a single connection, so that none can be kept. */
  readonly hasOneConnection: boolean;

  /** Throws ConfigurationError for a value that is not a pool. `user`: the function that takes the pool. */
  constructor(pool: PostgresPool, user = 'postgresStore') {
    const { query, connect } = (pool ?? {}) as Partial<PostgresPool>;
    if (typeof query !== 'function' || typeof connect !== 'function')
      throw new ConfigurationError(
        `${user} needs a pool with query() and connect(), such as new Pool() of pg: npm install pg`,
      );
    this.#pool = pool;
    this.time = timeOf(pool);
    const { options, on } = pool as {
      options?: { max?: number };
      on?(event: 'error' | 'connect', listener: (connection: Connection) => void): void;
    };
    this.hasOneConnection = options?.max === 1;
    if (typeof on !== 'function') return;
    // A connection may break at any time, also while it is idle or before its caller receives it. Without listeners, that would end
    // the process.
    on.call(pool, 'error', ignore);
    on.call(pool, 'connect', (connection) => this.#guard(connection));
  }

  /** One statement, once. Rejects with the error of the driver, or with one of its own after the time. */
  query(text: string, values: unknown[] = [], answerMs = ANSWER_MS): Promise<readonly Row[]> {
    return this.#use(async (connection) => (await connection.query(text, values)).rows, answerMs);
  }

  /** One statement that may be repeated, until it is answered. Rejects with the error of the driver. */
  async repeat(text: string, values: unknown[] = []): Promise<readonly Row[]> {
    return this.#repeated(() => this.query(text, values));
  }

  /** One transaction that may be repeated as a whole. */
  transaction<T>(act: (connection: Queries) => Promise<T>): Promise<T> {
    return this.#repeated(() =>
      this.#use(async (connection) => {
        await connection.query('begin');
        try {
          const result = await act(connection);
          await connection.query('commit');
          return result;
        } catch (error) {
          await connection.query('rollback').catch(ignore);
          throw error;
        }
      }, ANSWER_MS),
    );
  }

  /** A connection to keep. The caller releases it. */
  async connect(): Promise<Connection> {
    const connection = (await this.#pool.connect()) as Connection;
    this.#guard(connection);
    return connection;
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.time.setTimer(ms, resolve));
  }

  #guard(connection: Connection): void {
    if (this.#guarded.has(connection)) return;
    this.#guarded.add(connection);
    connection.on?.('error', ignore);
  }

  async #repeated<T>(act: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await act();
      } catch (error) {
        if (attempt === ATTEMPTS || !(isAnswerLost(error) || isTransient(error))) throw error;
        await this.pause(20 * 4 ** attempt * this.time.random());
      }
    }
  }

  async #use<T>(act: (connection: Connection) => Promise<T>, answerMs: number): Promise<T> {
    const connecting = this.connect();
    const connection = await this.#inTime(connecting, answerMs).catch((error) => {
      connecting.then((late) => late.release?.(), ignore);
      throw error;
    });
    let isBroken = true;
    try {
      const result = await this.#inTime(act(connection), answerMs);
      isBroken = false;
      return result;
    } catch (error) {
      isBroken = isAnswerLost(error);
      throw error;
    } finally {
      connection.release?.(isBroken);
    }
  }

  /** Rejects if the database does not answer. The answer that comes later is ignored. */
  #inTime<T>(answer: Promise<T>, ms: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = (): void => reject(new Error(`the database has not answered for ${ms} ms`));
      const stopTimer = this.time.setTimer(ms, late);
      answer.then(resolve, reject).finally(stopTimer);
    });
  }
}
