/**
 * One connection that listens on a channel of the database. Invariant: a notification may be lost, because a lost connection is replaced
 * after a pause, and notifications of that time do not arrive. A pool with a single connection keeps none.
 */
import type { Connection, Database } from './database.ts';

/** PostgreSQL takes payloads of less than 8,000 bytes. */
export const PAYLOAD_BYTES_MAX = 7900;
const RETRY_MS = 1000;

export const byteLength = (text: string): number => new TextEncoder().encode(text).length;

export class ChannelConnection {
  readonly #database: Database;
  readonly #channel: string;
  readonly #receive: (payload: string) => void;
  #connection: Connection | undefined;
  #isWanted = false;
  #isConnecting = false;
  #isClosed = false;
  #endPause: () => void = () => {};

  /** `channel`: a name that needs no more than quotes. */
  constructor(database: Database, channel: string, receive: (payload: string) => void) {
    this.#database = database;
    this.#channel = channel;
    this.#receive = receive;
  }

  get isListening(): boolean {
    return this.#connection !== undefined;
  }

  /** Begins to listen, if a connection can be kept. */
  listen(): void {
    if (this.#isWanted || this.#isClosed || this.#database.hasOneConnection) return;
    this.#isWanted = true;
    void this.#connect();
  }

  close(): void {
    this.#isClosed = true;
    this.#endPause();
    this.#drop();
  }

  async #connect(): Promise<void> {
    if (this.#isConnecting) return;
    this.#isConnecting = true;
    while (!this.#isClosed && !this.#connection) {
      try {
        const connection = await this.#database.connect();
        connection.on?.('notification', this.#notified);
        connection.on?.('error', this.#broken);
        connection.on?.('end', this.#broken);
        this.#connection = connection;
        // A silent database would keep the connection.
        if (!this.#isClosed) await connection.query(`listen "${this.#channel}"`);
        if (this.#isClosed) this.#drop();
      } catch {
        this.#drop();
        await this.#pause();
      }
    }
    this.#isConnecting = false;
  }

  /** Ends at once when the listener is closed. */
  #pause(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      const stopTimer = this.#database.time.setTimer(RETRY_MS, resolve);
      this.#endPause = () => {
        stopTimer();
        resolve();
      };
    });
  }

  readonly #notified = ({ payload = '' }: { payload?: string }): void => this.#receive(payload);

  readonly #broken = (): void => {
    if (!this.#connection) return;
    this.#drop();
    void this.#connect();
  };

  #drop(): void {
    const connection = this.#connection;
    if (!connection) return;
    this.#connection = undefined;
    connection.off?.('notification', this.#notified);
    connection.off?.('error', this.#broken);
    connection.off?.('end', this.#broken);
    // A connection that listens must not go back to the pool.
    connection.release?.(true);
  }
}
