/**
 * Checks the bytes of a line before they are parsed as JSON. Invariant: zero bytes and white space at both ends are
 * ignored. The first and the last byte exclude most lines that are not JSON, because a failed parse is expensive.
 */
const BRACE = { open: 0x7b, close: 0x7d };
/** The byte order mark, which some editors write before UTF-8. */
const MARK = Buffer.from([0xef, 0xbb, 0xbf]);
/** Bytes that are checked for another encoding. */
const SAMPLE_BYTES = 64;

/** Returns the number of ignored bytes at the start. */
export function ignoredBefore(bytes: Buffer): number {
  let count = 0;
  while (count < bytes.length && isIgnored(bytes[count])) count += 1;
  return count;
}

export function isBlank(bytes: Buffer): boolean {
  return ignoredBefore(bytes) === bytes.length;
}

/** Returns the line without the zero bytes, and white space among them, that replace a lost end. */
export function withoutLostEnd(bytes: Buffer): Buffer {
  let length = bytes.length;
  while (length > 0 && isIgnored(bytes[length - 1])) length -= 1;
  return length > 0 && bytes.includes(0, length) ? bytes.subarray(0, length) : bytes;
}

/** Returns false if the bytes cannot be a JSON object. */
export function isBraced(bytes: Buffer): boolean {
  if (bytes[ignoredBefore(bytes)] !== BRACE.open) return false;
  let last = bytes.length - 1;
  while (isIgnored(bytes[last])) last -= 1;
  return bytes[last] === BRACE.close;
}

/** Returns the position after the brace that closes the first one, or -1. */
export function endOfObject(bytes: Buffer): number {
  let depth = 0;
  let inText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === 0x22) inText = !inText;
    else if (inText && byte === 0x5c) at += 1;
    else if (!inText && byte === 0x7b) depth += 1;
    else if (!inText && byte === 0x7d) {
      depth -= 1;
      if (depth <= 0) return at + 1;
    }
  }
  return -1;
}

/** Returns the length of the byte order mark at the start, or 0. */
export function markBefore(bytes: Buffer): number {
  return bytes.subarray(0, MARK.length).equals(MARK) ? MARK.length : 0;
}

/** Describes the encoding of bytes that are not UTF-8 without a mark, or returns null. */
export function otherEncoding(bytes: Buffer): string | null {
  const [first, second] = bytes;
  if (markBefore(bytes) > 0) return 'it begins with a byte order mark, expected none but at the start of the file';
  const marked = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  return marked || isEverySecondZero(bytes) ? 'it looks like UTF-16, expected UTF-8' : null;
}

function isEverySecondZero(bytes: Buffer): boolean {
  const sample = bytes.subarray(0, Math.min(SAMPLE_BYTES, bytes.length - (bytes.length % 2)));
  const zeros = [0, 1].map((from) => sample.every((byte, at) => (byte === 0) === (at % 2 === from)));
  return sample.length >= 4 && zeros.includes(true);
}

function isIgnored(byte: number | undefined): boolean {
  return byte === 0 || byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
