/**
 * The last line of a log where no newline ends it. Rule: it counts as a write that was cut, and may be cut off, only
 * where it can be one: it begins as the header or as an object, and holds no complete record in front.
 * Zero bytes stand for what a loss of power took. Anything else is somebody's, and stays.
 */
import { endOfObject, voidBefore } from './jsonlBytes.ts';
import { type Form, HEADER_FRONT, judgeLine } from './jsonlLine.ts';

/** Every block of a file system is a multiple of it. */
const BLOCK_BYTES = 512;
/** A header holds an id that fits a file's name. */
const MAX_HEADER_BYTES = 4096;
/** `{` */
const OPENING = 0x7b;
const BEFORE_ID = ',"conversationId":"';

/** Of a file's first line. */
export function isTornHeader(bytes: Buffer): boolean {
  if (bytes.length > MAX_HEADER_BYTES || bytes.includes(0)) return false;
  const text = bytes.toString();
  if (HEADER_FRONT.startsWith(text)) return true;
  const [, version = '', rest = ''] =
    (text.startsWith(HEADER_FRONT) && /^(\d+)(.*)$/s.exec(text.slice(HEADER_FRONT.length))) || [];
  if (rest === '') return version !== '';
  if (BEFORE_ID.startsWith(rest)) return true;
  return rest.startsWith(BEFORE_ID) && /^(?:[^"\\]|\\.)*(?:\\|"\}?)?$/.test(rest.slice(BEFORE_ID.length));
}

/** Of a later line, at this offset of the file; `next`: the seq that is due. In a log of ours half an object is half a record. */
export function isTornRecord(bytes: Buffer, offset: number, form: Form, next: number): boolean {
  const before = voidBefore(bytes);
  const rest = bytes.subarray(before);
  if (holdsRecord(rest, form, next)) return false;
  // The block with the beginning was lost.
  if (before > 0 && bytes[before - 1] === 0 && (offset + before) % BLOCK_BYTES === 0) return true;
  return rest.length === 0 || rest[0] === 0 || rest[0] === OPENING;
}

function holdsRecord(bytes: Buffer, form: Form, next: number): boolean {
  const end = endOfObject(bytes);
  if (end === -1) return false;
  const { kind } = judgeLine(bytes.subarray(0, end), form, next, false);
  return kind === 'entry' || kind === 'header' || kind === 'version';
}
