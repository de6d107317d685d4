/**
 * Shows a run: the reply on one output, the steps on another, which may be the same terminal. Invariant: all text
 * passes here and is made printable: control and invisible characters become escapes, and nothing is dropped. Colours
 * are added after that, and only on a terminal.
 */
import pc from 'picocolors';
import { PrintableStream, printableLine } from '../printable.ts';

export type Style =
  | 'plain'
  | 'bold'
  | 'dim'
  | 'italic'
  | 'underline'
  | 'red'
  | 'green'
  | 'yellow'
  | 'cyan'
  | 'magenta'
  | keyof typeof COMBINED;
export type Span = readonly [Style, string];

export interface Output {
  write(text: string): void;
  /** The output supports colours. */
  readonly styled: boolean;
}

/** An output for a standard stream of this process. */
export const outputTo = (stream: NodeJS.WriteStream): Output => ({
  write: (text) => void stream.write(text),
  styled: stream.isTTY === true && pc.isColorSupported,
});

type Paint = (text: string) => string;
type Colors = ReturnType<typeof pc.createColors>;

/** Styles of two attributes. */
const COMBINED = {
  heading:
    (colors: Colors): Paint =>
    (text) =>
      colors.bold(colors.cyan(text)),
  addedWord:
    (colors: Colors): Paint =>
    (text) =>
      colors.inverse(colors.green(text)),
  removedWord:
    (colors: Colors): Paint =>
    (text) =>
      colors.inverse(colors.red(text)),
};

/** Returns a function that adds colours to text that is already safe. */
export function paintOf({ styled }: Output): (style: Style) => Paint {
  const colors = pc.createColors(styled);
  return (style) => {
    if (style === 'plain') return (text) => text;
    return style in COMBINED ? COMBINED[style as keyof typeof COMBINED](colors) : colors[style as 'bold'];
  };
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

  /** Ends an open line. */
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
  /** The stream that may have an open line. */
  #open: Stream | undefined;

  constructor(outputs: { reply: Output; steps: Output }) {
    this.#steps = outputs.steps;
    this.#paint = paintOf(outputs.steps);
    this.#reply = new Stream(outputs.reply, 'plain');
    this.#reasoning = new Stream(outputs.steps, 'dim');
  }

  /** Writes a piece of the reply. */
  reply(piece: string): void {
    this.#stream(this.#reply, piece);
  }

  /** Writes a piece of the model's reasoning. */
  reasoning(piece: string): void {
    this.#stream(this.#reasoning, piece);
  }

  /** Writes a line among the steps. */
  line(...spans: Span[]): void {
    this.endLine();
    this.#steps.write(`${this.#painted(spans)}\n`);
  }

  /** Writes a question and leaves the cursor after it. */
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
