/** A worker of the tests in a process of its own, which can be killed and started again, and the notes of its tools. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { until } from './restateServer.ts';

/** An act of a tool: its start, its end, or an abort. `key`: its idempotency key, which begins with the id of the conversation. */
export interface ToolNote {
  what: string;
  name: string;
  key: string;
  /** The name of the worker. */
  by: string;
  at: number;
}

export const notesIn = (ledger: string): ToolNote[] =>
  readFileSync(ledger, 'utf8')
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as ToolNote);

export class WorkerProcess {
  url = '';
  #process: ChildProcess | undefined;
  readonly #arguments: readonly string[];

  /** `blobs`: a directory for large contents. `postgres`: the host of a database for them, for the list and for live text. */
  constructor(options: { admin: string; ledger: string; name: string; blobs?: string; postgres?: string }) {
    this.#arguments = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  }

  /** Starts a worker. It has the same address each time, as behind a load balancer. */
  async start(): Promise<void> {
    const port = this.url ? ['--port', new URL(this.url).port] : [];
    const file = fileURLToPath(new URL('restateWorker.ts', import.meta.url));
    const child = spawn(process.execPath, [file, ...this.#arguments, ...port], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#process = child;
    let output = '';
    child.stdout?.on('data', (chunk) => {
      output += String(chunk);
    });
    await until('the worker listens', () => {
      if (child.exitCode !== null) throw new Error(`the worker ended: ${output}`);
      return /http:\S+\n/.test(output);
    });
    this.url = /http:\S+/.exec(output)?.[0] ?? '';
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
  }
}
