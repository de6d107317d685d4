/**
 * What a command printed. Rule: memory is bounded whatever is printed; the beginning and the end are kept, and it is
 * said how much is missing between them. Bytes become text only when they are asked for, so that no character is split
 * by the way they came.
 */
import { plainText } from './plainText.ts';

const HEAD_BYTES = 64 * 1_024;
const TAIL_BYTES = 64 * 1_024;
const LINE_BYTES = 1_024;
const LINE_SHOWN = 200;

/** At the edge of a cut: the bytes of a character whose other half is missing. */
const CONTINUES = 0b1000_0000;
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0b1100_0000) === CONTINUES;
const CHARACTER_BYTES = 4;

export class Output {
  readonly #head = Buffer.alloc(HEAD_BYTES);
  readonly #tail = Buffer.alloc(TAIL_BYTES);
  /** Bytes that came. */
  #total = 0;

  get bytes(): number {
    return this.#total;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    if (this.#total < HEAD_BYTES) {
      const taken = chunk.copy(this.#head, this.#total);
      this.#total += taken;
      rest = chunk.subarray(taken);
    }
    if (rest.length === 0) return;
    this.#total += rest.length;
    const kept = rest.subarray(-TAIL_BYTES);
    // The tail is a ring: byte n of what is behind the head lies at n modulo its size.
    const at = (this.#total - HEAD_BYTES - kept.length) % TAIL_BYTES;
    kept.copy(this.#tail, 0, kept.copy(this.#tail, at));
  }

  /** All of it, or its beginning and its end. */
  text(): string {
    const behind = this.#behind();
    if (behind <= TAIL_BYTES) return plainText(Buffer.concat([this.#first(), this.#last(behind)]));
    const head = withoutHalfAtEnd(this.#first());
    const tail = withoutHalfAtStart(this.#last(TAIL_BYTES));
    const left = this.#total - head.length - tail.length;
    return `${plainText(head)}\n[${left} bytes left out]\n${plainText(tail)}`;
  }

  /** The last line that is not empty, cut to what a display may show; empty while there is none. */
  lastLine(): string {
    const behind = this.#behind();
    const bytes = behind === 0 ? this.#first() : this.#last(Math.min(behind, LINE_BYTES));
    const lines = plainText(withoutHalfAtStart(bytes.subarray(-LINE_BYTES)))
      .trimEnd()
      .split('\n');
    return Array.from(lines.at(-1) ?? '')
      .slice(0, LINE_SHOWN)
      .join('');
  }

  #behind(): number {
    return Math.max(0, this.#total - HEAD_BYTES);
  }

  #first(): Buffer {
    return this.#head.subarray(0, Math.min(this.#total, HEAD_BYTES));
  }

  /** The last `count` bytes of those behind the head. */
  #last(count: number): Buffer {
    const end = this.#behind() % TAIL_BYTES;
    if (count <= end) return this.#tail.subarray(end - count, end);
    return Buffer.concat([this.#tail.subarray(TAIL_BYTES - (count - end)), this.#tail.subarray(0, end)]);
  }
}

function withoutHalfAtStart(bytes: Buffer): Buffer {
  let at = 0;
  while (at < CHARACTER_BYTES - 1 && isContinuation(bytes[at])) at += 1;
  return bytes.subarray(at);
}

/** At most three bytes go: the lead of a character and what came of it. */
function withoutHalfAtEnd(bytes: Buffer): Buffer {
  let at = bytes.length - 1;
  while (at > bytes.length - CHARACTER_BYTES && isContinuation(bytes[at])) at -= 1;
  const lead = bytes[at] ?? 0;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return at + length > bytes.length ? bytes.subarray(0, at) : bytes;
}
