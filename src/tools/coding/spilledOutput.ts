/**
 * Files that hold the whole of an output whose middle a result leaves out. Rule: they lie in a directory of this process
 * alone, below the system's own for temporary files, readable by its user only; each is bounded and all of them
 * together; they go with the process. Read and Grep may open them, whatever the working directory is.
 */
import { closeSync, mkdtempSync, openSync, realpathSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What one file holds at most, and all of them. The oldest files go where that is too little. */
const FILE_BYTES_MAX = 64 * 1_024 * 1_024;
const ALL_BYTES_MAX = 256 * 1_024 * 1_024;

let directory: string | undefined;
/** Bytes by path, the oldest first. */
const files = new Map<string, number>();
let made = 0;

function ownDirectory(): string {
  if (directory !== undefined) return directory;
  const own = realpathSync(mkdtempSync(join(tmpdir(), 'runchart-output-')));
  process.once('exit', () => rmSync(own, { recursive: true, force: true }));
  directory = own;
  return own;
}

function makeRoom(bytes: number): void {
  let all = bytes;
  for (const size of files.values()) all += size;
  for (const [path, size] of files) {
    if (all <= ALL_BYTES_MAX) return;
    rmSync(path, { force: true });
    files.delete(path);
    all -= size;
  }
}

/** Whether an absolute path is that of such a file. */
export const isSpilled = (path: string): boolean => files.has(path);

/** One output as it comes. A disk that is full, or not there, leaves the file as it is: the result does without. */
export class SpilledOutput {
  #path: string | undefined;
  #file: number | undefined;
  #bytes = 0;
  /** Nothing more is written. */
  #isFull = false;
  readonly #bytesMax: number;

  constructor(bytesMax: number = FILE_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  write(chunk: Uint8Array): void {
    if (this.#isFull) return;
    const taken = chunk.subarray(0, this.#bytesMax - this.#bytes);
    try {
      this.#file ??= this.#open();
      for (let at = 0; at < taken.length; ) at += writeSync(this.#file, taken, at);
      this.#bytes += taken.length;
    } catch {
      this.#isFull = true;
    }
    this.#isFull ||= this.#bytes >= this.#bytesMax;
  }

  /** Nothing more is written. */
  end(): void {
    if (this.#file === undefined || this.#path === undefined) return;
    closeSync(this.#file);
    this.#file = undefined;
    this.#isFull = true;
    makeRoom(this.#bytes);
    files.set(this.#path, this.#bytes);
  }

  /** The file and what it holds, once it has ended; undefined where nothing was written. */
  get file(): { path: string; bytes: number } | undefined {
    return this.#path !== undefined && files.has(this.#path) ? { path: this.#path, bytes: this.#bytes } : undefined;
  }

  #open(): number {
    made += 1;
    this.#path = join(ownDirectory(), `${made}.txt`);
    return openSync(this.#path, 'wx', 0o600);
  }
}
