/**
 * An open conversation of the JSONL store: its log and its blobs. Rule: appends run one after the other, with the
 * entries as they were at the call; each proves that the lease still holds and that the writer knows the log's length.
 * A blob's file bears the SHA-256 of its bytes, appears whole or not at all, and is checked when read. Closing waits
 * for both.
 */

import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Diagnostic, LogEntry } from '../../../machines/vocabulary.ts';
import { ConfigurationError, CorruptLogError, RunchartError, StoreConflictError } from '../../errors.ts';
import { type LogHandle, refuseOutOfOrder } from '../store.ts';
import { codeOf, makeDirectory, openRegular, refuseNoFolder, storeError, syncDirectory, writeAll } from './disk.ts';
import type { Pending } from './format.ts';
import type { Lease } from './lease.ts';
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
  /** Settles when the last append asked for has. */
  #turn: Promise<void> = Promise.resolve();
  /** Settles when the blobs asked for have. */
  #blobsPut: Promise<unknown> = Promise.resolve();
  /** A close that failed may be asked for again. */
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
    const done = this.#turn.then(() => this.#append(pending, expectedSeq));
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
    return getBlob(this.#blobs.folder, reference);
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
    if (this.#closing !== 'open') throw this.#closed();
  }

  #closed(): RunchartError {
    return new RunchartError('closed', `the log of conversation "${this.#id}" is closed: open it again`);
  }
}

const { O_CREAT, O_EXCL, O_RDONLY, O_WRONLY } = constants;
const MEDIA_TYPE = /^[\w.+-]{1,64}\/[\w.+-]{1,64}(; ?[\w.+-]{1,64}=[\w.+-]{1,64}){0,4}$/;

/** `blob:<sha256>:<mediaType>`. Throws ConfigurationError for a media type that is none. */
async function putBlob(folder: string, bytes: Uint8Array, mediaType: string, durable: boolean): Promise<string> {
  if (!MEDIA_TYPE.test(mediaType)) {
    throw new ConfigurationError(`expected a media type such as image/png, got ${JSON.stringify(mediaType)}`);
  }
  const hash = hashOf(bytes);
  refuseNoFolder(folder);
  await makeDirectory(folder, durable);
  const half = join(folder, `${hash}.${randomUUID()}`);
  try {
    const file = await openRegular(half, O_WRONLY | O_CREAT | O_EXCL);
    try {
      await writeAll(file, bytes);
      if (durable) await file.datasync();
    } finally {
      await file.close();
    }
    await rename(half, join(folder, hash));
    if (durable) await syncDirectory(folder);
  } catch (cause) {
    await rm(half, { force: true }).catch(() => {});
    throw storeError(`cannot store a blob in ${folder}`, cause);
  }
  return `blob:${hash}:${mediaType}`;
}

/**
 * Throws RunchartError `store` for an invalid or unknown reference, CorruptLogError for changed bytes.
 */
async function getBlob(folder: string, reference: string): Promise<Uint8Array> {
  const hash = hashIn(reference);
  if (hash === null) {
    const got = JSON.stringify(reference)?.slice(0, 200);
    throw new RunchartError('store', `expected a reference blob:<sha256>:<media type>, got ${got}`);
  }
  refuseNoFolder(folder);
  const path = join(folder, hash);
  let bytes: Uint8Array;
  try {
    bytes = await contentOf(path);
  } catch (cause) {
    if (codeOf(cause instanceof RunchartError ? cause.cause : cause) !== 'ENOENT') throw storeError(path, cause);
    throw new RunchartError('store', `no blob ${hash} beside this log`, { cause });
  }
  if (hashOf(bytes) === hash) return bytes;
  throw new CorruptLogError('corrupt', `the blob ${path} does not hold what was stored`);
}

async function contentOf(path: string): Promise<Uint8Array> {
  const file = await openRegular(path, O_RDONLY);
  try {
    const bytes = await file.readFile();
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  } finally {
    await file.close();
  }
}

function hashIn(reference: string): string | null {
  const [, hash, mediaType] = /^blob:([0-9a-f]{64}):(.+)$/.exec(reference) ?? [];
  return hash !== undefined && mediaType !== undefined && MEDIA_TYPE.test(mediaType) ? hash : null;
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
