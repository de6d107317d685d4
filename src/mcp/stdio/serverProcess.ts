/**
 * An MCP server that runs as a process here. Rule: its whole process tree ends with it, when it is closed, when it dies and when this
 * process exits. The end of its stderr is kept for errors.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { endOnExit, ProcessTree } from '../../tools/coding/processTree.ts';

/** A server that is started here as a process. */
export interface ServerCommand {
  /** The program that is started. */
  command: string;
  /** Its arguments. */
  args?: readonly string[];
  /** Variables for the server, besides those that every program needs. */
  env?: { [name: string]: string };
  /** Its working directory. Default: the directory of this process. */
  cwd?: string;
}

/** The time that a server has to exit after its stdin was closed. */
const EXIT_MS = 1_000;
/** The time that the pipes of a dead process have to deliver the rest. */
const DRAIN_MS = 200;
const STDERR_KEPT = 8_192;
/** A longer line is no message, so that a server cannot fill the memory. */
const LINE_LONGEST = 32 * 1_048_576;

/** The last lines. The first of them is whole, because a part of a secret would not be recognised. */
const endOf = (stderr: string): string =>
  stderr.length <= STDERR_KEPT ? stderr : stderr.slice(-STDERR_KEPT).replace(/^[^\n]*\n/, '');

type ServerChild = ChildProcessByStdio<Writable, Readable, Readable>;

/** Resolves when the promise settles or the time is over, and leaves no timer. */
async function atMost(ms: number, settled: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([settled, over]);
  clearTimeout(timer);
}

/** A `Transport` of the protocol: one JSON message a line. */
export class ServerProcess {
  declare onclose?: () => void;
  declare onerror?: (error: Error) => void;
  declare onmessage?: (message: unknown) => void;
  /** The end of the process's output on stderr. */
  stderr = '';
  /** The end of the process, in words. */
  ending: string | undefined;
  readonly #command: ServerCommand;
  readonly #environment: Record<string, string>;
  /** The beginning of a line. */
  #rest = '';
  #child: ServerChild | undefined;
  #stop: () => void = () => undefined;
  /** Resolves when the process and its descendants have ended. */
  #ended: Promise<void> = Promise.resolve();

  constructor(command: ServerCommand, environment: Record<string, string>) {
    this.#command = command;
    this.#environment = environment;
  }

  start(): Promise<void> {
    const { command, args = [], cwd } = this.#command;
    const mark = randomBytes(12).toString('hex');
    const env = { ...this.#environment, RUNCHART_MCP: mark };
    const child = spawn(command, [...args], {
      ...{ env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] },
      ...(cwd !== undefined && { cwd }),
    });
    const { pid } = child;
    if (pid === undefined) return new Promise((_, reject) => child.once('error', reject));
    this.#child = child;
    this.#listen(child);
    this.#ended = this.#follow(child, new ProcessTree(pid, mark));
    return Promise.resolve();
  }

  async send(message: object): Promise<void> {
    const { stdin } = this.#child ?? {};
    if (this.ending !== undefined || !stdin?.writable) throw new Error('Not connected');
    await new Promise<void>((resolve, reject) =>
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve())),
    );
  }

  async close(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child && this.ending === undefined) {
      child.stdin.end();
      await atMost(EXIT_MS, new Promise((resolve) => child.once('exit', resolve)));
      this.#stop();
    }
    await this.#ended;
  }

  #listen(child: ServerChild): void {
    const [output, errors] = [new StringDecoder('utf8'), new StringDecoder('utf8')];
    const failed = (error: Error): void => this.onerror?.(error);
    child.on('error', failed);
    child.stdin.on('error', failed);
    child.stdout.on('error', failed).on('data', (chunk: Buffer) => this.#read(output.write(chunk)));
    child.stderr.on('error', failed).on('data', (chunk: Buffer) => {
      this.stderr = endOf(this.stderr + errors.write(chunk));
    });
  }

  #read(piece: string): void {
    this.#rest += piece;
    if (piece.includes('\n')) {
      const lines = this.#rest.split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.#take(line);
    } else if (this.#rest.length > LINE_LONGEST) {
      this.#rest = '';
      this.onerror?.(new Error(`a line of the server is longer than ${LINE_LONGEST} characters`));
      void this.close();
    }
  }

  /** A line that is no JSON is the server's own output. */
  #take(line: string): void {
    try {
      this.onmessage?.(JSON.parse(line));
    } catch (error) {
      this.onerror?.(error as Error);
    }
  }

  async #follow(child: ServerChild, tree: ProcessTree): Promise<void> {
    const forget = endOnExit(tree);
    const drained = new Promise<void>((resolve) => child.once('close', () => resolve()));
    await new Promise<void>((resolve) => {
      child.once('exit', (code, signal) => {
        this.ending = signal ? `it was ended by ${signal}` : `it ended with code ${code}`;
        resolve();
      });
      this.#stop = resolve;
    });
    await tree.end();
    await atMost(DRAIN_MS, drained);
    child.stdout.destroy();
    child.stderr.destroy();
    child.unref();
    forget();
    this.#rest = '';
    this.#child = undefined;
    this.onclose?.();
  }
}
