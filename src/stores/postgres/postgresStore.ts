/**
 * Conversations in PostgreSQL, for any number of processes. Invariant: one process holds a conversation at a time, by a lease with a
 * number that every append proves. No state depends on a connection: each statement is independent, so a pooler may be in between.
 */
import type { Json, LogEntry } from '../../../machines/vocabulary.ts';
import { RunchartError, SessionBusyError } from '../../errors.ts';
import type { Live } from '../../live.ts';
import { awaitAll } from '../../timeLimit.ts';
import { checkOptionsOf, flag, object, text, whole } from '../../validation.ts';
import { type ConversationRow, listedRow } from '../conversationRow.ts';
import { addToRow } from '../conversationSummary.ts';
import {
  type Act,
  type ConversationInfo,
  type ListOptions,
  type LogHandle,
  type LogStore,
  noConversation,
  type StoreOpening,
  withLookup,
} from '../logStore.ts';
import { cursorOf, placeOf } from '../rowTable.ts';
import { arrayText, Database, type PostgresPool, type Row, storeError, withOrigin } from './database.ts';
import { Followers } from './followers.ts';
import { type Hint, Hints } from './hints.ts';
import { AskedActs, TakenActs } from './holderActs.ts';
import { checkKey, ownerText, placeText } from './identifiers.ts';
import { Leases } from './leases.ts';
import { migrate, quotedSchema } from './migrations.ts';
import { readEntries } from './postgresEntries.ts';
import { type PostgresDatabase, PostgresHandle } from './postgresHandle.ts';
import { type Statements, statementsOf } from './statements.ts';

export type { PostgresPool } from './database.ts';

/** The options of `postgresStore`. */
export interface PostgresStoreOptions {
  /** The schema of the tables; it is created where it is missing. Default: `runchart`. */
  schema?: string;
  /** The time for which a process that does not answer keeps its conversations. At least 1,000. Default: 15,000. */
  leaseMs?: number;
  /** This process carries out acts of others, and takes over runs that it follows. Default: true. */
  serve?: boolean;
}

/** A store of conversations in PostgreSQL. `close()` ends its own connections; you close the pool yourself. */
export type PostgresStore = Required<LogStore> & { close(): Promise<void> };

const optionsValidator = object({ schema: text, leaseMs: whole(1000), serve: flag });

/**
 * Keeps conversations in PostgreSQL 13 or later. `pool` is a pool of `pg`, or an object with its `query` and `connect`; you close it
 * yourself. Throws ConfigurationError for an invalid option.
 */
export function postgresStore(pool: PostgresPool, options: PostgresStoreOptions = {}): PostgresStore {
  checkOptionsOf('postgresStore', options, optionsValidator);
  const { schema = 'runchart', leaseMs = 15_000, serve = true } = options;
  const logs = new PostgresLogs(new Database(pool), quotedSchema(schema), { leaseMs, serve });
  const store = {
    open: (id: string, opening?: StoreOpening) => logs.awaitAtClose(logs.open(id, opening)),
    list: (listing?: ListOptions) => logs.list(listing),
    delete: (id: string) => logs.delete(id),
    follow: (id: string, from?: number) => logs.follow(id, from),
    act: (id: string, act: Act) => logs.act(id, act),
    stateOf: (id: string) => logs.stateOf(id),
    stillHolds: (id: string) => logs.stillHolds(id),
    close: () => logs.close(),
  };
  return withOrigin(withLookup(store, (id, owner) => logs.exists(id, owner)) as typeof store, { pool, schema });
}

class PostgresLogs {
  readonly #database: Database;
  readonly #statements: Statements;
  readonly #schema: string;
  readonly #leases: Leases;
  readonly #shared: PostgresDatabase;
  #migrated: Promise<void> | undefined;
  #epochs: { next: number; end: number } = { next: 0, end: 0 };
  #numbering: Promise<void> | undefined;
  readonly #hints: Hints;
  readonly #followers: Followers;
  readonly #askedActs: AskedActs;
  readonly #takenActs: TakenActs | undefined;
  /** Openings and releases that have not ended. */
  readonly #underWay = new Set<Promise<unknown>>();
  #closed = false;

  constructor(database: Database, schema: string, { leaseMs, serve }: { leaseMs: number; serve: boolean }) {
    this.#database = database;
    this.#schema = schema;
    this.#statements = statementsOf(schema);
    this.#leases = new Leases(database, this.#statements, leaseMs);
    const channel = `runchart_${schema.slice(1, -1)}`;
    const hints = new Hints(database, this.#statements, channel, (hint) => this.#receive(hint));
    const shared = { database, statements: this.#statements, hints };
    this.#hints = hints;
    this.#followers = new Followers({ ...shared, leaseMs, takesOver: serve, ready: () => this.#ready() });
    this.#askedActs = new AskedActs(shared);
    this.#takenActs = serve ? new TakenActs(shared) : undefined;
    this.#shared = {
      ...shared,
      leases: this.#leases,
      takenActs: this.#takenActs,
      nextEpoch: () => this.#nextEpoch(),
      awaitAtClose: (work) => this.awaitAtClose(work),
    };
  }

  /** The store is closed only after this has ended, in either way. */
  awaitAtClose<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    const end = (): void => void this.#underWay.delete(work);
    work.then(end, end);
    return work;
  }

  async stateOf(id: string): Promise<{ length: number; isHeld: boolean }> {
    const row = await this.#row(id);
    return { length: Number(row?.length ?? 0), isHeld: row?.held === true };
  }

  stillHolds(id: string): Promise<boolean> {
    return this.#leases.stillHolds(id);
  }

  async exists(id: string, owner?: string): Promise<boolean> {
    try {
      await this.#find(id, { existing: true, owner });
      return true;
    } catch (error) {
      // An id that cannot be kept names no log.
      if (RunchartError.isRunchartError(error) && ['not_found', 'configuration'].includes(error.code)) return false;
      throw error;
    }
  }

  async open(id: string, opening: StoreOpening = {}): Promise<LogHandle> {
    checkKey(id);
    const { existing, owner } = opening;
    // This precedes the lease, because another owner must not learn that the conversation is open.
    if (existing || owner !== undefined) await this.#find(id, opening);
    await this.#ready();
    try {
      const epoch = await this.#nextEpoch();
      const heldAt = this.#database.time.now();
      const [found] = await this.#database.repeat(this.#statements.open, [
        id,
        placeText(id),
        epoch,
        this.#leases.leaseMs,
      ]);
      if (!found) throw new SessionBusyError(`conversation "${id}" is open already, here or in another process`);
      return await this.#opened(id, opening, { epoch, heldAt, found });
    } catch (cause) {
      throw storeError(`the log of conversation "${id}" cannot be opened`, cause);
    }
  }

  async list(options: ListOptions = {}): Promise<ConversationInfo[]> {
    const { owner, status, limit, cursor } = options;
    const after = cursor === undefined ? undefined : placeOf(cursor);
    await this.#ready();
    const { text: statement, values } = this.#statements.list({
      owner: owner === undefined ? undefined : ownerText(owner),
      status,
      limit,
      after: after && { updatedAt: after.updatedAt, place: placeText(after.id) },
    });
    const rows = await this.#database.repeat(statement, values).catch((cause) => {
      throw storeError('the conversations cannot be listed', cause);
    });
    return rows.flatMap(({ summary, held }) => {
      const row = JSON.parse(String(summary)) as ConversationRow;
      // The holder has written the row, so the row shows whether a run is active.
      const info = listedRow(row, held === true ? 'self' : 'nobody');
      return info ? [{ ...info, cursor: cursorOf(row) }] : [];
    });
  }

  async delete(id: string): Promise<void> {
    checkKey(id);
    await this.#ready();
    const { lockFamily, deleteAll, deleteRows } = this.#statements;
    try {
      await this.#database.transaction(async (connection) => {
        const { rows } = await connection.query(lockFamily, [id]);
        const held = rows.find((row) => row.held === true);
        if (held)
          throw new SessionBusyError(`conversation "${held.id}" is open, here or in another process: close it first`);
        // Blobs may have been stored before the first entry that names them, which never came.
        const ids = arrayText([id, ...rows.map((row) => String(row.id))]);
        for (const statement of [...deleteAll, deleteRows]) await connection.query(statement, [ids]);
      });
    } catch (cause) {
      throw storeError(`conversation "${id}" cannot be deleted`, cause);
    }
  }

  follow(id: string, from = 0): AsyncIterableIterator<LogEntry | Live> {
    checkKey(id);
    return this.#followers.follow(id, from);
  }

  async act(id: string, act: Act): Promise<Json> {
    checkKey(id);
    await this.#ready();
    return this.#askedActs.ask(id, act);
  }

  #receive(hint: Hint): void {
    if ('entries' in hint) return this.#followers.appended(hint.entries);
    if ('act' in hint) return this.#takenActs?.came(hint.act);
    if ('answered' in hint) return this.#askedActs.answered(hint.answered);
    if ('live' in hint) return this.#followers.signalled(hint.live, hint.next, hint.signals);
    const followed = new Set(hint.followed);
    for (const { id, liveFeed } of this.#leases.holders)
      if (followed.has(id)) liveFeed?.follow(this.#leases.leaseMs, hint.isNew === true);
  }

  /** Releases open conversations. The pool stays open. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#followers.close();
    this.#hints.close();
    const underWay = Promise.allSettled(this.#underWay);
    await awaitAll([...this.#leases.holders.map((handle) => handle.close()), underWay]);
  }

  /** Rejects with `not_found` for a log that this owner may not open, or that must exist. */
  async #find(id: string, { existing, owner }: StoreOpening): Promise<void> {
    const row = await this.#row(id);
    const isEmpty = !row || Number(row.length) === 0;
    if (isEmpty && existing) throw noConversation();
    if (!isEmpty && owner !== undefined && row.owner !== ownerText(owner)) throw noConversation();
  }

  async #row(id: string): Promise<Row | undefined> {
    checkKey(id);
    await this.#ready();
    const [row] = await this.#database.repeat(this.#statements.find, [id]).catch((cause) => {
      throw storeError(`conversation "${id}" cannot be found`, cause);
    });
    return row;
  }

  async #opened(
    id: string,
    { existing, owner }: StoreOpening,
    { epoch, heldAt, found }: { epoch: number; heldAt: number; found: Row },
  ): Promise<LogHandle> {
    const length = Number(found.length);
    try {
      // It may have been deleted and made again since it was found.
      if (existing && length === 0) throw noConversation();
      if (length > 0 && owner !== undefined && found.owner !== ownerText(owner)) throw noConversation();
      const row = await this.#rowOf(id, found);
      if (this.#closed) throw new RunchartError('closed', 'the store is closed');
      const handle = new PostgresHandle(this.#shared, { id, epoch, length, row });
      this.#leases.add(handle, heldAt);
      return handle;
    } catch (error) {
      // The error of the opening is thrown, even if the release fails too.
      await this.#database.repeat(this.#statements.release, [id, epoch]).catch(() => {});
      throw error;
    }
  }

  async #rowOf(id: string, { summary, length }: Row): Promise<ConversationRow | undefined> {
    let row = typeof summary === 'string' ? (JSON.parse(summary) as ConversationRow) : undefined;
    if ((row?.length ?? 0) === Number(length)) return row;
    row = undefined;
    for await (const entry of readEntries(this.#shared, id, 0, Number(length))) row = addToRow(row, entry, id);
    return row;
  }

  async #nextEpoch(): Promise<number> {
    while (this.#epochs.next >= this.#epochs.end) {
      this.#numbering ??= this.#takeEpochs().finally(() => {
        this.#numbering = undefined;
      });
      await this.#numbering;
    }
    this.#epochs.next += 1;
    return this.#epochs.next - 1;
  }

  async #takeEpochs(): Promise<void> {
    const [row] = await this.#database.repeat(this.#statements.epochs);
    const next = Number(row?.epoch);
    this.#epochs = { next, end: next + EPOCHS_AT_ONCE };
  }

  #ready(): Promise<void> {
    if (this.#closed) return Promise.reject(new RunchartError('closed', 'the store is closed'));
    this.#migrated ??= migrate(this.#database, this.#schema).catch((error) => {
      this.#migrated = undefined;
      throw error;
    });
    return this.#migrated;
  }
}

/** The increment of the sequence. */
const EPOCHS_AT_ONCE = 100;
