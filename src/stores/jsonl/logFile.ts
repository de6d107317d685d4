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
import {
  belowFirst,
  formatFor,
  headerLine,
  judgeLine,
  type LineFormat,
  lineOf,
  type Pending,
  pendingOf,
} from './format.ts';
import { recordsOf } from './lines.ts';
import { formatAt, type Scan, scanLog } from './scan.ts';

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

  /** Entries as they are now. Throws RunchartError `store` for what no reader would take back. */
  pending(entries: readonly LogEntry[]): Pending[] {
    const { conversationId } = this.#format;
    return entries.map((entry) => pendingOf(entry, conversationId));
  }

  /** Not to be called again before it has settled. Throws StoreConflictError, and RunchartError `store`. */
  async append(pending: readonly Pending[]): Promise<void> {
    this.#refuseChanged();
    const written = this.#linesOf(pending);
    const prefix = this.#scan.open ? '\n' : '';
    try {
      await this.#repair();
      await writeAll(this.#file, Buffer.from(prefix + written.text));
      if (this.#durability === 'power') await this.#file.datasync();
    } catch (cause) {
      await this.#cut().catch(async () => {
        // The tail stays for the next append to cut; a new opening would take it for a torn write.
        this.#size = (await this.#file.stat().catch(() => null))?.size ?? this.#size;
      });
      throw storeError(`cannot append to ${this.#path}, nothing was stored`, cause);
    }
    const start = this.#scan.end + prefix.length;
    this.#scan.formats.push(...written.formats);
    for (const offset of written.offsets) this.#scan.offsets.push(start + offset);
    this.#scan.open = false;
    this.#scan.end = start + written.bytes;
    this.#size = this.#scan.end;
  }

  /** What is written for them: their lines, each run's after its header. */
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
      above = belowFirst(format);
    }
    return { text, bytes, offsets, formats };
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
      if (judged.kind === 'header') format = judged.format;
      // Other lines were found to be repetitions when the file was checked.
      if (judged.kind !== 'entry') continue;
      format = belowFirst(format);
      if (judged.entry.seq !== next) continue;
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
