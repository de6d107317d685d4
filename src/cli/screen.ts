/**
 * Where a run is shown: the reply on one output, the steps on another, which may be the same terminal. Rule: all text
 * passes here and is made printable: what would drive the terminal or not be seen is shown as an escape, and nothing is dropped;
 * colours are put around it afterwards, and only where the output is a terminal.
 */
import pc from 'picocolors';

export type Style = 'plain' | 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';
export type Span = readonly [Style, string];

export interface Output {
  write(text: string): void;
  /** Takes colours. */
  readonly styled: boolean;
}

/** A standard output of this process. */
export const outputTo = (stream: NodeJS.WriteStream): Output => ({
  write: (text) => void stream.write(text),
  styled: stream.isTTY === true && pc.isColorSupported,
});

type Paint = (text: string) => string;

/** Puts a colour around text that is safe already. */
export function paintOf({ styled }: Output): (style: Style) => Paint {
  const colors = pc.createColors(styled);
  return (style) => (style === 'plain' ? (text) => text : colors[style]);
}

/** Text that comes in pieces on one output. */
class Stream {
  readonly #write: (text: string) => void;
  readonly #paint: Paint;
  readonly #pieces = new PrintableStream();
  #midLine = false;

  constructor(output: Output, style: Style) {
    this.#write = output.write;
    this.#paint = paintOf(output)(style);
  }

  push(piece: string): void {
    this.#put(this.#pieces.push(piece));
  }

  /** Ends the line, where one is open. */
  end(): void {
    this.#put(this.#pieces.end());
    if (this.#midLine) this.#put('\n');
  }

  #put(text: string): void {
    if (text === '') return;
    this.#midLine = !text.endsWith('\n');
    this.#write(this.#paint(text));
  }
}

export class Screen {
  readonly #steps: Output;
  readonly #paint: (style: Style) => Paint;
  readonly #reply: Stream;
  readonly #reasoning: Stream;
  /** The one that may have an open line. */
  #open: Stream | undefined;

  constructor(outputs: { reply: Output; steps: Output }) {
    this.#steps = outputs.steps;
    this.#paint = paintOf(outputs.steps);
    this.#reply = new Stream(outputs.reply, 'plain');
    this.#reasoning = new Stream(outputs.steps, 'dim');
  }

  /** A piece of the reply. */
  reply(piece: string): void {
    this.#stream(this.#reply, piece);
  }

  /** A piece of what the model thinks. */
  reasoning(piece: string): void {
    this.#stream(this.#reasoning, piece);
  }

  /** A line of its own among the steps. */
  line(...spans: Span[]): void {
    this.endLine();
    this.#steps.write(`${this.#painted(spans)}\n`);
  }

  /** A question: the cursor stays behind it. */
  question(...spans: Span[]): void {
    this.endLine();
    this.#steps.write(`${this.#painted(spans)} `);
  }

  endLine(): void {
    this.#open?.end();
    this.#open = undefined;
  }

  #stream(stream: Stream, piece: string): void {
    if (this.#open !== stream) this.endLine();
    this.#open = stream;
    stream.push(piece);
  }

  #painted(spans: readonly Span[]): string {
    return spans.map(([style, text]) => this.#paint(style)(printableLine(text))).join('');
  }
}

/** Controls, line and paragraph separators, lone surrogates, direction marks, interlinear annotations. */
const DRIVING = '[\\p{Cc}\\p{Zl}\\p{Zp}\\p{Cs}\\p{Bidi_Control}\\ufff9-\\ufffb]';
/** What leaves no mark: zero-width spaces, fillers, tags. */
const UNSEEN = '\\p{Default_Ignorable_Code_Point}';
/** Joiners and variation selectors, without which emoji and some scripts fall apart in running text. */
const JOINING = '[\\u200c\\u200d\\u034f\\u180b-\\u180d\\u180f\\ufe00-\\ufe0f]';

const IN_TEXT = new RegExp(`(?![\\n\\t])${DRIVING}|(?!${JOINING})${UNSEEN}`, 'gu');
const IN_LINE = new RegExp(`${DRIVING}|${UNSEEN}`, 'gu');
const NAMED: { readonly [character: string]: string } = { '\n': '\\n', '\t': '\\t', '\r': '\\r' };

function escapeOf(character: string): string {
  const named = NAMED[character];
  if (named !== undefined) return named;
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  if (code > 0xffff) return `\\u{${digits}}`;
  return code > 0xff ? `\\u${digits.padStart(4, '0')}` : `\\x${digits.padStart(2, '0')}`;
}

/** Running text: line breaks and tabs stay, CRLF is a line break. */
export function printable(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(IN_TEXT, escapeOf);
}

/** One line, such as a name, a path or arguments: line breaks and tabs are escapes too, joiners as well. */
export function printableLine(text: string): string {
  return text.replace(IN_LINE, escapeOf);
}

/** Running text that comes in pieces, cut anywhere: what is printed is what the whole would be. */
export class PrintableStream {
  /** Half of a character or of a line break. */
  #held = '';

  push(piece: string): string {
    const text = this.#held + piece;
    const whole = /[\r\ud800-\udbff]$/.test(text) ? text.length - 1 : text.length;
    this.#held = text.slice(whole);
    return printable(text.slice(0, whole));
  }

  /** What was held back. */
  end(): string {
    const rest = printable(this.#held);
    this.#held = '';
    return rest;
  }
}

/** A value as one line of JSON, the same once parsed, that a terminal can be given too. */
export function jsonLine(value: unknown): string {
  const unit = (code: number): string => `\\u${code.toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(IN_LINE, (character) =>
    Array.from({ length: character.length }, (_, index) => unit(character.charCodeAt(index))).join(''),
  );
}

/** At most `most` UTF-16 units, never half of a character; what was cut shows as an ellipsis. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
