/**
 * The bytes of a line before JSON reads them. Rule: zero bytes and white space count as nothing; the first and the last
 * byte tell what cannot be JSON, since a failing parse costs far more than it tells.
 */
const BRACE = { open: 0x7b, close: 0x7d };
/** What some editors put in front of UTF-8. */
const MARK = Buffer.from([0xef, 0xbb, 0xbf]);
/** How many bytes are looked at for another encoding. */
const SAMPLE_BYTES = 64;

/** How many bytes of nothing stand in front. */
export function voidBefore(bytes: Buffer): number {
  let count = 0;
  while (count < bytes.length && isVoid(bytes[count])) count += 1;
  return count;
}

export function isBlank(bytes: Buffer): boolean {
  return voidBefore(bytes) === bytes.length;
}

/** The line without the zero bytes that stand for a lost end, and the white space among them. */
export function withoutLostEnd(bytes: Buffer): Buffer {
  let length = bytes.length;
  while (length > 0 && isVoid(bytes[length - 1])) length -= 1;
  return length > 0 && bytes.includes(0, length) ? bytes.subarray(0, length) : bytes;
}

/** What is not so is no JSON object. */
export function isBraced(bytes: Buffer): boolean {
  if (bytes[voidBefore(bytes)] !== BRACE.open) return false;
  let last = bytes.length - 1;
  while (isVoid(bytes[last])) last -= 1;
  return bytes[last] === BRACE.close;
}

/** Behind the brace that closes the first one; -1 where none does. */
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

/** How many bytes of it stand in front. */
export function markBefore(bytes: Buffer): number {
  return bytes.subarray(0, MARK.length).equals(MARK) ? MARK.length : 0;
}

/** What the bytes seem to be instead of UTF-8 as a log has it, or null. */
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

function isVoid(byte: number | undefined): boolean {
  return byte === 0 || byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
