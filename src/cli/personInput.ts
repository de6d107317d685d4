/**
 * A person's input to a command: the prompt, typed or piped in, the answer to a waiting call, and Ctrl-C. Invariant:
 * a silent pipe never blocks a command that can work without it. A call is shown completely, only a clear yes
 * approves, and the end of the input is no answer.
 */
import { fstatSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { Conversation } from '../conversation/conversation.ts';
import { ConfigurationError } from '../errors.ts';
import type { PendingCall } from '../index.ts';
import { CANCELLED } from './exitCodes.ts';
import { approvalFacts } from './interactive/approval.ts';
import type { Screen } from './screen.ts';

const BYTES_MAX = 4 * 1024 * 1024;
const SILENT_MS = 3_000;

export interface PromptOptions {
  /** The command can work without piped text, so a silent pipe is closed after a while. */
  optional: boolean;
  /** Called when a silent pipe is closed. */
  note(text: string): void;
  /** Ends the reading. The text so far is the prompt. */
  signal: AbortSignal;
}

/** Returns an empty text if there is neither. */
export async function readPrompt(words: string, input: Readable | null, options: PromptOptions): Promise<string> {
  const piped = input ? (await readPiped(input, options)).trimEnd() : '';
  return [words.trim(), piped].filter((part) => part !== '').join('\n\n');
}

/** Returns standard input if something is piped into it. */
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

async function bytesOf(input: Readable, onData: () => void): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of input as AsyncIterable<Buffer>) {
      onData();
      bytes += chunk.length;
      if (bytes > BYTES_MAX) {
        throw new ConfigurationError(`standard input is longer than ${BYTES_MAX} bytes: give the model a file to read`);
      }
      chunks.push(chunk);
    }
  } catch (error) {
    // `destroy` above ended the stream.
    if ((error as { code?: unknown }).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
  return Buffer.concat(chunks);
}

type Answer = { action: 'approve' | 'deny'; by: string } | 'later';
const BY = 'terminal';
/** Resolves to the answer for one call. */
export type Asker = (call: PendingCall) => Promise<Answer>;

const ANSWERS = new Map<string, Answer>([
  ['y', { action: 'approve', by: BY }],
  ['yes', { action: 'approve', by: BY }],
  ['n', { action: 'deny', by: BY }],
  ['no', { action: 'deny', by: BY }],
  ['l', 'later'],
  ['later', 'later'],
]);

/** Asks on the terminal of standard input. `signal` ends the question with `later`. */
export function terminalAsker(screen: Screen, signal: AbortSignal): Asker {
  return async () => {
    // Without `terminal` the line discipline keeps Ctrl-C, so it arrives as a signal.
    const lines = createInterface({ input: process.stdin, terminal: false });
    const end = (): void => lines.close();
    signal.addEventListener('abort', end);
    try {
      const ask = (): void => screen.question(['bold', '  approve? [y]es, [n]o, [l]ater:']);
      if (signal.aborted) return 'later';
      ask();
      for await (const line of lines) {
        const answer = ANSWERS.get(line.trim().toLowerCase());
        if (answer) return answer;
        ask();
      }
      return 'later';
    } finally {
      signal.removeEventListener('abort', end);
      lines.close();
    }
  };
}

/** Shows the call as it would run, completely, with the rules' results for the parts of a command. */
export function showCall(screen: Screen, { name, args, reason, payload }: PendingCall): void {
  screen.line(['yellow', '? '], ['bold', name], ['plain', ` waits for a decision (${reason}). It would run with`]);
  for (const line of JSON.stringify(args, null, 2).split('\n')) screen.line(['plain', `    ${line}`]);
  const { parts } = approvalFacts(payload);
  if (parts.length < 2) return;
  for (const { text, outcome, by } of parts) screen.line(['plain', `    ${text}`], ['dim', `  ${outcome} (${by})`]);
}

/** Asks about every waiting call. Resolves to the number of undecided calls. */
export async function decidePending(conversation: Conversation, screen: Screen, ask: Asker): Promise<number> {
  for (const call of conversation.pending) {
    showCall(screen, call);
    const answer = await ask(call);
    if (answer === 'later') break;
    await conversation.decide({ callId: call.callId, suspension: call.suspension, ...answer });
  }
  return conversation.pending.length;
}

/** A handler that replaces the default for Ctrl-C. A conversation on a terminal sets it. */
export interface OwnInterrupt {
  sigint?: (() => void) | undefined;
}

/**
 * Returns a signal that is aborted by the first SIGINT, SIGTERM or SIGHUP, or when the output's reader is gone. It
 * lasts for the life of the process.
 */
export function interrupts(own: OwnInterrupt = {}): AbortSignal {
  const controller = new AbortController();
  const ask = (name: NodeJS.Signals): void => {
    if (name === 'SIGINT' && own.sigint) return own.sigint();
    if (controller.signal.aborted) process.exit(CANCELLED);
    controller.abort();
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, ask);
  // Every write to a broken pipe fails again. Such an error must not count as a second Ctrl-C.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => controller.abort());
  return controller.signal;
}
