/**
 * Checks a whole log before it is opened for writing, and changes nothing. Invariant: of several faults, the first of
 * encoding, line_too_long, no_header, version, corrupt, gap, fork is reported. A tail that a crash of the writer can
 * leave becomes a notice, and the next append removes it. Such a tail is a last line without a newline that begins as
 * a header or an object and does not begin with a complete record.
 */
import { isUtf8 } from 'node:buffer';
import type { FileHandle } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Diagnostic, Json, LogEntry } from '../../../machines/vocabulary.ts';
import { CorruptLogError } from '../../errors.ts';
import {
  firstLineApart,
  type Line,
  linesIn,
  NEWLINE,
  type Piece,
  piecesOf,
  recordsIn,
  recordsOf,
} from './fileLines.ts';
import { endOfObject, ignoredBefore, isBlank, withoutLostEnd } from './lineBytes.ts';
import {
  afterFirstLine,
  FORMAT,
  HEADER_PREFIX,
  type Judged,
  type JudgedHeader,
  judgeHeader,
  judgeLine,
  judgeText,
  type LineFormat,
} from './lineFormat.ts';

export interface Scan {
  /** The headers, each with the first seq after it. Empty without a header. */
  formats: { from: number; format: LineFormat }[];
  /** The offset of the line of each entry, by seq. */
  offsets: number[];
  /** The offset of the next line. Anything after it is removed first. */
  end: number;
  /** True if the last valid line has no newline. */
  open: boolean;
  /** Zero bytes before the last record, which the next append overwrites. */
  zeros: { offset: number; length: number } | null;
  notices: Diagnostic[];
  /** The entries of a log of at most `KEPT_BYTES`, for its first reader. */
  entries?: LogEntry[] | undefined;
}

/** The entries of a longer log are read again, so that opening it takes little memory. */
const KEPT_BYTES = 64 * 1024 * 1024;

/** Returns the format of the line of entry `seq`. `id`: the conversation of a log without a header. */
export function formatAt({ formats }: Scan, seq: number, id: string): LineFormat {
  let header = formats.at(-1);
  for (let at = formats.length - 1; header && header.from > seq; at -= 1) header = formats[at - 1];
  if (header) return header.from === seq ? header.format : afterFirstLine(header.format);
  return { conversationId: id, runId: null, at: 0 };
}

const RANKS = ['encoding', 'line_too_long', 'no_header', 'version', 'corrupt', 'gap', 'fork'];

/** Throws CorruptLogError. `id`: the conversation of the file. */
export async function scanLog(file: FileHandle, size: number, id: string): Promise<Scan> {
  const scanner = new Scanner(file, size, id);
  try {
    for await (const piece of piecesOf(file, 0, size)) {
      // The header by itself, because the lines after it are read in another way.
      for (const part of scanner.awaitsHeader ? firstLineApart(piece) : [piece]) await scanner.takePiece(part);
      if (scanner.isDecided) break;
    }
  } catch (error) {
    if (!(error instanceof CorruptLogError)) throw error;
    scanner.fail(error);
  }
  return scanner.finish();
}

class Scanner {
  readonly #file: FileHandle;
  readonly #size: number;
  readonly #id: string;
  readonly #scan: Scan = { formats: [], offsets: [], end: 0, open: false, zeros: null, notices: [] };
  #number = 0;
  /** The start of blank lines and zero bytes, which are harmless if nothing follows. */
  #blankSince: { line: number; code: string } | null = null;
  #headerSeen = false;
  /** The format of the next line. */
  #format: LineFormat;
  #next = 0;
  #worst: CorruptLogError | null = null;

  constructor(file: FileHandle, size: number, id: string) {
    this.#file = file;
    this.#size = size;
    this.#id = id;
    this.#format = formatAt(this.#scan, 0, id);
    if (size <= KEPT_BYTES) this.#scan.entries = [];
  }

  /** True if no later line can change the reported fault. */
  get isDecided(): boolean {
    return this.#worst?.code === 'encoding';
  }

  get awaitsHeader(): boolean {
    return !this.#headerSeen;
  }

  async takePiece(piece: Piece): Promise<void> {
    if (this.#number === 0 && piece.offset > 0) this.#notice('byte_order_mark', {});
    if (this.#changesNothing(piece)) return;
    const rest = this.#takeSound(piece);
    const blank = isBlank(rest.bytes);
    for (const line of linesIn(rest)) {
      const worst = this.#worst;
      const judged = this.#judge(line);
      const joined = isOneRecord(judged) ? [] : [...recordsIn(line)];
      if (joined.length > 1) {
        this.#notice('joined_line', { line: line.number });
        for (const record of joined) await this.#take(record, this.#judge(record));
      } else {
        const compared = this.#take(line, judged);
        if (compared) await compared;
      }
      // The first of several blank lines is enough.
      if (blank || this.isDecided) return;
      if (this.#worst === worst) continue;
      const after = piece.bytes.subarray(line.offset + line.bytes.length + 1 - piece.offset);
      if (this.#changesNothing({ ...piece, bytes: after })) return;
    }
  }

  /**
   * Takes the lines at the start of a piece that are headers and expected entries, and returns the rest. Most logs have no
   * other lines, and their encoding is checked once per piece.
   */
  #takeSound(piece: Piece): Piece {
    const { bytes, offset, whole } = piece;
    if (!whole || !this.#headerSeen || this.#worst || this.#blankSince || !isUtf8(bytes)) return piece;
    // Decoded once. A position in the text may differ from that in the bytes.
    const text = bytes.toString();
    let { number } = piece;
    let at = 0;
    for (let start = 0; text[start] === '{'; ) {
      const end = text.indexOf('\n', start);
      const judged = judgeText(text.slice(start, end), this.#format);
      if (judged?.kind === 'header') this.#takeHeader(judged.format);
      else if (judged?.kind === 'entry' && judged.entry.seq === this.#next) this.#takeEntry(judged, offset + at);
      else break;
      this.#number = number;
      number += 1;
      start = end + 1;
      at = bytes.indexOf(NEWLINE, at) + 1;
      this.#scan.end = offset + at;
    }
    return { bytes: bytes.subarray(at), offset: offset + at, whole, number };
  }

  /** True if the piece cannot contain a fault of a higher rank. This keeps reading a damaged file fast. */
  #changesNothing({ bytes, whole }: Piece): boolean {
    if (this.#worst === null || !whole || !isUtf8(bytes)) return false;
    const rank = RANKS.indexOf(this.#worst.code);
    return rank <= RANKS.indexOf('version') || (rank === RANKS.indexOf('corrupt') && !bytes.includes(FORMAT));
  }

  #judge(line: Line): Judged | JudgedHeader {
    const bytes = bytesOf(line);
    if (!this.#headerSeen) return judgeHeader(bytes, this.#id);
    const judged = judgeLine(bytes, this.#format, this.#next, line.whole);
    const seq = this.#seqWithoutHeader(judged);
    if (!(seq < this.#next)) return judged;
    // A repeated entry belongs to the header above its first copy.
    return judgeLine(bytes, formatAt(this.#scan, seq, this.#id), seq, line.whole);
  }

  /** Returns the seq of an entry that is not the first one below a header, or NaN. */
  #seqWithoutHeader(judged: Judged): number {
    if (judged.kind === 'gap') return judged.seq;
    return judged.kind === 'entry' && !this.#format.begins ? judged.entry.seq : Number.NaN;
  }

  /** Returns a promise only for an entry that has to be compared with an earlier one. */
  #take(line: Line, judged: Judged | JudgedHeader): void | Promise<void> {
    this.#number = line.number;
    const bytes = bytesOf(line);
    if (judged.kind === 'blank') {
      this.#blankSince ??= { line: this.#number, code: line.bytes.includes(0) ? 'zero_bytes' : 'blank_tail' };
      return;
    }
    if (!line.whole && this.#isTorn(judged, bytes, line.offset)) {
      this.#notice('torn_tail', { line: this.#number, bytes: line.bytes.length });
      return;
    }
    if (this.#blankSince !== null) this.#refuse('corrupt', 'nothing stands in it', this.#blankSince.line);
    const isFirst = !this.#headerSeen;
    this.#headerSeen = true;
    this.#scan.end = line.offset + bytes.length + (line.whole ? 1 : 0);
    this.#scan.open = !line.whole;
    if (bytes.length < line.bytes.length) this.#blankSince = { line: this.#number, code: 'zero_bytes' };
    if (judged.kind === 'entry') return this.#takeEntry(judged, line.offset);
    if (judged.kind === 'header') this.#takeHeader(judged.format);
    else if (judged.kind === 'not_json') {
      const why = line.whole ? judged.why : `${judged.why}, nor the rest of a write that was cut`;
      this.#refuse(isFirst ? 'no_header' : 'corrupt', why);
    } else this.#refuse(judged.kind, judged.why);
  }

  #isTorn({ kind }: Judged | JudgedHeader, bytes: Buffer, offset: number): boolean {
    if (kind !== 'not_json' && kind !== 'encoding') return false;
    return this.#headerSeen ? isTornRecord(bytes, offset, this.#format, this.#next) : isTornHeader(bytes);
  }

  /** Stores the fault if it ranks before the current one. */
  fail(error: CorruptLogError): void {
    if (this.#isWorse(error.code)) this.#worst = error;
  }

  #isWorse(code: string): boolean {
    return this.#worst === null || RANKS.indexOf(code) < RANKS.indexOf(this.#worst.code);
  }

  finish(): Scan {
    if (this.#worst !== null) throw this.#worst;
    if (this.#blankSince !== null) this.#notice(this.#blankSince.code, { line: this.#blankSince.line });
    return this.#scan;
  }

  #takeHeader(format: LineFormat): void {
    this.#format = format;
    this.#scan.formats.push({ from: this.#next, format: this.#format });
    if (this.#format.conversationId === this.#id) return;
    this.#notice('renamed', { conversationId: this.#format.conversationId });
  }

  #takeEntry({ entry, zeros, spliced }: Extract<Judged, { kind: 'entry' }>, offset: number): void | Promise<void> {
    this.#format = afterFirstLine(this.#format);
    if (zeros > 0) {
      this.#blankSince = { line: this.#number, code: 'zero_bytes' };
      this.#scan.zeros = { offset, length: zeros };
    }
    if (entry.seq < this.#next) return this.#takeRepeat(entry);
    if (entry.seq > this.#next) this.#refuse('gap', `it holds entry ${entry.seq}, expected entry ${this.#next}`);
    else {
      this.#scan.offsets.push(offset);
      this.#scan.entries?.push(entry);
    }
    this.#next = entry.seq + 1;
    if (spliced) this.#notice('spliced_line', { line: this.#number }, entry.seq);
  }

  async #takeRepeat(entry: LogEntry): Promise<void> {
    if (!this.#isWorse('fork')) return;
    const same = isDeepStrictEqual(entry, await this.#stored(entry.seq));
    if (same) this.#notice('duplicate', { line: this.#number }, entry.seq);
    else this.#refuse('fork', `it holds another entry ${entry.seq} than an earlier line`);
  }

  async #stored(seq: number): Promise<LogEntry | null> {
    const offset = this.#scan.offsets[seq];
    if (offset === undefined) return null;
    for await (const line of recordsOf(this.#file, offset, this.#size)) {
      const judged = judgeLine(line.bytes, formatAt(this.#scan, seq, this.#id), seq, line.whole);
      return judged.kind === 'entry' ? judged.entry : null;
    }
    return null;
  }

  #refuse(code: string, why: string, line = this.#number): void {
    if (!this.#isWorse(code)) return;
    const where = `line ${line} of the log of conversation "${this.#id}" cannot be used: ${why}`;
    this.fail(new CorruptLogError(code, `${where}; the file was left as it is`, line));
  }

  #notice(code: string, detail: Json, seq?: number): void {
    if (this.#scan.notices.some((notice) => notice.code === code)) return;
    this.#scan.notices.push(seq === undefined ? { code, detail } : { code, seq, detail });
  }
}

/** Zero bytes that replace a lost end are no part of the last line. */
const bytesOf = ({ bytes, whole }: Line): Buffer => (whole ? bytes : withoutLostEnd(bytes));

/** Only a line that is not one record can be several joined ones. */
const isOneRecord = (judged: Judged | JudgedHeader): boolean =>
  judged.kind === 'entry' ? !judged.spliced : judged.kind !== 'not_json' && judged.kind !== 'encoding';

/** The block size of every file system is a multiple of this. */
const BLOCK_BYTES = 512;
/** A header contains an id that is short enough for a file name. */
const MAX_HEADER_BYTES = 4096;
/** `{` */
const OPENING = 0x7b;
const BEFORE_ID = ',"conversationId":"';

/** For the first line of a file. */
function isTornHeader(bytes: Buffer): boolean {
  if (bytes.length > MAX_HEADER_BYTES || bytes.includes(0)) return false;
  const text = bytes.toString();
  if (HEADER_PREFIX.startsWith(text)) return true;
  const [, version = '', rest = ''] =
    (text.startsWith(HEADER_PREFIX) && /^(\d+)(.*)$/s.exec(text.slice(HEADER_PREFIX.length))) || [];
  if (rest === '') return version !== '';
  if (BEFORE_ID.startsWith(rest)) return true;
  return rest.startsWith(BEFORE_ID) && /^(?:[^"\\]|\\.)*(?:\\|"\}?)?$/.test(rest.slice(BEFORE_ID.length));
}

/** For a later line at this offset of the file. `next`: the expected seq. An incomplete object is an incomplete record. */
function isTornRecord(bytes: Buffer, offset: number, format: LineFormat, next: number): boolean {
  const before = ignoredBefore(bytes);
  const rest = bytes.subarray(before);
  if (holdsRecord(rest, format, next)) return false;
  // The block with the beginning of the record was lost.
  if (before > 0 && bytes[before - 1] === 0 && (offset + before) % BLOCK_BYTES === 0) return true;
  return rest.length === 0 || rest[0] === 0 || rest[0] === OPENING;
}

function holdsRecord(bytes: Buffer, format: LineFormat, next: number): boolean {
  const end = endOfObject(bytes);
  if (end === -1) return false;
  const { kind } = judgeLine(bytes.subarray(0, end), format, next, false);
  return kind === 'entry' || kind === 'header' || kind === 'version';
}
