/**
 * The thread of a SQLite store, as the store sees it. Invariant: it starts with the first request, keeps the process alive
 * only while a request is under way, and has ended when `close` resolves. A thread that fails rejects its requests, and
 * the next request starts another one.
 */
import { constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { RunchartError } from '../../errors.ts';
import {
  codeOf,
  makeDirectory,
  openRegular,
  refuseNames,
  resolveRegular,
  storeError,
  syncDirectory,
} from '../jsonl/fileSystem.ts';
import type { Durability } from '../logStore.ts';
import { type Answer, errorFrom, type Params, type Request, type RequestName, type Value } from './threadMessages.ts';

interface Pending {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export class DatabaseThread {
  readonly #path: string;
  readonly #durability: Durability;
  /** Resolves with the path of the file, which exists then. */
  #file: Promise<string> | undefined;
  #worker: Worker | undefined;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #closing: Promise<void> | undefined;

  constructor(path: string, durability: Durability) {
    this.#path = path;
    this.#durability = durability;
  }

  /** False if there is no database, so that asking creates none. */
  get exists(): boolean {
    return this.#worker !== undefined || existsSync(this.#path);
  }

  closedError(): RunchartError {
    return new RunchartError('closed', `the store of ${this.#path} is closed: make another one`);
  }

  /** `transfer`: buffers that the caller gives up. */
  async request<Name extends RequestName>(
    name: Name,
    params: Params<Name>,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<Value<Name>> {
    if (this.#closing) throw this.closedError();
    this.#file ??= prepareFile(this.#path, this.#durability === 'power').catch((error) => {
      this.#file = undefined;
      throw error;
    });
    return (await this.#post(await this.#file, name, params, transfer)) as Value<Name>;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // A request may still wait for the file.
    const path = await this.#file?.catch(() => undefined);
    const worker = this.#worker;
    if (!worker || path === undefined) return;
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    await this.#post(path, 'close', undefined);
    worker.ref();
    await ended;
  }

  #post(path: string, name: RequestName, params: unknown, transfer: readonly ArrayBuffer[] = []): Promise<unknown> {
    const worker = this.#worker ?? this.#start(path);
    return new Promise((resolve, reject) => {
      this.#lastId += 1;
      const request: Request = { id: this.#lastId, name, params };
      if (this.#pending.size === 0) worker.ref();
      this.#pending.set(request.id, { resolve, reject });
      worker.postMessage(request, [...transfer]);
    });
  }

  #start(path: string): Worker {
    // The sources run as TypeScript in tests.
    const file = import.meta.url.endsWith('.ts') ? './databaseWorker.ts' : './databaseWorker.js';
    const synchronous = this.#durability === 'power' ? 'FULL' : 'NORMAL';
    const worker = new Worker(new URL(file, import.meta.url), {
      workerData: { path, synchronous },
      env: {},
      execArgv: [],
    });
    worker.unref();
    worker.on('message', (message: Answer) => {
      const pending = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      if (this.#pending.size === 0) worker.unref();
      if ('error' in message) pending?.reject(errorFrom(message.error));
      else pending?.resolve(message.value);
    });
    worker.on('error', (cause) => this.#failed(worker, cause));
    worker.on('exit', () => this.#failed(worker, new Error('it has ended')));
    this.#worker = worker;
    return worker;
  }

  #failed(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    for (const { reject } of this.#pending.values()) reject(storeError(`the thread of ${this.#path} failed`, cause));
    this.#pending.clear();
  }
}

const { O_CREAT, O_EXCL, O_RDWR } = constants;

/**
 * Creates the file (0600) and its directory (0700), and resolves with the path without links. An existing file is not
 * opened, since closing it would release the locks that SQLite has on it in this process.
 */
async function prepareFile(path: string, durable: boolean): Promise<string> {
  const { path: real, exists, names } = await resolveRegular(path);
  if (exists) {
    refuseNames(real, names);
    return real;
  }
  await makeDirectory(dirname(path), durable);
  try {
    await (await openRegular(path, O_RDWR | O_CREAT | O_EXCL)).close();
    if (durable) await syncDirectory(dirname(path));
  } catch (cause) {
    // Another process may have created it in the meantime.
    if (codeOf(cause instanceof RunchartError ? cause.cause : cause) !== 'EEXIST') throw storeError(path, cause);
  }
  return path;
}
