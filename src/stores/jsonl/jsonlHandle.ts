/**
 * An open conversation of the JSONL store: its log and its blobs. Invariant: appends run one after the other, with the
 * entries as they were at the call. Each append checks the lease and the seq. Closing waits for appends and blobs. A
 * promise of two lines keeps the order, so `p-queue` is not used.
 */
import type { Diagnostic, LogEntry } from '../../../machines/vocabulary.ts';
import { RunchartError, StoreConflictError } from '../../errors.ts';
import { type LogHandle, refuseOutOfOrder } from '../logStore.ts';
import { getBlob, putBlob } from './blobFiles.ts';
import { storeError } from './fileSystem.ts';
import type { Lease } from './lease.ts';
import type { Pending } from './lineFormat.ts';
import type { LogFile } from './logFile.ts';

interface Blobs {
  folder: string;
  durable: boolean;
}

export class JsonlHandle implements LogHandle {
  readonly #id: string;
  readonly #file: LogFile;
  readonly #lease: Lease;
  readonly #blobs: Blobs;
  /** Settles after the last requested append. */
  #lastAppend: Promise<void> = Promise.resolve();
  /** Settles after all requested blobs. */
  #blobsPut: Promise<unknown> = Promise.resolve();
  /** A failed close can be repeated. */
  #closing: Promise<void> | 'open' | 'failed' = 'open';

  constructor(id: string, file: LogFile, lease: Lease, blobs: Blobs) {
    this.#id = id;
    this.#file = file;
    this.#lease = lease;
    this.#blobs = blobs;
  }

  get notices(): readonly Diagnostic[] {
    return this.#file.notices;
  }

  async *read(from = 0): AsyncGenerator<LogEntry> {
    this.#refuseClosed();
    try {
      for await (const entry of this.#file.entries(from)) {
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
    const pending = this.#file.pending(entries);
    const done = this.#lastAppend.then(() => this.#append(pending, expectedSeq));
    this.#lastAppend = done.catch(() => {});
    return done;
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
      await Promise.all([this.#lastAppend, this.#blobsPut]);
      await this.#file.close().finally(() => this.#lease.release());
    } catch (cause) {
      this.#closing = 'failed';
      throw storeError(`cannot close the log of conversation "${this.#id}"`, cause);
    }
  }

  async #append(pending: readonly Pending[], expectedSeq: number): Promise<void> {
    refuseOutOfOrder(this.#id, this.#file.next, pending, expectedSeq);
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
