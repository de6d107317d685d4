/**
 * A conversation of the JSONL store, open. Rule: appends happen one after the other, with the entries as they were when
 * it was asked for; each proves that the lease still holds and that the writer knows the log's length; closing waits
 * for the appends and blobs asked for.
 */
import type { Diagnostic, LogEntry } from '../../machines/vocabulary.ts';
import { RunchartError, StoreConflictError } from '../errors.ts';
import { getBlob, putBlob } from './jsonlBlobs.ts';
import { storeError } from './jsonlDisk.ts';
import type { JsonlFile } from './jsonlFile.ts';
import type { Lease } from './jsonlLease.ts';
import { refuseOutOfOrder } from './order.ts';
import type { LogHandle } from './store.ts';

interface Blobs {
  /** Where they are put. */
  folder: string;
  /** Where they are looked for. */
  folders: readonly string[];
  durable: boolean;
}

export class JsonlHandle implements LogHandle {
  readonly #id: string;
  readonly #file: JsonlFile;
  readonly #lease: Lease;
  readonly #blobs: Blobs;
  /** Settles when the last append asked for has. */
  #turn: Promise<void> = Promise.resolve();
  /** Settles when the blobs asked for have. */
  #blobsPut: Promise<unknown> = Promise.resolve();
  /** A close that failed may be asked for again. */
  #closing: Promise<void> | 'open' | 'failed' = 'open';

  constructor(id: string, file: JsonlFile, lease: Lease, blobs: Blobs) {
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
    const seqs = entries.map(({ seq }) => ({ seq }));
    const lines = this.#file.linesOf(entries);
    const done = this.#turn.then(() => this.#append(seqs, lines, expectedSeq));
    this.#turn = done.catch(() => {});
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
    return getBlob(this.#blobs.folders, reference);
  }

  close(): Promise<void> {
    if (typeof this.#closing === 'string') this.#closing = this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      await Promise.all([this.#turn, this.#blobsPut]);
      await this.#file.close().finally(() => this.#lease.release());
    } catch (cause) {
      this.#closing = 'failed';
      throw storeError(`cannot close the log of conversation "${this.#id}"`, cause);
    }
  }

  async #append(seqs: readonly { seq: number }[], lines: readonly Buffer[], expectedSeq: number): Promise<void> {
    refuseOutOfOrder(this.#id, this.#file.next, seqs, expectedSeq);
    if (!this.#lease.holds()) {
      throw new StoreConflictError(
        `lease ${this.#lease.token} of conversation "${this.#id}" is no longer held: it was removed or taken over`,
      );
    }
    if (lines.length > 0) await this.#file.append(lines);
  }

  #refuseClosed(): void {
    if (this.#closing !== 'open') throw this.#closed();
  }

  #closed(): RunchartError {
    return new RunchartError('closed', `the log of conversation "${this.#id}" is closed: open it again`);
  }
}
