/**
 * The file of one conversation, open for writing. Rule: an append is one write call of whole lines; a write that fails
 * is taken back; the file is written only while it is, by inode and length, the one that was opened and checked.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Diagnostic, LogEntry } from '../../../machines/vocabulary.ts';
import { CorruptLogError, StoreConflictError } from '../../errors.ts';
import { openRegular, refuseNames, statNow, storeError, syncDirectory, writeAll } from './disk.ts';
import { entryLine, headerLine, judgeLine, type LineFormat } from './format.ts';
import { recordsOf } from './lines.ts';
import { formatAt, type Scan, scanLog } from './scan.ts';
import { VERSION } from './versions.ts';

/** What an acknowledged append survives: the end of the process, or a loss of power. */
export type Durability = 'process' | 'power';

const { O_APPEND, O_CREAT, O_RDWR } = constants;

export class LogFile {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #inode: number;
  readonly #durability: Durability;
  readonly #id: string;
  readonly #scan: Scan;
  /** What the file is known to hold; more than `#scan.end` where a tail waits to be cut. */
  #size: number;

  private constructor(
    path: string,
    file: FileHandle,
    found: { size: number; ino: number },
    id: string,
    scan: Scan,
    durability: Durability,
  ) {
    this.#path = path;
    this.#file = file;
    this.#inode = found.ino;
    this.#size = found.size;
    this.#id = id;
    this.#scan = scan;
    this.#durability = durability;
  }

  /** Opens or creates. Throws CorruptLogError, having changed nothing. */
  static async open(path: string, id: string, durability: Durability): Promise<LogFile> {
    const file = await openRegular(path, O_RDWR | O_APPEND | O_CREAT);
    try {
      const found = await file.stat();
      refuseNames(path, found.nlink);
      const scan = await scanLog(file, found.size, id);
      // Also of a log that was begun with less.
      if (durability === 'power') await syncDirectory(dirname(path));
      return new LogFile(path, file, found, id, scan, durability);
    } catch (cause) {
      await file.close().catch(() => {});
      throw storeError(`cannot read ${path}`, cause);
    }
  }

  /** The seq of the next entry. */
  get next(): number {
    return this.#scan.offsets.length;
  }

  /** Of the lines that come now. */
  get #format(): LineFormat {
    return formatAt(this.#scan, this.next, this.#id);
  }

  get notices(): readonly Diagnostic[] {
    return this.#scan.notices;
  }

  /** The lines of entries as they are now. Throws RunchartError `store` for what no reader would take back. */
  linesOf(entries: readonly LogEntry[]): Buffer[] {
    return entries.map((entry) => entryLine(entry, this.#format.conversationId));
  }

  /** Not to be called again before it has settled. Throws StoreConflictError, and RunchartError `store`. */
  async append(lines: readonly Buffer[]): Promise<void> {
    this.#refuseChanged();
    const { formats, open } = this.#scan;
    const format = this.#format;
    // Lines of an older version stay as they are: a header stands before the first one of this version.
    const header = formats.at(-1)?.format.version === VERSION ? '' : headerLine(format.conversationId);
    const prefix = Buffer.from(`${open ? '\n' : ''}${header}`);
    try {
      await this.#repair();
      await writeAll(this.#file, Buffer.concat([prefix, ...lines]));
      if (this.#durability === 'power') await this.#file.datasync();
    } catch (cause) {
      await this.#cut().catch(async () => {
        // The tail stays for the next append to cut; a new opening would take it for a torn write.
        this.#size = (await this.#file.stat().catch(() => null))?.size ?? this.#size;
      });
      throw storeError(`cannot append to ${this.#path}, nothing was stored`, cause);
    }
    if (header !== '') formats.push({ from: this.next, format: { ...format, version: VERSION } });
    this.#scan.open = false;
    this.#scan.end += prefix.length;
    for (const line of lines) {
      this.#scan.offsets.push(this.#scan.end);
      this.#scan.end += line.length;
    }
    this.#size = this.#scan.end;
  }

  /** The entries stored now, from seq `from` on. */
  async *entries(from: number): AsyncGenerator<LogEntry> {
    const { end } = this.#scan;
    const until = this.next;
    let next = Math.max(0, Math.ceil(from));
    const offset = this.#scan.offsets[next];
    if (offset === undefined) return;
    let format = formatAt(this.#scan, next, this.#id);
    for await (const line of recordsOf(this.#file, offset, end)) {
      const judged = judgeLine(line.bytes, format, next, line.whole);
      if (judged.kind === 'header') format = { ...format, version: judged.version };
      // Other lines were found to be repetitions when the file was checked.
      if (judged.kind !== 'entry' || judged.entry.seq !== next) continue;
      next += 1;
      yield judged.entry;
    }
    if (next === until) return;
    throw new CorruptLogError('corrupt', `${this.#path} was changed while it was open: expected ${until} entries`);
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  /**
   * By path: one call tells deleted, replaced and changed, and the open handle keeps the inode from being used again. The
   * time of the last change is not asked: two writes may share one, and some file systems correct it afterwards.
   */
  #refuseChanged(): void {
    const found = statNow(this.#path);
    const what =
      found === null
        ? 'was deleted'
        : found.ino !== this.#inode
          ? 'was replaced'
          : found.size !== this.#size
            ? 'was changed'
            : null;
    if (what === null) return;
    throw new StoreConflictError(`the store changed: ${this.#path} ${what} while it was open; open it again`);
  }

  /** Cuts what a crash left behind the last record and blanks zero bytes before it. */
  async #repair(): Promise<void> {
    if (this.#size !== this.#scan.end) await this.#cut();
    if (this.#scan.zeros === null) return;
    const { offset, length } = this.#scan.zeros;
    // The log's own handle can only append.
    const file = await open(this.#path, 'r+');
    try {
      await writeAll(file, Buffer.alloc(length, ' '), offset);
    } finally {
      await file.close();
    }
    this.#scan.zeros = null;
  }

  async #cut(): Promise<void> {
    await this.#file.truncate(this.#scan.end);
    this.#size = this.#scan.end;
  }
}
