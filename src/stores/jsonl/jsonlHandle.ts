/**
 * An open conversation of the JSONL store: its log and its blobs. Invariant: entries are stored as they were at the call.
 * Each write checks the lease. Closing waits for appends and blobs.
 */
import type { Diagnostic, LogEntry } from '../../../machines/vocabulary.ts';
import { RunchartError, StoreConflictError } from '../../errors.ts';
import type { LogHandle } from '../logStore.ts';
import { OrderedAppends } from '../orderedAppends.ts';
import { getBlob, putBlob } from './blobFiles.ts';
import { storeError } from './fileSystem.ts';
import type { Lease } from './lease.ts';
import type { Pending } from './lineFormat.ts';
import type { LogFile } from './logFile.ts';
import type { FileOwner, OpenFiles } from './openFiles.ts';
import type { FileStamp } from './rows/rowNotes.ts';

/** The row of the conversation in lists. */
export interface HandleRow {
  appended(entries: readonly LogEntry[]): void;
  closing(stamp: FileStamp | undefined): Promise<void>;
}

interface Blobs {
  folder: string;
  durable: boolean;
}

/** The resources that the conversations of a store share. */
interface Shared {
  blobs: Blobs;
  files: OpenFiles;
}

export class JsonlHandle implements LogHandle, FileOwner {
  readonly #id: string;
  readonly #file: LogFile;
  readonly #lease: Lease;
  readonly #blobs: Blobs;
  readonly #files: OpenFiles;
  readonly #row: HandleRow;
  #hasOpenFiles = true;
  readonly #appends: OrderedAppends<Pending>;
  /** Settles after all requested blobs. */
  #blobsPut: Promise<unknown> = Promise.resolve();
  /** A failed close can be repeated. */
  #closing: Promise<void> | 'open' | 'failed' = 'open';

  constructor(id: string, file: LogFile, lease: Lease, { blobs, files, row }: Shared & { row: HandleRow }) {
    this.#id = id;
    this.#file = file;
    this.#lease = lease;
    this.#blobs = blobs;
    this.#files = files;
    this.#row = row;
    this.#appends = new OrderedAppends<Pending>({
      id,
      nextSeq: () => file.next,
      store: (pending) => files.use(() => this.#store(pending), this),
      appended: (entries) => row.appended(entries),
    });
  }

  get hasOpenFiles(): boolean {
    return this.#hasOpenFiles;
  }

  async suspend(): Promise<void> {
    this.#hasOpenFiles = false;
    // A failure loses nothing that was acknowledged.
    await Promise.all([this.#file.close().catch(() => {}), this.#lease.suspend()]);
  }

  get notices(): readonly Diagnostic[] {
    return this.#file.notices;
  }

  read(from = 0): AsyncIterable<LogEntry> {
    const parsed = this.#file.takeParsed(from);
    return parsed ? parsedEntries(parsed, () => this.#refuseClosed()) : this.#readFile(from);
  }

  async *#readFile(from: number): AsyncGenerator<LogEntry> {
    this.#refuseClosed();
    try {
      for await (const entry of this.#file.readEntries(from)) {
        yield entry;
        this.#refuseClosed();
      }
    } catch (cause) {
      this.#refuseClosed();
      throw storeError(`cannot read the log of conversation "${this.#id}"`, cause);
    }
  }

  async append(entries: readonly LogEntry[], expectedSeq: number): Promise<void> {
    this.#refuseClosed();
    return this.#appends.add(entries, this.#file.pending(entries), expectedSeq);
  }

  async putBlob(bytes: Uint8Array, mediaType: string): Promise<string> {
    this.#refuseClosed();
    const put = putBlob(this.#blobs.folder, new Uint8Array(bytes), mediaType, this.#blobs.durable);
    this.#blobsPut = Promise.allSettled([this.#blobsPut, put]);
    return put;
  }

  async getBlob(reference: string): Promise<Uint8Array> {
    this.#refuseClosed();
    return getBlob(this.#blobs.folder, reference);
  }

  close(): Promise<void> {
    if (typeof this.#closing === 'string') this.#closing = this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      await Promise.all([this.#appends.drained(), this.#blobsPut]);
      await this.#files.use(() => this.#release(), this);
    } catch (cause) {
      this.#closing = 'failed';
      throw storeError(`cannot close the log of conversation "${this.#id}"`, cause);
    }
  }

  async #release(): Promise<void> {
    await this.#row.closing(this.#file.stamp());
    await this.#file.close().finally(() => this.#lease.release());
    this.#hasOpenFiles = false;
  }

  async #store(pending: readonly Pending[]): Promise<void> {
    this.#hasOpenFiles = true;
    await this.#lease.resume();
    if (!this.#lease.holds()) {
      throw new StoreConflictError(
        `lease ${this.#lease.token} of conversation "${this.#id}" is no longer held: it was removed or taken over`,
      );
    }
    if (pending.length > 0) await this.#file.append(pending);
  }

  #refuseClosed(): void {
    if (this.#closing === 'open') return;
    throw new RunchartError('closed', `the log of conversation "${this.#id}" is closed: open it again`);
  }
}

/**
 * Reads entries that are in memory already. `refuseClosed` throws if the log was closed. It is no generator, because the
 * promises of a generator take three times the memory of the entries.
 */
function parsedEntries(
  entries: readonly LogEntry[],
  refuseClosed: () => void,
): AsyncIterableIterator<LogEntry, undefined> {
  let position = 0;
  const reader: AsyncIterableIterator<LogEntry, undefined> = {
    [Symbol.asyncIterator]: () => reader,
    async next() {
      refuseClosed();
      const value = entries[position];
      position += 1;
      return value ? { value, done: false } : { value, done: true };
    },
    async return() {
      position = entries.length;
      return { value: undefined, done: true };
    },
  };
  return reader;
}
