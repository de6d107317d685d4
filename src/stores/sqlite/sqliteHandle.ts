/**
 * An open conversation of the SQLite store. Invariant: entries are stored as they were at the call, with the row of the
 * conversation. Closing waits for appends and blobs.
 */
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { CorruptLogError, RunchartError } from '../../errors.ts';
import { checkMediaType } from '../blobReference.ts';
import type { ConversationRow } from '../conversationRow.ts';
import { addToRow } from '../conversationSummary.ts';
import { entryIn, type WrittenEntry, writtenEntry } from '../entryJson.ts';
import type { LogHandle } from '../logStore.ts';
import { OrderedAppends } from '../orderedAppends.ts';
import type { DatabaseThread } from './databaseThread.ts';
import type { HeldLog, OpenedLog } from './logDatabase.ts';

export class SqliteHandle implements LogHandle {
  readonly #thread: DatabaseThread;
  readonly #held: HeldLog;
  readonly #closed: (handle: SqliteHandle) => void;
  readonly #appends: OrderedAppends<WrittenEntry>;
  #next: number;
  /** Undefined for an empty log. */
  #row: ConversationRow | undefined;
  /** Settles after all requested blobs. */
  #blobsPut: Promise<unknown> = Promise.resolve();
  /** A failed close can be repeated. */
  #closing: Promise<void> | 'open' | 'failed' = 'open';

  private constructor(thread: DatabaseThread, opened: OpenedLog, closed: (handle: SqliteHandle) => void) {
    const { id, log, token, next, row } = opened;
    this.#thread = thread;
    this.#held = { id, log, token };
    this.#closed = closed;
    this.#next = next;
    this.#row = row;
    this.#appends = new OrderedAppends<WrittenEntry>({
      id,
      nextSeq: () => this.#next,
      store: (pending) => this.#store(pending),
    });
  }

  /** Folds the row again if it is not that of the log. */
  static async of(
    thread: DatabaseThread,
    opened: OpenedLog,
    closed: (handle: SqliteHandle) => void,
  ): Promise<SqliteHandle> {
    const handle = new SqliteHandle(thread, opened, closed);
    if ((opened.row?.length ?? 0) === opened.next) return handle;
    handle.#row = undefined;
    for await (const entry of handle.read()) handle.#row = addToRow(handle.#row, entry, opened.id);
    return handle;
  }

  async *read(from = 0): AsyncGenerator<LogEntry> {
    this.#refuseClosed();
    const until = this.#next;
    for (let seq = Math.max(0, Math.ceil(from)); seq < until; ) {
      const { id, log } = this.#held;
      const texts = await this.#thread.request('read', { log, from: seq, until });
      if (texts.length === 0)
        throw new CorruptLogError('gap', `entry ${seq} of the log of conversation "${id}" is missing`, seq + 1);
      for (const text of texts) {
        this.#refuseClosed();
        yield entryIn(text, seq, id);
        seq += 1;
      }
    }
  }

  async append(entries: readonly LogEntry[], expectedSeq: number): Promise<void> {
    this.#refuseClosed();
    return this.#appends.add(entries, entries.map(writtenEntry), expectedSeq);
  }

  async putBlob(bytes: Uint8Array, mediaType: string): Promise<string> {
    this.#refuseClosed();
    checkMediaType(mediaType);
    const copy = new Uint8Array(bytes);
    const put = this.#thread.request('putBlob', { ...this.#held, bytes: copy, mediaType }, [copy.buffer]);
    this.#blobsPut = Promise.allSettled([this.#blobsPut, put]);
    return put;
  }

  async getBlob(reference: string): Promise<Uint8Array> {
    this.#refuseClosed();
    const { id, log } = this.#held;
    return this.#thread.request('getBlob', { id, log, reference });
  }

  close(): Promise<void> {
    if (typeof this.#closing === 'string') this.#closing = this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      await Promise.all([this.#appends.drained(), this.#blobsPut]);
      await this.#thread.request('release', this.#held);
      this.#closed(this);
    } catch (cause) {
      this.#closing = 'failed';
      throw cause;
    }
  }

  async #store(pending: readonly WrittenEntry[]): Promise<void> {
    if (pending.length === 0) return;
    let row = this.#row && { ...this.#row };
    for (const { entry } of pending) row = addToRow(row, entry, this.#held.id);
    const texts = pending.map(({ text }) => text);
    await this.#thread.request('append', { ...this.#held, from: this.#next, texts, row: row as ConversationRow });
    this.#row = row;
    this.#next += pending.length;
  }

  #refuseClosed(): void {
    if (this.#closing === 'open') return;
    throw new RunchartError('closed', `the log of conversation "${this.#held.id}" is closed: open it again`);
  }
}
