/**
 * The real program as a process. Rule: it runs from the built package, sees no environment but what a test gives, and
 * is killed when its test has finished.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';
import type { LogEntry } from '../../machines/index.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';

export interface Ended {
  code: number | null;
  signal: string | null;
}
export interface Program {
  readonly process: ChildProcess;
  /** What it has written so far. */
  readonly stdout: string;
  readonly stderr: string;
  readonly ended: Promise<Ended>;
  /** Resolves once the text was written on either output; rejects where the process ends before. */
  says(text: string): Promise<void>;
}
export interface StartOptions {
  env?: Record<string, string>;
  cwd?: string;
  /** Written to standard input, which is closed then; null leaves it open. */
  input?: string | null;
  /** Another program file than the built one. */
  main?: string;
}

const mainFile = (): string => join(inject('packageRoot'), 'dist', 'src', 'cli', 'main.js');

/** A directory that is gone when the test has finished. */
export async function temporaryDirectory(): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'runchart-e2e-')));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

const bareEnvironment = (given: Record<string, string>): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: '/nonexistent',
  LANG: 'C.UTF-8',
  ...given,
});

function watched(child: ChildProcess): Program {
  let stdout = '';
  let stderr = '';
  let over = false;
  const looks: (() => void)[] = [];
  const look = (): void => {
    for (const again of looks.splice(0)) again();
  };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    look();
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    look();
  });
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code, signal) => {
      over = true;
      resolve({ code, signal });
      look();
    });
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return {
    process: child,
    get stdout() {
      return stdout;
    },
    get stderr() {
      return stderr;
    },
    ended,
    async says(text) {
      while (!stdout.includes(text) && !stderr.includes(text)) {
        if (over) throw new Error(`the process ended without "${text}"; it said\n${stdout}\n${stderr}`);
        await new Promise<void>((resolve) => looks.push(resolve));
      }
    },
  };
}

/** Starts `runchart` with these arguments. */
export function start(
  args: readonly string[],
  { env = {}, cwd, input = '', main = mainFile() }: StartOptions = {},
): Program {
  const child = spawn(process.execPath, [main, ...args], {
    env: bareEnvironment(env),
    ...(cwd !== undefined && { cwd }),
    stdio: 'pipe',
  });
  if (input !== null) child.stdin.end(input);
  return watched(child);
}

/** A module of its own that may import from the built package; with a limit it may have so many descriptors. */
export function startScript(source: string, descriptors?: number): Program {
  const limited = descriptors === undefined ? [] : ['sh', '-c', `ulimit -n ${descriptors} && exec "$0" "$@"`];
  const [command = '', ...args] = [...limited, process.execPath, '--input-type=module', '-e', source];
  const child = spawn(command, args, {
    env: bareEnvironment({}),
    cwd: inject('packageRoot'),
    stdio: 'pipe',
  });
  return watched(child);
}

/** Is the `script` of util-linux here? It gives a process a terminal of its own. */
export const hasTerminals = ((): boolean => {
  try {
    return execFileSync('script', ['--version'], { encoding: 'utf8' }).includes('util-linux');
  } catch {
    return false;
  }
})();

/** The same on a terminal: what is written to `process.stdin` is typed, both outputs come as `stdout`. */
export function startOnTerminal(
  args: readonly string[],
  { env = {}, cwd, main = mainFile() }: StartOptions = {},
): Program {
  const quoted = [process.execPath, main, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  const child = spawn('script', ['-qefc', `exec ${quoted.join(' ')}`, '/dev/null'], {
    env: bareEnvironment({ SHELL: '/bin/sh', TERM: 'xterm', ...env }),
    ...(cwd !== undefined && { cwd }),
    stdio: 'pipe',
  });
  return watched(child);
}

/** The entries of a session, as the store reads them. */
export async function storedEntries(sessions: string, id: string): Promise<LogEntry[]> {
  const handle = await jsonlStore(sessions).open(id);
  const entries: LogEntry[] = [];
  for await (const entry of handle.read()) entries.push(entry);
  await handle.close();
  return entries;
}
