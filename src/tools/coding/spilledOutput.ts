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
/** Sizes of finished files by path, the oldest first. */
const files = new Map<string, number>();
/** The bytes of all files, with those that are still written. */
let allBytes = 0;
let made = 0;

function ownDirectory(): string {
  if (directory !== undefined) return directory;
  const own = realpathSync(mkdtempSync(join(tmpdir(), 'runchart-output-')));
  process.once('exit', () => rmSync(own, { recursive: true, force: true }));
  directory = own;
  return own;
}

/** Removes finished files until the bytes fit. Returns how many do. */
function roomFor(bytes: number): number {
  for (const [path, size] of files) {
    if (allBytes + bytes <= ALL_BYTES_MAX) break;
    rmSync(path, { force: true });
    files.delete(path);
    allBytes -= size;
  }
  return Math.min(bytes, ALL_BYTES_MAX - allBytes);
}

/** True if an absolute path is the path of such a file. */
export const isSpilled = (path: string): boolean => files.has(path);

/** Writes one output to a file. If the disk is full or missing, the file stays incomplete and the result omits it. */
export class SpilledOutput {
  #path: string | undefined;
  #file: number | undefined;
  #bytes = 0;
  /** The file has reached its limit, all files have reached theirs, or it failed. */
  #isFull = false;
  readonly #bytesMax: number;

  constructor(bytesMax: number = FILE_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  write(chunk: Uint8Array): void {
    if (this.#isFull) return;
    const part = chunk.subarray(0, roomFor(Math.min(chunk.length, this.#bytesMax - this.#bytes)));
    this.#isFull = part.length < chunk.length;
    try {
      if (part.length > 0) this.#file ??= this.#open();
      for (let at = 0; this.#file !== undefined && at < part.length; ) {
        const bytes = writeSync(this.#file, part, at);
        at += bytes;
        this.#bytes += bytes;
        allBytes += bytes;
      }
    } catch {
      this.#isFull = true;
    }
  }

  /** Closes the file. */
  end(): void {
    if (this.#file === undefined || this.#path === undefined) return;
    closeSync(this.#file);
    this.#file = undefined;
    this.#isFull = true;
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
