/**
 * Files that hold a whole output when a result shows only its ends. Rule: the files are in a private directory of this
 * process, in the system's temporary directory. Each file and their total are bounded, and they are deleted with the
 * process. Read and Grep may open them from any working directory.
 */
import { closeSync, mkdtempSync, openSync, realpathSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The limits of one file and of all files. The oldest files are deleted first. */
const FILE_BYTES_MAX = 64 * 1_024 * 1_024;
const ALL_BYTES_MAX = 256 * 1_024 * 1_024;

let directory: string | undefined;
/** File sizes by path, the oldest first. */
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

/** True if an absolute path is the path of such a file. */
export const isSpilled = (path: string): boolean => files.has(path);

/** Writes one output to a file. If the disk is full or missing, the file stays incomplete and the result omits it. */
export class SpilledOutput {
  #path: string | undefined;
  #file: number | undefined;
  #bytes = 0;
  /** The file has reached its limit or failed. */
  #isFull = false;
  readonly #bytesMax: number;

  constructor(bytesMax: number = FILE_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  write(chunk: Uint8Array): void {
    if (this.#isFull) return;
    const part = chunk.subarray(0, this.#bytesMax - this.#bytes);
    try {
      this.#file ??= this.#open();
      for (let at = 0; at < part.length; ) at += writeSync(this.#file, part, at);
      this.#bytes += part.length;
    } catch {
      this.#isFull = true;
    }
    this.#isFull ||= this.#bytes >= this.#bytesMax;
  }

  /** Closes the file. */
  end(): void {
    if (this.#file === undefined || this.#path === undefined) return;
    closeSync(this.#file);
    this.#file = undefined;
    this.#isFull = true;
    makeRoom(this.#bytes);
    files.set(this.#path, this.#bytes);
  }

  /** The file and its size, after its end; undefined if nothing was written. */
  get file(): { path: string; bytes: number } | undefined {
    return this.#path !== undefined && files.has(this.#path) ? { path: this.#path, bytes: this.#bytes } : undefined;
  }

  #open(): number {
    made += 1;
    this.#path = join(ownDirectory(), `${made}.txt`);
    return openSync(this.#path, 'wx', 0o600);
  }
}
