/**
 * One command of the shell, from its start until nothing of it lives. Rule: the wait is for the command, never for a
 * pipe that somebody it started still holds; an abort and the end of the time are answered by ending the whole tree.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { thrownMessage } from '../../thrown.ts';
import { commandEnvironment } from './environment.ts';
import { keep } from './liveTrees.ts';
import { Output } from './output.ts';
import { ProcessTree } from './processTree.ts';

export interface ShellOptions {
  cwd: string;
  signal: AbortSignal;
  timeoutMs: number;
  /** Called now and then while the command runs. */
  progress(news: { elapsedMs: number; outputBytes: number; lastLine: string }): void;
}

export type ShellEnd =
  | { kind: 'exited'; code: number; leftRunning: boolean }
  /** By a signal that did not come from here. */
  | { kind: 'killed'; by: string; leftRunning: boolean }
  /** `unended`: processes that could not be ended. */
  | { kind: 'timeout'; unended: number }
  | { kind: 'not_started'; why: string };

type Over = { kind: 'exited'; code: number } | { kind: 'killed'; by: string } | { kind: 'stopped' };
type Started = { kind: 'started'; child: ChildProcess; pid: number; mark: string };

/** Both outputs are one pipe from the beginning, so that their lines keep their order. */
const ONE_OUTPUT = 'exec bash -c -- "$0" 2>&1';
const PROGRESS_MS = 500;
/** How long what was printed may still be read after the command has ended. */
const DRAIN_MS = 100;
const TIMER_MOST = 2 ** 31 - 1;

/** Runs a command. Rejects with the signal's reason once all of an aborted command has ended. */
export async function runShell(command: string, options: ShellOptions): Promise<{ end: ShellEnd; output: Output }> {
  const output = new Output();
  options.signal.throwIfAborted();
  const started = await start(command, options.cwd);
  const end = started.kind === 'started' ? await followed(started, output, options) : started;
  return { end, output };
}

async function start(command: string, cwd: string): Promise<Started | Extract<ShellEnd, { kind: 'not_started' }>> {
  const mark = randomBytes(12).toString('hex');
  const env = commandEnvironment(process.env, mark);
  try {
    const child = spawn('bash', ['-c', ONE_OUTPUT, command], {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
      windowsHide: true,
    });
    if (child.pid !== undefined) return { kind: 'started', child, pid: child.pid, mark };
    const [error] = await once(child, 'error');
    return { kind: 'not_started', why: thrownMessage(error) };
  } catch (error) {
    return { kind: 'not_started', why: thrownMessage(error) };
  }
}

async function followed({ child, pid, mark }: Started, output: Output, options: ShellOptions): Promise<ShellEnd> {
  const { signal, progress } = options;
  const tree = new ProcessTree(pid, mark);
  const forget = keep(tree);
  const since = performance.now();
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  child.stdout?.on('data', (chunk: Buffer) => output.push(chunk)).on('error', () => undefined);
  const tick = setInterval(() => {
    tree.capture();
    const elapsedMs = Math.round(performance.now() - since);
    progress({ elapsedMs, outputBytes: output.bytes, lastLine: output.lastLine() });
  }, PROGRESS_MS);
  const endTree = (): void => void tree.end();
  // Stays to the last: what is aborted while its output is still read ends as fast.
  signal.addEventListener('abort', endTree);
  try {
    const over = signal.aborted ? { kind: 'stopped' as const } : await firstOf(child, tree, options);
    const end = await ended(over, tree, closed);
    signal.throwIfAborted();
    return end;
  } finally {
    clearInterval(tick);
    if (signal.aborted) await tree.end();
    signal.removeEventListener('abort', endTree);
    child.stdout?.destroy();
    child.unref();
    forget();
  }
}

/** What comes first: the command's own end, the end of its time, or an abort. */
async function firstOf(child: ChildProcess, tree: ProcessTree, { signal, timeoutMs }: ShellOptions): Promise<Over> {
  let aborted = (): void => {};
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Over>((resolve) => {
      child.once('exit', (code, by) =>
        resolve(code === null ? { kind: 'killed', by: String(by) } : { kind: 'exited', code }),
      );
      aborted = () => resolve({ kind: 'stopped' });
      signal.addEventListener('abort', aborted);
      const late = (): void => {
        void tree.end();
        resolve({ kind: 'stopped' });
      };
      timer = setTimeout(late, Math.min(timeoutMs, TIMER_MOST));
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', aborted);
  }
}

async function ended(over: Over, tree: ProcessTree, closed: Promise<void>): Promise<ShellEnd> {
  if (over.kind === 'stopped') {
    const unended = await tree.end();
    await soon(closed);
    return { kind: 'timeout', unended };
  }
  // Who reads what the command wrote (`> >(tee log)`) ends by itself now; who does not was left running.
  await soon(closed);
  const leftRunning = (await tree.living())?.length !== 0;
  if (leftRunning) {
    await tree.end();
    await soon(closed);
  }
  return { ...over, leftRunning };
}

/** Waits for it, but not long. */
async function soon(event: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, DRAIN_MS);
  });
  await Promise.race([event, over]);
  clearTimeout(timer);
}
