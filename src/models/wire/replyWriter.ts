/**
 * Writes the parts of one reply. Invariant: a reply has a limit of characters, so a server cannot fill the memory. Only
 * the first few diagnostics of each kind are written.
 */
import type { Json } from '../../../machines/vocabulary.ts';
import { ModelError, type ModelPart } from '../model.ts';

/** Characters of text, reasoning, arguments and unknown fields of one reply. */
const REPLY_CHARS = 64 * 1024 * 1024;
const DIAGNOSTICS_OF_A_KIND = 4;

export class ReplyWriter {
  readonly write: (part: ModelPart) => void;
  readonly #diagnosed = new Map<string, number>();
  #characters = 0;

  constructor(write: (part: ModelPart) => void) {
    this.write = write;
  }

  /** Adds to the size of the reply. Throws ModelError `reply-too-large`. */
  addSize(characters: number): void {
    this.#characters += characters;
    if (this.#characters <= REPLY_CHARS) return;
    const message = `the reply holds more than ${REPLY_CHARS} characters: it was cut off and is not used`;
    throw new ModelError({ code: 'reply-too-large', message });
  }

  diagnose(code: string, detail?: Json): void {
    const count = (this.#diagnosed.get(code) ?? 0) + 1;
    this.#diagnosed.set(code, count);
    if (count > DIAGNOSTICS_OF_A_KIND) return;
    this.write(detail === undefined ? { type: 'diagnostic', code } : { type: 'diagnostic', code, detail });
  }
}
