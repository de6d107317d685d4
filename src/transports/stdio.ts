/**
 * JSON lines over standard input and output, or over any two streams. Rule: a line is bounded. A line that is no JSON
 * is answered with an error, and reading continues with the next one. A write waits until the reader has taken the
 * earlier output.
 */
import { malformed } from './clientActs.ts';
import type { Incoming, Transport } from './wireMessages.ts';

/** The streams of `stdioTransport`. Default: stdin and stdout of the process. */
export interface LineStreams {
  /** The bytes that the client writes, one JSON message a line. */
  input: AsyncIterable<Uint8Array>;
  /** Receives one JSON message a line. */
  output: {
    /** Returns false if the stream is full; then `write` waits for its `drain` event. */
    write(text: string): boolean;
    once?(event: 'drain' | 'close', listener: () => void): unknown;
    off?(event: 'drain' | 'close', listener: () => void): unknown;
    /** The stream is closed, so it would never drain. */
    readonly destroyed?: boolean;
  };
}

/** The largest line in bytes. An image fits into it. */
const LINE_MAX = 8 * 1_048_576;

function ownStreams(): LineStreams {
  const { process } = globalThis as { process?: { stdin: LineStreams['input']; stdout: LineStreams['output'] } };
  if (!process) throw malformed('streams, where there is no process with a standard input and output');
  return { input: process.stdin, output: process.stdout };
}

/** Creates a transport over two streams, one JSON message a line. */
export function stdioTransport(streams: LineStreams = ownStreams()): Transport {
  const { input, output } = streams;
  let drained: Promise<void> | undefined;
  let isClosed = false;
  const write: Transport['write'] = async (message) => {
    while (drained) await drained;
    if (isClosed || output.destroyed) return;
    if (output.write(`${JSON.stringify(message)}\n`) || !output.once || output.destroyed) return;
    drained = new Promise((resolve) => {
      const go = (): void => {
        drained = undefined;
        output.off?.('drain', go);
        output.off?.('close', stopWriting);
        resolve();
      };
      // A closed output never drains, so a later write would wait forever.
      const stopWriting = (): void => {
        isClosed = true;
        go();
      };
      output.once?.('drain', go);
      output.once?.('close', stopWriting);
    });
    await drained;
  };
  const refuse = (error: { code: string; message: string }): Promise<void> =>
    write({ type: 'error', code: error.code, message: error.message });
  return {
    write,
    async *read() {
      if (isClosed) return;
      for await (const line of linesOf(input)) {
        if (isClosed) return;
        if (line === undefined) {
          await refuse({ code: 'too_large', message: `expected a line of at most ${LINE_MAX} bytes` });
          continue;
        }
        if (line.trim() === '') continue;
        const parsedLine = parsed(line);
        if (parsedLine === undefined) await refuse(malformed('one JSON object a line'));
        else yield parsedLine as Incoming;
      }
    },
    async close() {
      isClosed = true;
    },
  };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return undefined;
  }
}

const NEWLINE = 10;

/** Undefined represents a line that is too long. */
async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<string | undefined> {
  let chunks: Uint8Array[] = [];
  let size = 0;
  const takeLine = (): string | undefined => {
    const bytes = new Uint8Array(size > LINE_MAX ? 0 : size);
    let at = 0;
    for (const piece of chunks) {
      bytes.set(piece, at);
      at += piece.length;
    }
    const line = size > LINE_MAX ? undefined : new TextDecoder().decode(bytes);
    chunks = [];
    size = 0;
    return line;
  };
  const hold = (piece: Uint8Array): void => {
    size += piece.length;
    if (size > LINE_MAX) chunks = [];
    else if (piece.length > 0) chunks.push(piece);
  };
  for await (const chunk of input) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      hold(chunk.subarray(from, end));
      yield takeLine();
      from = end + 1;
    }
    hold(chunk.subarray(from));
  }
  if (size > 0) yield takeLine();
}
