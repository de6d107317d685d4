/**
 * Hints between processes, over LISTEN and NOTIFY. Invariant: nothing depends on a hint, because it may be lost: everything that must
 * arrive is in the tables, which are queried again and again. One connection is kept, unless the pool has a single one. A hint is under
 * 8,000 bytes, the limit of PostgreSQL.
 */
import type { Live } from '../../live.ts';
import { byteLength, ChannelConnection, PAYLOAD_BYTES_MAX } from './channelConnection.ts';
import type { Database } from './database.ts';
import type { Statements } from './statements.ts';
import type { StoreTime } from './storeTime.ts';

export type Hint =
  /** Entries were appended to these conversations. */
  | { entries: readonly string[] }
  /**
   * The sender follows these conversations, so their holders send it hints and signals for a while. `isNew`: the sender may have
   * received no part of the current reply.
   */
  | { followed: readonly string[]; isNew?: true }
  /** A stored act waits for the holder of this conversation. */
  | { act: string }
  /** The answer to the act with this id is stored. */
  | { answered: string }
  /** Signals of the holder of a conversation. They belong between the entries before the seq `next` and the entry `next`. */
  | { live: string; next: number; signals: readonly Live[] };

/** The intervals between queries of the tables: where hints arrive, and where none do. */
export const POLL_MS = { listening: 1000, polling: 200 } as const;

export const fitsHint = (hint: Hint): boolean => byteLength(JSON.stringify(hint)) <= PAYLOAD_BYTES_MAX;

export class Hints {
  readonly #database: Database;
  readonly #notify: string;
  readonly #channel: string;
  readonly #receive: (hint: Hint) => void;
  readonly #connection: ChannelConnection;
  #isClosed = false;

  constructor(database: Database, { notify }: Statements, channel: string, receive: (hint: Hint) => void) {
    this.#database = database;
    this.#notify = notify;
    this.#channel = channel;
    this.#receive = receive;
    this.#connection = new ChannelConnection(database, channel, (payload) => this.#notified(payload));
  }

  get time(): StoreTime {
    return this.#database.time;
  }

  /** Hints arrive. Without them, followers ask more often. */
  get isListening(): boolean {
    return this.#connection.isListening;
  }

  /** Begins to listen, if a connection can be kept. */
  listen(): void {
    this.#connection.listen();
  }

  send(hint: Hint): void {
    if (this.#isClosed) return;
    const payload = JSON.stringify(hint);
    if (byteLength(payload) > PAYLOAD_BYTES_MAX) return;
    void this.#database.query(this.#notify, [this.#channel, payload]).catch(() => {});
  }

  close(): void {
    this.#isClosed = true;
    this.#connection.close();
  }

  #notified(payload: string): void {
    try {
      this.#receive(JSON.parse(payload) as Hint);
    } catch {
      // Somebody else uses the channel.
    }
  }
}
