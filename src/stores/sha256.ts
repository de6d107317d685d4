/**
 * SHA-256 in plain JavaScript, for stores that name blobs without a turn of the event loop. `crypto.subtle` is
 * asynchronous, and a page without https has none. Invariant: the result is that of FIPS 180-4.
 */

/** The first 32 bits of the fractional part. */
const fractionOf = (value: number): number => ((value - Math.floor(value)) * 2 ** 32) | 0;

const PRIMES: readonly number[] = Array.from({ length: 312 }, (_, n) => n).filter((n) => {
  if (n < 2) return false;
  for (let divisor = 2; divisor * divisor <= n; divisor += 1) if (n % divisor === 0) return false;
  return true;
});
const START = Int32Array.from(PRIMES.slice(0, 8), (prime) => fractionOf(Math.sqrt(prime)));
const ROUNDS = Int32Array.from(PRIMES.slice(0, 64), (prime) => fractionOf(Math.cbrt(prime)));

const BLOCK_BYTES = 64;
const rotated = (word: number, by: number): number => (word >>> by) | (word << (32 - by));

/** Returns 64 hexadecimal digits. */
export function sha256(bytes: Uint8Array): string {
  const state = START.slice();
  const words = new Int32Array(64);
  const whole = bytes.length - (bytes.length % BLOCK_BYTES);
  for (let at = 0; at < whole; at += BLOCK_BYTES) addBlock(state, words, bytes, at);
  const tail = paddedTail(bytes, whole);
  for (let at = 0; at < tail.length; at += BLOCK_BYTES) addBlock(state, words, tail, at);
  return [...state].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
}

/** The rest of the bytes, a one bit, zeros and the length in bits. */
function paddedTail(bytes: Uint8Array, whole: number): Uint8Array {
  const rest = bytes.length - whole;
  const tail = new Uint8Array(rest < BLOCK_BYTES - 8 ? BLOCK_BYTES : 2 * BLOCK_BYTES);
  tail.set(bytes.subarray(whole));
  tail[rest] = 0x80;
  const view = new DataView(tail.buffer);
  view.setUint32(tail.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(tail.length - 4, (bytes.length * 8) % 2 ** 32);
  return tail;
}

function addBlock(state: Int32Array, words: Int32Array, bytes: Uint8Array, from: number): void {
  const wordAt = (index: number): number => words[index] as number;
  for (let index = 0; index < 16; index += 1) {
    const at = from + index * 4;
    const [one = 0, two = 0, three = 0, four = 0] = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    words[index] = (one << 24) | (two << 16) | (three << 8) | four;
  }
  for (let index = 16; index < 64; index += 1) {
    const before = wordAt(index - 15);
    const last = wordAt(index - 2);
    const mixedBefore = rotated(before, 7) ^ rotated(before, 18) ^ (before >>> 3);
    const mixedLast = rotated(last, 17) ^ rotated(last, 19) ^ (last >>> 10);
    words[index] = wordAt(index - 16) + mixedBefore + wordAt(index - 7) + mixedLast;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let index = 0; index < 64; index += 1) {
    const chosen = (e & f) ^ (~e & g);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const first =
      h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + chosen + (ROUNDS[index] as number) + wordAt(index);
    const second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + majority;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  for (const [index, word] of [a, b, c, d, e, f, g, h].entries()) state[index] = (state[index] as number) + word;
}
