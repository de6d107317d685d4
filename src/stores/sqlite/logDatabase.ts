/**
 * The logs of a SQLite store, all in one file, used by the thread of the store. Invariant: each change of a log proves its lease in the
 * same transaction. A lease belongs to a process, and is free when that is dead. A change that is refused
 * changes nothing.
 */
import { createHash, randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { CorruptLogError, RunchartError, SessionBusyError, StoreConflictError } from '../../errors.ts';
import { blobReference, hashIn } from '../blobReference.ts';
import type { ConversationRow, Holder } from '../conversationRow.ts';
import { entryIn, parsed } from '../entryJson.ts';
import { identityIn, isAlive, isSameProcess, ownIdentity } from '../jsonl/processIdentity.ts';
import {
  type ConversationInfo,
  isSubAgentOf,
  type ListOptions,
  noConversation,
  refuseOtherOwner,
  refuseOutOfOrder,
  subAgentIds,
} from '../logStore.ts';
import { pageIn, placeOf } from '../rowTable.ts';
import {
  type Database,
  databaseError,
  openDatabase,
  type SqlRow,
  type SqlValue,
  type Statement,
} from './nodeSqlite.ts';

/** A log that is open in this process. */
export interface HeldLog {
  id: string;
  log: number;
  /** Proves the lease. */
  token: string;
}

export interface OpenedLog extends HeldLog {
  next: number;
  row: ConversationRow | undefined;
}

/** The bytes of the texts that are read at once. */
const BATCH_BYTES = 1024 * 1024;

export type Outcome = { value: unknown } | { error: unknown };

export class LogDatabase {
  readonly #path: string;
  readonly #database: Database;
  readonly #inode: number;
  readonly #statements = new Map<string, Statement>();

  constructor(path: string, synchronous: 'FULL' | 'NORMAL') {
    this.#path = path;
    this.#database = openDatabase(path, synchronous);
    this.#inode = statSync(path).ino;
  }

  /** Runs the acts in one transaction, with one sync. Each act is atomic, and so is the transaction. */
  commit(acts: readonly (() => unknown)[]): Outcome[] {
    let outcomes: Outcome[] = acts.map(() => ({ value: undefined }));
    try {
      this.#refuseReplaced();
      this.#run('BEGIN IMMEDIATE');
      outcomes = acts.map((act) => this.#alone(act));
      this.#run('COMMIT');
      return outcomes;
    } catch (cause) {
      try {
        this.#run('ROLLBACK');
      } catch {
        // SQLite has rolled back already.
      }
      const error = databaseError(`the database ${this.#path} stored nothing`, cause);
      return outcomes.map((outcome) => ('error' in outcome ? outcome : { error }));
    }
  }

  close(): void {
    this.#database.close();
  }

  open({ id, existing, owner }: { id: string; existing: boolean; owner: string | undefined }): OpenedLog {
    const row = this.#conversation(id);
    const next = row ? Number(row.length) : 0;
    if (existing && next === 0) throw noConversation();
    if (row && next > 0) refuseOtherOwner(this.#entry(row.log, 0, id), owner);
    this.#refuseHeld(row, id);
    const token = randomUUID();
    const log = row ? Number(row.log) : this.#insert(id);
    this.#refuseGap({ id, log, next });
    const holder = JSON.stringify(ownIdentity());
    this.#run('UPDATE conversations SET token = ?, holder = ? WHERE log = ?', token, holder, log);
    return { id, log, token, next, row: rowIn(row) };
  }

  append({ from, texts, row, ...held }: HeldLog & { from: number; texts: string[]; row: ConversationRow }): void {
    const next = this.#refuseLost(held);
    refuseOutOfOrder(held.id, next, [], from);
    const { log } = held;
    for (const [index, text] of texts.entries())
      this.#run('INSERT INTO entries (log, seq, entry) VALUES (?, ?, ?)', log, next + index, text);
    this.#run(
      'UPDATE conversations SET length = ?, listed = ?, updated_at = ?, owner = ?, cycle = ?, row = ? WHERE log = ?',
      next + texts.length,
      row.parentId === undefined ? 1 : 0,
      row.updatedAt,
      row.owner ?? null,
      row.cycle,
      JSON.stringify(row),
      log,
    );
  }

  putBlob({ bytes, mediaType, ...held }: HeldLog & { bytes: Uint8Array; mediaType: string }): string {
    this.#refuseLost(held);
    const hash = hashOf(bytes);
    this.#run('INSERT OR IGNORE INTO blobs (log, hash, bytes) VALUES (?, ?, ?)', held.log, hash, bytes);
    return blobReference(hash, mediaType);
  }

  /** Gives the lease back. A log without entries and blobs is removed. */
  release({ log, token }: HeldLog): void {
    this.#run('UPDATE conversations SET token = NULL, holder = NULL WHERE log = ? AND token = ?', log, token);
    this.#run(
      `DELETE FROM conversations WHERE log = ? AND length = 0 AND token IS NULL
        AND NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.log = conversations.log)`,
      log,
    );
  }

  /** Removes a conversation and its sub-agents, or nothing while one of them is open. */
  remove({ id }: { id: string }): void {
    const logs: number[] = [];
    const family = new Set([id]);
    for (const each of family) {
      const found = this.#conversation(each);
      if (!found) continue;
      this.#refuseHeld(found, each);
      logs.push(Number(found.log));
      for (const child of this.#children(Number(found.log), each)) family.add(child);
    }
    for (const log of logs)
      for (const table of ['entries', 'blobs', 'conversations']) this.#run(`DELETE FROM ${table} WHERE log = ?`, log);
  }

  /** The texts of entries from `from` to before `until`: at least one, if there is one, and no more than a batch. */
  read({ log, from, until }: { log: number; from: number; until: number }): string[] {
    const texts: string[] = [];
    let bytes = 0;
    const sql = 'SELECT entry FROM entries WHERE log = ? AND seq >= ? AND seq < ? ORDER BY seq';
    for (const { entry } of this.#prepared(sql).iterate(log, from, until)) {
      texts.push(entry as string);
      bytes += (entry as string).length;
      if (bytes > BATCH_BYTES) break;
    }
    return texts;
  }

  /** The texts of all entries of a log, also of one that is damaged or open elsewhere. */
  *texts({ id }: { id: string }): Generator<string> {
    const sql = 'SELECT entry FROM entries WHERE log = (SELECT log FROM conversations WHERE place = ?) ORDER BY seq';
    for (const { entry } of this.#prepared(sql).iterate(placeOfId(id))) yield String(entry);
  }

  getBlob({ id, log, reference }: { id: string; log: number; reference: string }): Uint8Array {
    const hash = hashIn(reference);
    const bytes = this.#row('SELECT bytes FROM blobs WHERE log = ? AND hash = ?', log, hash)?.bytes;
    if (!(bytes instanceof Uint8Array))
      throw new RunchartError('store', `no blob ${hash} beside the log of conversation "${id}"`);
    if (hashOf(bytes) !== hash)
      throw new CorruptLogError('corrupt', `the blob ${hash} of conversation "${id}" does not hold what was stored`);
    return bytes;
  }

  lookup({ id, owner }: { id: string; owner: string | undefined }): boolean {
    const row = this.#conversation(id);
    if (!row || row.length === 0) return false;
    if (owner === undefined) return true;
    const first = this.#entry(row.log, 0, id);
    return first?.type === 'conversation' && first.owner === owner;
  }

  list(options: ListOptions): ConversationInfo[] {
    const holders = new Map<unknown, Holder>();
    const heldBy = new WeakMap<ConversationRow, unknown>();
    const holderOf = (row: ConversationRow): Holder => {
      const text = heldBy.get(row);
      const holder = holders.get(text) ?? holderIn(text);
      holders.set(text, holder);
      return holder;
    };
    return pageIn(this.#rows(options, heldBy), options, holderOf);
  }

  *#rows(
    { owner, status, cursor }: ListOptions,
    heldBy: WeakMap<ConversationRow, unknown>,
  ): Generator<ConversationRow> {
    const conditions = ['listed = 1'];
    const values: SqlValue[] = [];
    const add = (condition: string, ...more: SqlValue[]): void => {
      conditions.push(condition);
      values.push(...more);
    };
    if (owner !== undefined) add('owner = ?', owner);
    if (status === 'active') add('holder IS NOT NULL');
    if (status === 'waiting') add("cycle = 'suspended'");
    if (cursor !== undefined) {
      const { updatedAt, id } = placeOf(cursor);
      add('updated_at <= ? AND (updated_at < ? OR place > ?)', updatedAt, updatedAt, placeOfId(id));
    }
    const sql = `SELECT row, holder FROM conversations WHERE ${conditions.join(' AND ')} ORDER BY updated_at DESC, place`;
    for (const found of this.#prepared(sql).iterate(...values)) {
      const row = rowIn(found);
      if (!row) continue;
      heldBy.set(row, found.holder);
      yield row;
    }
  }

  #children(log: number, id: string): string[] {
    const named: LogEntry[] = [];
    const sql = `SELECT entry FROM entries WHERE log = ? AND instr(entry, '"sub-agent"')`;
    for (const { entry } of this.#prepared(sql).iterate(log)) {
      const value = parsed(String(entry)) as LogEntry | null | undefined;
      if (value?.type === 'sub-agent') named.push(value);
    }
    return [...subAgentIds(named)].filter((child) => {
      const found = this.#conversation(child);
      return found !== undefined && isSubAgentOf(this.#firstOf(found.log), id);
    });
  }

  #conversation(id: string): SqlRow | undefined {
    return this.#row('SELECT log, length, row, token, holder FROM conversations WHERE place = ?', placeOfId(id));
  }

  #insert(id: string): number {
    return Number(this.#run('INSERT INTO conversations (id, place) VALUES (?, ?)', id, placeOfId(id)).lastInsertRowid);
  }

  #entry(log: unknown, seq: number, id: string): LogEntry | undefined {
    const found = this.#row('SELECT entry FROM entries WHERE log = ? AND seq = ?', Number(log), seq);
    return found && entryIn(found.entry, seq, id);
  }

  /** The first entry, unchecked. A log may name anything as its sub-agent. */
  #firstOf(log: unknown): LogEntry | undefined {
    const found = this.#row('SELECT entry FROM entries WHERE log = ? AND seq = 0', Number(log));
    return (parsed(String(found?.entry)) as LogEntry | null | undefined) ?? undefined;
  }

  #refuseHeld(found: SqlRow | undefined, id: string): void {
    const holder = found && livingIn(found.holder);
    if (!holder) return;
    const where = isSameProcess(holder, ownIdentity()) ? 'this process' : `process ${holder.pid} on ${holder.host}`;
    throw new SessionBusyError(
      `conversation "${id}" is open in ${where}: close it there, or wait for that process to end`,
    );
  }

  /** Returns the next seq. Throws StoreConflictError unless the lease is held. */
  #refuseLost({ id, log, token }: HeldLog): number {
    const found = this.#row('SELECT token, length FROM conversations WHERE log = ?', log);
    if (found?.token === token) return Number(found.length);
    throw new StoreConflictError(`the lease of conversation "${id}" is no longer held: it was removed or taken over`);
  }

  #refuseGap({ id, log, next }: { id: string; log: number; next: number }): void {
    const { count, last } =
      this.#row('SELECT count(*) AS count, max(seq) AS last FROM entries WHERE log = ?', log) ?? {};
    if (count === next && (last ?? -1) === next - 1) return;
    const has = `it has ${count} entries up to seq ${last}, expected ${next}`;
    throw new CorruptLogError('gap', `the log of conversation "${id}" cannot be used: ${has}`);
  }

  /** SQLite continues to write into a file that was removed. Throws StoreConflictError. */
  #refuseReplaced(): void {
    if (statSync(this.#path, { throwIfNoEntry: false })?.ino === this.#inode) return;
    throw new StoreConflictError(`the database ${this.#path} was removed or replaced while it was open`);
  }

  #alone(act: () => unknown): Outcome {
    this.#run('SAVEPOINT act');
    try {
      const value = act();
      this.#run('RELEASE act');
      return { value };
    } catch (error) {
      try {
        this.#run('ROLLBACK TO act');
        this.#run('RELEASE act');
      } catch {
        // The whole transaction was rolled back, by this error.
        throw error;
      }
      return { error: databaseError(`the database ${this.#path} refused`, error) };
    }
  }

  #prepared(sql: string): Statement {
    const existing = this.#statements.get(sql);
    if (existing) return existing;
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #row(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    return this.#prepared(sql).get(...values);
  }

  #run(sql: string, ...values: SqlValue[]) {
    return this.#prepared(sql).run(...values);
  }
}

/** The id as UTF-16, big-endian. */
function placeOfId(id: string): Uint8Array {
  return Buffer.from(id, 'utf16le').swap16();
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function rowIn(found: SqlRow | undefined): ConversationRow | undefined {
  return typeof found?.row === 'string' ? (parsed(found.row) as ConversationRow) : undefined;
}

function livingIn(holder: unknown) {
  const identity = typeof holder === 'string' ? identityIn(parsed(holder)) : null;
  return identity && isAlive(identity) ? identity : null;
}

function holderIn(heldBy: unknown): Holder {
  const holder = livingIn(heldBy);
  if (!holder) return 'nobody';
  return isSameProcess(holder, ownIdentity()) ? 'self' : 'other';
}
