/**
 * The file of one conversation, open for writing. Invariant: an append is one write of whole lines, and a failed write
 * is removed again. The file is written only while inode and length prove that it is the file that was opened, also
 * after it was closed in between.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Diagnostic, LogEntry } from '../../../machines/vocabulary.ts';
import { CorruptLogError, StoreConflictError } from '../../errors.ts';
import type { Durability } from '../logStore.ts';
import { recordsOf } from './fileLines.ts';
import { openRegular, refuseNames, statNow, storeError, syncDirectory, writeAll } from './fileSystem.ts';
import {
  afterFirstLine,
  formatFor,
  headerLine,
  judgeLine,
  type LineFormat,
  lineOf,
  type Pending,
  pendingOf,
} from './lineFormat.ts';
import { formatAt, type Scan, scanLog } from './logScan.ts';
import { type FileStamp, stampOf } from './rows/rowNotes.ts';

const { O_APPEND, O_CREAT, O_RDONLY, O_RDWR } = constants;

export class LogFile {
  readonly #path: string;
  /** Undefined while the file is closed. */
  #file: FileHandle | undefined;
  readonly #inode: number;
  readonly #durability: Durability;
  readonly #id: string;
  readonly #scan: Scan;
  /** The file as it was opened. */
  readonly openedAs: FileStamp;
  /** The expected length of the file. Greater than `#scan.end` if a damaged tail is to be removed. */
  #size: number;

  private constructor(
    path: string,
    file: FileHandle,
    stats: { size: number; mtimeMs: number; ino: number },
    id: string,
    scan: Scan,
    durability: Durability,
  ) {
    this.#path = path;
    this.#file = file;
    this.#inode = stats.ino;
    this.#size = stats.size;
    this.openedAs = stampOf(stats);
    this.#id = id;
    this.#scan = scan;
    this.#durability = durability;
  }

  /** Opens or creates the file. Throws CorruptLogError without a change of the file. */
  static async open(path: string, id: string, durability: Durability): Promise<LogFile> {
    const file = await openRegular(path, O_RDWR | O_APPEND | O_CREAT);
    try {
      const stats = await file.stat();
      refuseNames(path, stats.nlink);
      const scan = await scanLog(file, stats.size, id);
      // The file may have been made without durability.
      if (durability === 'power') await syncDirectory(dirname(path));
      return new LogFile(path, file, stats, id, scan, durability);
    } catch (cause) {
      await file.close().catch(() => {});
      throw storeError(`cannot read ${path}`, cause);
    }
  }

  /** The seq of the next entry. */
  get next(): number {
    return this.#scan.offsets.length;
  }

  /** The format of the next line. */
  get #format(): LineFormat {
    return formatAt(this.#scan, this.next, this.#id);
  }

  get notices(): readonly Diagnostic[] {
    return this.#scan.notices;
  }

  /** Copies entries. Throws RunchartError `store` for an entry that could not be read back. */
  pending(entries: readonly LogEntry[]): Pending[] {
    const { conversationId } = this.#format;
    return entries.map((entry) => pendingOf(entry, conversationId));
  }

  /** Call it again only after it has settled. Throws StoreConflictError, and RunchartError `store`. */
  async append(pending: readonly Pending[]): Promise<void> {
    this.#refuseChanged();
    const written = this.#linesOf(pending);
    const prefix = this.#scan.open ? '\n' : '';
    const file = await this.#openFile();
    try {
      await this.#repair(file);
      await writeAll(file, Buffer.from(prefix + written.text));
      if (this.#durability === 'power') await file.datasync();
    } catch (cause) {
      await this.#cut(file).catch(async () => {
        // The next append removes the tail. A new opening would remove it as a torn write.
        this.#size = (await file.stat().catch(() => null))?.size ?? this.#size;
      });
      throw storeError(`cannot append to ${this.#path}, nothing was stored`, cause);
    }
    this.#scan.entries = undefined;
    const start = this.#scan.end + prefix.length;
    this.#scan.formats.push(...written.formats);
    for (const offset of written.offsets) this.#scan.offsets.push(start + offset);
    this.#scan.open = false;
    this.#scan.end = start + written.bytes;
    this.#size = this.#scan.end;
  }

  /** Returns the lines of the entries, with a header before the lines of each run. */
  #linesOf(pending: readonly Pending[]): { text: string; bytes: number; offsets: number[]; formats: Scan['formats'] } {
    const formats: Scan['formats'] = [];
    const offsets: number[] = [];
    let above = this.#format;
    let text = '';
    let bytes = 0;
    const add = (line: string): void => {
      text += line;
      bytes += Buffer.byteLength(line);
    };
    const head = (from: number, format: LineFormat, isFirst: boolean): void => {
      formats.push({ from, format });
      add(headerLine(format, isFirst));
      above = format;
    };
    if (this.#scan.formats.length === 0) head(this.next, above, true);
    for (const entry of pending) {
      const format = formatFor(entry, above);
      if (format !== above) head(entry.seq, format, false);
      offsets.push(bytes);
      add(lineOf(entry, format));
      above = afterFirstLine(format);
    }
    return { text, bytes, offsets, formats };
  }

  /** Returns the entries that opening parsed to the first reader, if it reads the whole log. */
  takeParsed(from: number): readonly LogEntry[] | undefined {
    const { entries } = this.#scan;
    this.#scan.entries = undefined;
    return from === 0 ? entries : undefined;
  }

  /** Yields the stored entries from seq `from` on. */
  async *readEntries(from: number): AsyncGenerator<LogEntry> {
    const { end } = this.#scan;
    const until = this.next;
    let next = Math.max(0, Math.ceil(from));
    const offset = this.#scan.offsets[next];
    if (offset === undefined) return;
    let format = formatAt(this.#scan, next, this.#id);
    // A reader has a file of its own, since that of the writer may be closed meanwhile.
    const file = await this.#openAs(O_RDONLY);
    try {
      for await (const line of recordsOf(file, offset, end)) {
        const judged = judgeLine(line.bytes, format, next, line.whole);
        if (judged.kind === 'header') format = judged.format;
        // The check at opening found that other lines are duplicates.
        if (judged.kind !== 'entry') continue;
        format = afterFirstLine(format);
        if (judged.entry.seq !== next) continue;
        next += 1;
        yield judged.entry;
      }
    } finally {
      await file.close();
    }
    if (next === until) return;
    throw new CorruptLogError('corrupt', `${this.#path} was changed while it was open: expected ${until} entries`);
  }

  /** The file as it is now. Undefined if another process has changed it, or if its state cannot be read. */
  stamp(): FileStamp | undefined {
    try {
      const stats = statNow(this.#path);
      return stats?.ino === this.#inode && stats.size === this.#size ? stampOf(stats) : undefined;
    } catch {
      return undefined;
    }
  }

  /** The next append opens the file again. */
  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async #openFile(): Promise<FileHandle> {
    this.#file ??= await this.#openAs(O_RDWR | O_APPEND);
    return this.#file;
  }

  async #openAs(flags: number): Promise<FileHandle> {
    const file = await openRegular(this.#path, flags);
    if ((await file.stat()).ino === this.#inode) return file;
    await file.close();
    throw this.#changed('was replaced');
  }

  /**
   * Checks the path with one call. An open file prevents reuse of the inode. The modification time is not compared:
   * two writes may share one, and some file systems correct it later.
   */
  #refuseChanged(): void {
    const stats = statNow(this.#path);
    const change =
      stats === null
        ? 'was deleted'
        : stats.ino !== this.#inode
          ? 'was replaced'
          : stats.size !== this.#size
            ? 'was changed'
            : null;
    if (change === null) return;
    throw this.#changed(change);
  }

  #changed(change: string): StoreConflictError {
    return new StoreConflictError(`the store changed: ${this.#path} ${change} while it was open; open it again`);
  }

  /** Removes the remains of a crash after the last record, and overwrites zero bytes before it. */
  async #repair(opened: FileHandle): Promise<void> {
    if (this.#size !== this.#scan.end) await this.#cut(opened);
    if (this.#scan.zeros === null) return;
    const { offset, length } = this.#scan.zeros;
    // The log's handle can only append.
    const file = await open(this.#path, 'r+');
    try {
      await writeAll(file, Buffer.alloc(length, ' '), offset);
    } finally {
      await file.close();
    }
    this.#scan.zeros = null;
  }

  async #cut(file: FileHandle): Promise<void> {
    await file.truncate(this.#scan.end);
    this.#size = this.#scan.end;
  }
}
