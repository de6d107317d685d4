/**
 * The prompt of a run: the words of the command line and what is piped in, joined. Rule: a pipe that nobody writes to
 * never holds up a run that has something to do without it.
 */
import { fstatSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { ConfigurationError } from '../errors.ts';

const BYTES_MAX = 4 * 1024 * 1024;
const SILENT_MS = 3_000;

export interface PromptOptions {
  /** There is something to do without piped text: then a silent pipe is given up. */
  optional: boolean;
  /** Told when a silent pipe is given up. */
  note(text: string): void;
  /** Ends the reading; what came so far is the prompt. */
  signal: AbortSignal;
}

/** Empty where there is neither. */
export async function readPrompt(words: string, input: Readable | null, options: PromptOptions): Promise<string> {
  const piped = input ? (await readPiped(input, options)).trimEnd() : '';
  return [words.trim(), piped].filter((part) => part !== '').join('\n\n');
}

/** Standard input, where something is piped into it. */
export function pipedInput(): Readable | null {
  try {
    const kind = fstatSync(0);
    return kind.isFIFO() || kind.isFile() || kind.isSocket() ? process.stdin : null;
  } catch {
    return null;
  }
}

async function readPiped(input: Readable, options: PromptOptions): Promise<string> {
  const { optional, note, signal } = options;
  const end = (): void => void input.destroy();
  const silent = setTimeout(() => {
    if (!optional) return;
    note(`nothing came on standard input within ${SILENT_MS / 1000} s: going on without it`);
    end();
  }, SILENT_MS);
  signal.addEventListener('abort', end);
  try {
    return (await bytesOf(input, () => clearTimeout(silent))).toString('utf8');
  } finally {
    clearTimeout(silent);
    signal.removeEventListener('abort', end);
  }
}

async function bytesOf(input: Readable, came: () => void): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of input as AsyncIterable<Buffer>) {
      came();
      bytes += chunk.length;
      if (bytes > BYTES_MAX) {
        throw new ConfigurationError(`standard input is longer than ${BYTES_MAX} bytes: give the model a file to read`);
      }
      chunks.push(chunk);
    }
  } catch (error) {
    // It was ended here.
    if ((error as { code?: unknown }).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
  return Buffer.concat(chunks);
}
