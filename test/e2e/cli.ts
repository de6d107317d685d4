/**
 * The real program as a process. Invariant: it runs from the built package, has only the environment of the test, and
 * is killed after its test.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inject, onTestFinished } from 'vitest';
import type { LogEntry } from '../../machines/index.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';

export interface Ended {
  code: number | null;
  signal: string | null;
}
export interface Program {
  readonly process: ChildProcess;
  /** Its output so far. */
  readonly stdout: string;
  readonly stderr: string;
  readonly ended: Promise<Ended>;
  /** Resolves when either output contains the text; rejects if the process ends before. */
  says(text: string): Promise<void>;
}
export interface StartOptions {
  env?: Record<string, string>;
  cwd?: string;
  /** Written to standard input, which is then closed; null leaves it open. */
  input?: string | null;
  /** Another program file than the built one. */
  main?: string;
}

const mainFile = (): string => join(inject('packageRoot'), 'dist', 'src', 'cli', 'main.js');

/** The tools that the model receives from the program, in order. */
export const TOOL_NAMES = 'Read Ls Glob Grep Bash Write Edit BashOutput KillBash MultiEdit TodoWrite WebFetch'.split(
  ' ',
);

/** A directory that is removed after the test. */
export async function temporaryDirectory(): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'runchart-e2e-')));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/**
 * The built program as a file that finds these packages beside the tests, because the built package has no optional one.
 * `before` is run first.
 */
export async function mainWithPackages(directory: string, packages: readonly string[], before = ''): Promise<string> {
  const isOfThem = `${JSON.stringify(packages)}.some((each) => name === each || name.startsWith(each + '/'))`;
  const here = `{ ...context, parentURL: ${JSON.stringify(import.meta.url)} }`;
  const hook = `export const resolve = (name, context, next) => next(name, ${isOfThem} ? ${here} : context);`;
  const file = join(directory, 'main.mjs');
  await writeFile(
    file,
    `import { register } from 'node:module';
     register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook)}));
     ${before}
     await import(${JSON.stringify(pathToFileURL(mainFile()).href)});`,
  );
  return file;
}

const bareEnvironment = (variables: Record<string, string>): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: '/nonexistent',
  LANG: 'C.UTF-8',
  ...variables,
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

/** A module that may import from the built package; `limit` is its number of descriptors. */
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

/** True if the `script` of util-linux is installed. It gives a process a separate terminal. */
export const hasTerminals = ((): boolean => {
  try {
    return execFileSync('script', ['--version'], { encoding: 'utf8' }).includes('util-linux');
  } catch {
    return false;
  }
})();

/** The same on a terminal: text written to `process.stdin` is typed, and both outputs arrive as `stdout`. */
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
