/**
 * The notes that the stores of a large directory leave for each other: which log is opened, and its row when it is closed.
 * Invariant: a note only saves reading a log. Notes are not durable, a note that cannot be read is skipped, and a row counts
 * only while its file is the one that was read. A store does not fail because of its notes.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConversationRow } from '../../conversationRow.ts';
import { parsed } from '../../entryJson.ts';
import { linesIn, piecesOf } from '../fileLines.ts';
import { SAFE_FLAGS, statNow, writeAll } from '../fileSystem.ts';
import { isRecord } from '../lineFormat.ts';

/** Identifies the content of a file: its size, modification time and inode. */
export type FileStamp = readonly [size: number, mtimeMs: number, inode: number];

export const stampOf = ({ size, mtimeMs, ino }: { size: number; mtimeMs: number; ino: number }): FileStamp => [
  size,
  mtimeMs,
  ino,
];
export const isSameStamp = (a: FileStamp, b: FileStamp): boolean => a.every((value, index) => value === b[index]);

export type RowNote =
  /** The log may change until its next note. */
  | { id: string; state: 'opened' | 'deleted' | 'unknown' }
  /** `row`: null if nothing is listed. `locked`: the time of the directory of leases, when nobody held one. */
  | { id: string; state: 'read'; stamp: FileStamp; row: ConversationRow | null; locked: number | null };

/** Its name is not that of a log. */
const NAME = '.rows';
const VERSION = 1;
const { O_APPEND, O_CREAT, O_EXCL, O_RDONLY, O_WRONLY } = constants;

export class RowNotes {
  readonly #path: string;
  #offset = 0;
  #inode = 0;
  /** The notes since the last rewriting. */
  count = 0;

  constructor(root: string) {
    this.#path = join(root, NAME);
  }

  /** True if a store has begun notes, because the directory is large. */
  get exist(): boolean {
    return statNow(this.#path)?.isFile() === true;
  }

  /** Does nothing if there are no notes, or if they cannot be written. */
  async add(notes: readonly RowNote[]): Promise<void> {
    if (!this.exist) return;
    await this.#write(this.#path, O_WRONLY | O_APPEND, notes).catch(() => {});
  }

  /** Replaces all notes by these. */
  async rewrite(notes: readonly RowNote[]): Promise<void> {
    const draft = `${this.#path}.${process.pid}`;
    try {
      await this.#write(draft, O_WRONLY | O_CREAT | O_EXCL, notes);
      await rename(draft, this.#path);
      this.count = 0;
    } catch {
      await rm(draft, { force: true }).catch(() => {});
    }
  }

  /** Yields the notes that were not read before; all of them, if they were rewritten. */
  async *read(): AsyncGenerator<RowNote> {
    const stats = statNow(this.#path);
    if (!stats?.isFile()) return;
    if (stats.ino !== this.#inode || stats.size < this.#offset) {
      this.#inode = stats.ino;
      this.#offset = 0;
      this.count = 0;
    }
    if (stats.size === this.#offset) return;
    let file: FileHandle | undefined;
    try {
      file = await open(this.#path, O_RDONLY | SAFE_FLAGS);
      for await (const piece of piecesOf(file, this.#offset, stats.size)) {
        // The rest of a line that is being written comes with the next reading.
        if (!piece.whole) return;
        this.#offset = piece.offset + piece.bytes.length;
        for (const line of linesIn(piece)) {
          const note = noteIn(parsed(line.bytes.toString()));
          this.count += 1;
          if (note) yield note;
        }
      }
    } catch {
      // The logs are read instead.
    } finally {
      await file?.close().catch(() => {});
    }
  }

  async #write(path: string, flags: number, notes: readonly RowNote[]): Promise<void> {
    const file = await open(path, flags | SAFE_FLAGS, 0o600);
    try {
      const lines = notes.map((note) => `${JSON.stringify({ ...note, version: VERSION })}\n`);
      for (let at = 0; at < lines.length; at += 500)
        await writeAll(file, Buffer.from(lines.slice(at, at + 500).join('')));
    } finally {
      await file.close();
    }
  }
}

const STATES: readonly unknown[] = ['opened', 'deleted', 'unknown'];
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);
const isMaybeText = (value: unknown): boolean => value === undefined || typeof value === 'string';

function noteIn(value: unknown): RowNote | undefined {
  if (!isRecord(value) || value.version !== VERSION || typeof value.id !== 'string') return undefined;
  const { id, state, stamp, row, locked } = value;
  if (STATES.includes(state)) return { id, state: state as 'opened' };
  if (state !== 'read' || !Array.isArray(stamp) || stamp.length !== 3 || !stamp.every(isNumber)) return undefined;
  if (locked !== null && !isNumber(locked)) return undefined;
  const [size, mtimeMs, inode] = stamp as [number, number, number];
  if (row !== null && !isRow(row, id)) return undefined;
  return { id, state, stamp: [size, mtimeMs, inode], row, locked };
}

function isRow(value: unknown, id: string): value is ConversationRow {
  if (!isRecord(value) || value.id !== id || typeof value.cwd !== 'string') return false;
  const { createdAt, updatedAt, turns, length, costUsd, cycle } = value;
  return (
    [createdAt, updatedAt, turns, length].every(isNumber) &&
    (costUsd === null || isNumber(costUsd)) &&
    (cycle === 'ended' || cycle === 'running' || cycle === 'suspended') &&
    [value.owner, value.title, value.lastCause, value.parentId].every(isMaybeText)
  );
}
