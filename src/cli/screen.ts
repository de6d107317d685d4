/**
 * Where a run is shown: the reply on one output, the steps on another, which may be the same terminal. Rule: all text
 * passes here and is made printable here; colours are put around it afterwards, and only where the output is a terminal.
 */
import pc from 'picocolors';
import { PrintableStream, printableLine } from './terminal.ts';

export type Style = 'plain' | 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';
type Span = readonly [Style, string];

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

function paintOf({ styled }: Output): (style: Style) => Paint {
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
