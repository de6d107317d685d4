/**
 * The rows of a directory of logs, in memory. Invariant: the log has priority over its row. A row counts while size, time and inode of its
 * file are those that were read, else the log is read again. The logs that this store has open change their rows with each
 * append. Other stores announce their rows (rowNotes.ts). A comparison of all files finds unannounced changes: at each list in a small
 * directory, and from time to time in a large one. The rows of a page are compared each time.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LogEntry } from '../../../../machines/vocabulary.ts';
import type { ConversationRow, Holder } from '../../conversationRow.ts';
import { addToRow } from '../../conversationSummary.ts';
import type { ConversationInfo, ListOptions } from '../../logStore.ts';
import { RowTable } from '../../rowTable.ts';
import { fileNameOf, idOf } from '../fileName.ts';
import { codeOf, resolveRegular, statNow, storeError } from '../fileSystem.ts';
import { holderOf } from '../lease.ts';
import { beginsWithHeader, readableEntries } from '../readDamagedLog.ts';
import { type FileStamp, isSameStamp, type RowNote, RowNotes, stampOf } from './rowNotes.ts';

/** In a directory with at most this number of logs, each list compares all of them. */
const SMALL = 200;
/** In a larger one, comparing takes at most this share of the time. */
const SHARE = 20;
const PAUSE_MS = 1000;
/** Two changes within this time may have the same timestamp. */
const TICK_MS = 100;
const AT_ONCE = 8;
/** Files that are compared before the event loop has a turn. */
const SLICE = 256;

/** The stored facts about one file. */
interface KnownFile {
  stamp: FileStamp;
  /** The path of the log itself, which a link may name. */
  path: string;
  holder: Holder;
  /** The time of the directory of leases while it had no holder. Null without a directory, undefined before it is read. */
  locked: number | null | undefined;
}

/** A log that this store has open. */
export class OpenLogRow {
  row: ConversationRow | undefined;
  /** False until a list reads the log. */
  isKnown: boolean;
  next: number;

  constructor(row: ConversationRow | undefined, next: number) {
    this.row = row;
    this.next = next;
    this.isKnown = (row?.length ?? 0) === next;
  }

  add(entries: readonly LogEntry[], id: string): void {
    for (const entry of entries) {
      // A list has read it from the file already.
      if (entry.seq < this.next) continue;
      this.next = entry.seq + 1;
      // An entry that its owner can change may differ from the stored one.
      if (!Object.isFrozen(entry)) this.isKnown = false;
      if (this.isKnown) this.row = addToRow(this.row, entry, id);
    }
  }
}

export class FileRows {
  readonly #root: string;
  readonly #notes: RowNotes;
  readonly #table = new RowTable();
  readonly #files = new Map<string, KnownFile>();
  readonly #own = new Map<string, OpenLogRow>();
  /** Logs that another store may have open. */
  readonly #elsewhere = new Set<string>();
  #refreshing: Promise<void> | undefined;
  #nextRefresh: Promise<void> | undefined;
  #sweeping: Promise<void> | undefined;
  /** When the next comparison of all files is due. */
  #sweepAt = 0;

  constructor(root: string) {
    this.#root = root;
    this.#notes = new RowNotes(root);
  }

  async list(options: ListOptions): Promise<ConversationInfo[]> {
    await this.#refreshed();
    const compared = new Set<string>();
    for (;;) {
      const page = this.#table.page(options, ({ id }) =>
        this.#own.has(id) ? 'self' : (this.#files.get(id)?.holder ?? 'nobody'),
      );
      const stale = page.filter(({ id }) => !compared.has(id) && this.#isStale(id));
      for (const { id } of page) compared.add(id);
      if (stale.length === 0) return page;
      await inGroups(stale, ({ id }) => this.#look(id));
    }
  }

  /** The log was opened for writing. `next`: the seq of its next entry. */
  async opened(id: string, path: string, file: { next: number; stamp: FileStamp }): Promise<OpenLogRow> {
    const recorded = this.#files.get(id);
    const row = recorded && isSameStamp(recorded.stamp, file.stamp) ? this.#table.get(id) : undefined;
    const own = new OpenLogRow(row, file.next);
    this.#own.set(id, own);
    this.#files.set(id, { stamp: file.stamp, path, holder: 'self', locked: undefined });
    await this.#notes.add([{ id, state: 'opened' }]);
    return own;
  }

  appended(id: string, own: OpenLogRow, entries: readonly LogEntry[]): void {
    own.add(entries, id);
    if (own.isKnown && this.#own.get(id) === own) this.#table.set(id, own.row);
  }

  /** The log is about to be released. `stamp`: undefined if the file could not be examined. */
  async closing(id: string, own: OpenLogRow, stamp: FileStamp | undefined): Promise<void> {
    if (this.#own.get(id) !== own) return;
    const path = this.#files.get(id)?.path;
    if (stamp === undefined || path === undefined || !own.isKnown) {
      await this.#notes.add([{ id, state: 'unknown' }]);
      this.#own.delete(id);
      this.#files.delete(id);
      this.#elsewhere.add(id);
      return;
    }
    const locked = settledTime(path);
    await this.#notes.add([{ id, state: 'read', stamp, row: own.row ?? null, locked: locked ?? null }]);
    this.#own.delete(id);
    this.#files.set(id, { stamp, path, holder: 'nobody', locked });
    this.#table.set(id, own.row);
  }

  async deleted(ids: readonly string[]): Promise<void> {
    for (const id of ids) this.#forget(id);
    await this.#notes.add(ids.map((id) => ({ id, state: 'deleted' })));
  }

  /** A call during a refresh waits for the next one, because the current one may have passed a file that has just changed. */
  #refreshed(): Promise<void> {
    if (!this.#refreshing) return this.#refreshNow();
    this.#nextRefresh ??= this.#refreshing.then(
      () => this.#refreshNow(),
      () => this.#refreshNow(),
    );
    return this.#nextRefresh;
  }

  #refreshNow(): Promise<void> {
    this.#nextRefresh = undefined;
    this.#refreshing = this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #refresh(): Promise<void> {
    for await (const note of this.#notes.read()) this.#take(note);
    const isDue = performance.now() >= this.#sweepAt;
    if (this.#sweepAt === 0 || this.#files.size <= SMALL) await this.#sweep();
    else if (isDue) void this.#sweep().catch(() => {});
    const unknown = [...this.#own].flatMap(([id, { isKnown }]) => (isKnown ? [] : [id]));
    await inGroups([...unknown, ...this.#elsewhere], (id) => this.#look(id));
  }

  /** The stamp of a noted row is compared before the row is listed. */
  #take(note: RowNote): void {
    const { id, state } = note;
    if (this.#own.has(id)) return;
    if (state === 'deleted' || state === 'unknown') this.#forget(id);
    if (state !== 'read') this.#elsewhere.add(id);
    if (state !== 'read') return;
    this.#elsewhere.delete(id);
    const { stamp, row, locked } = note;
    const path = this.#files.get(id)?.path ?? join(this.#root, fileNameOf(id));
    this.#files.set(id, { stamp, path, holder: 'nobody', locked });
    this.#table.set(id, row ?? undefined);
  }

  #sweep(): Promise<void> {
    this.#sweeping ??= this.#compareAll().finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  async #compareAll(): Promise<void> {
    const from = performance.now();
    const stale: string[] = [];
    const found = new Set<string>();
    for (const [index, name] of (await namesIn(this.#root)).entries()) {
      if (index % SLICE === SLICE - 1) await nextTurn();
      const id = idOf(name);
      if (id === null) continue;
      found.add(id);
      if (this.#isStale(id)) stale.push(id);
    }
    for (const id of this.#files.keys()) if (!found.has(id) && !this.#own.has(id)) stale.push(id);
    await inGroups(stale, (id) => this.#look(id));
    const now = performance.now();
    this.#sweepAt = now + Math.max(PAUSE_MS, SHARE * (now - from));
    const isWorthIt = stale.length > SMALL || this.#notes.count > 4 * this.#files.size;
    if (this.#files.size > SMALL && (isWorthIt || !this.#notes.exist)) await this.#notes.rewrite(this.#allNotes());
  }

  #allNotes(): RowNote[] {
    const notes: RowNote[] = [];
    for (const [id, { stamp, locked, holder }] of this.#files) {
      if (this.#own.has(id) || holder !== 'nobody') notes.push({ id, state: 'opened' });
      else notes.push({ id, state: 'read', stamp, row: this.#table.get(id) ?? null, locked: locked ?? null });
    }
    return notes;
  }

  /** True if the row of a file, or its holder, may have changed. Reads no file. */
  #isStale(id: string): boolean {
    const own = this.#own.get(id);
    if (own) return !own.isKnown;
    const recorded = this.#files.get(id);
    if (recorded?.holder !== 'nobody') return true;
    const stats = statOrNull(join(this.#root, fileNameOf(id)));
    if (!stats || !isSameStamp(stampOf(stats), recorded.stamp)) return true;
    return recorded.locked === undefined || recorded.locked !== (statOrNull(`${recorded.path}.lock`)?.mtimeMs ?? null);
  }

  /** Compares a file, and reads its log again if it has changed. An unreadable log is not listed. */
  async #look(id: string): Promise<void> {
    const own = this.#own.get(id);
    if (own?.isKnown) return;
    const name = join(this.#root, fileNameOf(id));
    try {
      const { path, exists } = await resolveRegular(name);
      if (!exists) return this.#forget(id);
      // This precedes the reading of the log, so that a later append gives another stamp.
      const stats = statNow(path);
      if (!stats) return this.#forget(id);
      const stamp = stampOf(stats);
      const recorded = this.#files.get(id);
      const isRead = !own && recorded !== undefined && isSameStamp(recorded.stamp, stamp);
      const row = isRead ? this.#table.get(id) : await rowIn(path, id);
      if (own) return this.#readOwn(id, own, row);
      const locked = settledTime(path);
      // An unreadable lease counts as held.
      const holder = await holderOf(`${path}.lock`).catch(() => 'other' as const);
      if (this.#own.has(id)) return;
      this.#files.set(id, { stamp, path, holder, locked: holder === 'nobody' ? locked : undefined });
      this.#table.set(id, row);
      if (holder === 'nobody') this.#elsewhere.delete(id);
      else this.#elsewhere.add(id);
    } catch {
      this.#forget(id);
    }
  }

  /** Entries that were appended during the reading may be missing; then the next list reads again. */
  #readOwn(id: string, own: OpenLogRow, row: ConversationRow | undefined): void {
    if ((row?.length ?? 0) < own.next || this.#own.get(id) !== own) return;
    own.row = row;
    own.next = row?.length ?? 0;
    own.isKnown = true;
    this.#table.set(id, row);
  }

  #forget(id: string): void {
    this.#files.delete(id);
    this.#elsewhere.delete(id);
    this.#table.set(id, undefined);
  }
}

async function rowIn(path: string, id: string): Promise<ConversationRow | undefined> {
  if (!(await beginsWithHeader(path))) return undefined;
  let row: ConversationRow | undefined;
  for await (const entry of readableEntries(path, id)) row = addToRow(row, entry, id);
  return row;
}

/** The time of the directory of leases; null if there is none, undefined if a lease could be taken without another time. */
function settledTime(path: string): number | null | undefined {
  const time = statOrNull(`${path}.lock`)?.mtimeMs ?? null;
  return time !== null && Math.abs(Date.now() - time) < TICK_MS ? undefined : time;
}

function statOrNull(path: string) {
  try {
    return statNow(path);
  } catch {
    return null;
  }
}

async function inGroups<T>(all: readonly T[], act: (each: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < all.length; at += AT_ONCE) await Promise.all(all.slice(at, at + AT_ONCE).map(act));
}

async function namesIn(root: string): Promise<string[]> {
  try {
    return await readdir(root);
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return [];
    throw storeError(`cannot list ${root}`, cause);
  }
}
