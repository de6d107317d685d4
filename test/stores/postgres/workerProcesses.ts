/**
 * Processes that serve one address over a PostgreSQL server, and their clients. Invariant: a client repeats a request after a lost
 * connection and after a refusal for lack of a holder, always under the same ids. A reader continues after its last entry; a gap or a
 * repetition
 * is recorded.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { LogEntry } from '../../../src/index.ts';

export interface Worker {
  process: ChildProcess;
  port: number;
}
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The program of a process, in one file so that it starts fast. */
export async function builtWorker(): Promise<{ start: typeof start; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'runchart-worker-'));
  const file = join(folder, 'worker.mjs');
  const js = "import { createRequire as ofModule } from 'node:module'; const require = ofModule(import.meta.url);";
  await build({
    entryPoints: [fileURLToPath(new URL('./worker.ts', import.meta.url))],
    outfile: file,
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: ['pg-native'],
    banner: { js },
    logLevel: 'error',
  });
  async function start(environment: Record<string, string>): Promise<Worker> {
    const { PATH = '' } = process.env;
    const child = spawn(process.execPath, [file], {
      env: { PATH, ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const { value: port } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
    return { process: child, port: Number(port) };
  }
  return { start, remove: () => rm(folder, { recursive: true, force: true }) };
}

export async function killWorker({ process: child }: Worker): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

/** A process sends a beat each second. A stalled process sends nothing, so the client connects to another one. */
const SILENCE_MS = 2000;
const ANSWER_MS = 8000;
const ATTEMPTS = 300;

export class Clients {
  /** Entries that a reader received out of order. */
  readonly gaps: string[] = [];
  readonly #base: () => string;

  /** `base`: the address for the next request. */
  constructor(base: () => string) {
    this.#base = base;
  }

  async ask(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const response = await fetch(`${this.#base()}/conversations${path}`, {
          method,
          signal: AbortSignal.timeout(ANSWER_MS),
          ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
        });
        if (response.ok) return (await response.json()) as Record<string, unknown>;
        if (![409, 429, 500, 502, 503].includes(response.status))
          throw new TypeError(`${response.status} ${await response.text()}`);
        await response.body?.cancel();
      } catch (error) {
        if (error instanceof TypeError && /^\d/.test(error.message)) throw error;
      }
      if (attempt > ATTEMPTS) throw new Error(`${method} ${path} is never answered`);
      await pause(100);
    }
  }

  /** Reads events into `entries` until `isEnough`, from one process after the other. */
  async follow(
    id: string,
    isEnough: (entries: readonly LogEntry[]) => boolean,
    entries: LogEntry[] = [],
  ): Promise<LogEntry[]> {
    while (!isEnough(entries)) {
      const last = entries.length === 0 ? '' : `?lastEventId=${entries.length - 1}`;
      const stop = new AbortController();
      // A process that has stalled accepts connections and sends nothing.
      const timer = setTimeout(() => stop.abort(), SILENCE_MS);
      try {
        const response = await fetch(`${this.#base()}/conversations/${id}/events${last}`, { signal: stop.signal });
        clearTimeout(timer);
        if (!response.ok) throw new Error(`${response.status}`);
        await this.#take(response, entries, () => isEnough(entries), stop);
      } catch {
        await pause(100);
      }
    }
    return entries;
  }

  async #take(response: Response, entries: LogEntry[], isEnough: () => boolean, stop: AbortController): Promise<void> {
    let timer = setTimeout(() => stop.abort(), SILENCE_MS);
    let text = '';
    try {
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        clearTimeout(timer);
        timer = setTimeout(() => stop.abort(), SILENCE_MS);
        const frames = (text + new TextDecoder().decode(chunk)).split('\n\n');
        text = frames.pop() ?? '';
        for (const frame of frames) {
          const data = frame.includes('event: entry') ? /^data: (.*)$/m.exec(frame)?.[1] : undefined;
          if (data === undefined) continue;
          const entry = JSON.parse(data) as LogEntry;
          if (entry.seq !== entries.length)
            this.gaps.push(`${entry.conversationId} ${entry.seq} after ${entries.length - 1}`);
          entries.push(entry);
        }
        if (isEnough()) return stop.abort();
      }
    } finally {
      clearTimeout(timer);
    }
  }
}
