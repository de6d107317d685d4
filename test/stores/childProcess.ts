/**
 * Other processes that use a store. Invariant: they run the real source, bundled once for each test file,
 * because Node reads no TypeScript. Each process is killed after its test.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, onTestFinished } from 'vitest';

export interface Child {
  process: ChildProcess;
  /** The next line the script prints; rejects when the process ends first. */
  line(): Promise<string>;
  /** SIGKILL, and waits until the process is gone. */
  kill(): Promise<void>;
}

/**
 * For the top of a test file. The returned function runs a script as a module in a new process. The script has
 * `jsonlStore`, `directory`, `say(text)` (prints a line) and `entry(seq)` (an entry of conversation `c`). `within`: the
 * command that starts it.
 */
export function children(): (directory: string, script: string, within?: readonly string[]) => Child {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'runchart-child-'));
    const source = fileURLToPath(new URL('../../src/stores/jsonl/jsonlStore.ts', import.meta.url));
    const outfile = join(folder, 'jsonl.mjs');
    await build({ entryPoints: [source], bundle: true, platform: 'node', format: 'esm', outfile, logLevel: 'error' });
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return (directory, script, within = []) => {
    const prelude = `
      import { writeSync } from 'node:fs';
      import { jsonlStore } from ${JSON.stringify(pathToFileURL(join(folder, 'jsonl.mjs')).href)};
      const say = (text) => writeSync(1, text + '\\n');
      const directory = ${JSON.stringify(directory)};
      const entry = (seq) => ({ seq, at: seq, conversationId: 'c', runId: null, type: 'notice', code: 'n', text: 't' });
      setInterval(() => {}, 1000);
    `;
    return startChild(prelude + script, within);
  };
}

/** Runs the script as a module in a new process. */
export function startChild(script: string, within: readonly string[] = []): Child {
  const [command = process.execPath, ...args] = [...within, process.execPath, '--input-type=module', '-e', script];
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const kill = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  onTestFinished(kill);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`the process ended with ${child.exitCode ?? child.signalCode} before it said more`);
    return value;
  };
  return { process: child, line, kill };
}
