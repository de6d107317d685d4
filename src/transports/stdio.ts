/**
 * JSON lines over standard input and output, or over any two streams. Rule: a line is bounded; one that is no JSON is answered with an
 * error and the next one counts; who writes waits until the reader has taken what was written before.
 */
import { malformed } from './clientActs.ts';
import type { Incoming, Transport } from './wireMessages.ts';

export interface LineStreams {
  input: AsyncIterable<Uint8Array>;
  output: {
    /** False: it is full. One that tells when it has drained is waited for. */
    write(text: string): boolean;
    once?(event: 'drain' | 'close', listener: () => void): unknown;
    off?(event: 'drain' | 'close', listener: () => void): unknown;
    /** Nothing is written any more: it would never drain. */
    readonly destroyed?: boolean;
  };
}

/** Room for an image. */
const LINE_MAX = 8 * 1_048_576;

function ownStreams(): LineStreams {
  const { process } = globalThis as { process?: { stdin: LineStreams['input']; stdout: LineStreams['output'] } };
  if (!process) throw malformed('streams, where there is no process with a standard input and output');
  return { input: process.stdin, output: process.stdout };
}

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
        output.off?.('close', leave);
        resolve();
      };
      // An output that has closed never drains, so a later write would wait for ever.
      const leave = (): void => {
        isClosed = true;
        go();
      };
      output.once?.('drain', go);
      output.once?.('close', leave);
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
        const given = parsed(line);
        if (given === undefined) await refuse(malformed('one JSON object a line'));
        else yield given as Incoming;
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

/** Undefined stands for a line that is too long. */
async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<string | undefined> {
  let held: Uint8Array[] = [];
  let size = 0;
  const taken = (): string | undefined => {
    const bytes = new Uint8Array(size > LINE_MAX ? 0 : size);
    let at = 0;
    for (const piece of held) {
      bytes.set(piece, at);
      at += piece.length;
    }
    const line = size > LINE_MAX ? undefined : new TextDecoder().decode(bytes);
    held = [];
    size = 0;
    return line;
  };
  const hold = (piece: Uint8Array): void => {
    size += piece.length;
    if (size > LINE_MAX) held = [];
    else if (piece.length > 0) held.push(piece);
  };
  for await (const chunk of input) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      hold(chunk.subarray(from, end));
      yield taken();
      from = end + 1;
    }
    hold(chunk.subarray(from));
  }
  if (size > 0) yield taken();
}
