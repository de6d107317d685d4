/**
 * Hints between processes, over LISTEN and NOTIFY. Invariant: nothing depends on a hint, because it may be lost: what must arrive is
 * in the tables, and is asked for again and again. One connection is kept, unless the pool has a single one. A hint is under
 * 8,000 bytes, the limit of PostgreSQL.
 */
import type { Live } from '../../live.ts';
import type { Connection, Database } from './database.ts';
import type { Statements } from './statements.ts';
import type { StoreTime } from './storeTime.ts';

export type Hint =
  /** Entries were appended to these conversations. */
  | { entries: readonly string[] }
  /** Processes follow these conversations, and want their hints and signals for a while. */
  | { followed: readonly string[] /** They have nothing of a reply that is under way. */; isNew?: true }
  /** An act waits for the holder of the conversation. */
  | { act: string }
  | { answered: string }
  /** Signals of the holder, after the entries before this seq. */
  | { live: string; next: number; signals: readonly Live[] };

const BYTES_MAX = 7900;
const RETRY_MS = 1000;
/** How often the tables are asked where hints arrive, and where none do. */
export const POLL_MS = { listening: 1000, polling: 200 } as const;

const byteLength = (text: string): number => new TextEncoder().encode(text).length;

export const fitsHint = (hint: Hint): boolean => byteLength(JSON.stringify(hint)) <= BYTES_MAX;

export class Hints {
  readonly #database: Database;
  readonly #notify: string;
  readonly #channel: string;
  readonly #receive: (hint: Hint) => void;
  #connection: Connection | undefined;
  #isWanted = false;
  #isConnecting = false;
  #isClosed = false;

  constructor(database: Database, { notify }: Statements, channel: string, receive: (hint: Hint) => void) {
    this.#database = database;
    this.#notify = notify;
    this.#channel = channel;
    this.#receive = receive;
  }

  get time(): StoreTime {
    return this.#database.time;
  }

  /** Hints arrive. Without them, followers ask more often. */
  get isListening(): boolean {
    return this.#connection !== undefined;
  }

  /** Begins to listen, if a connection can be kept. */
  listen(): void {
    if (this.#isWanted || this.#isClosed || this.#database.hasOneConnection) return;
    this.#isWanted = true;
    void this.#connect();
  }

  send(hint: Hint): void {
    if (this.#isClosed) return;
    const payload = JSON.stringify(hint);
    if (byteLength(payload) > BYTES_MAX) return;
    void this.#database.query(this.#notify, [this.#channel, payload]).catch(() => {});
  }

  close(): void {
    this.#isClosed = true;
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
        await connection.query(`listen "${this.#channel}"`);
        if (this.#isClosed) this.#drop();
      } catch {
        this.#drop();
        await this.#database.pause(RETRY_MS);
      }
    }
    this.#isConnecting = false;
  }

  readonly #notified = ({ payload = '' }: { payload?: string }): void => {
    try {
      this.#receive(JSON.parse(payload) as Hint);
    } catch {
      // Somebody else uses the channel.
    }
  };

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
