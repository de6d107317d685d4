/**
 * Runs one command of the shell, from its start until nothing of it lives, and keeps what it printed. Rule: the wait is
 * for the command, never for a pipe that another process still holds; an abort and the end of the time end the whole
 * tree. The environment holds the variables named here or in RUNCHART_BASH_ENV and nothing else. Output is bounded: its
 * beginning and end are kept with the number of missing bytes, and nothing in it drives a terminal.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';
import { thrownMessage } from '../../errors.ts';
import { isFirstOfNamespace, type Process } from './processTable.ts';
import { endOnExit, ProcessTree } from './processTree.ts';
import type { Launcher } from './sandbox.ts';
import { SpilledOutput } from './spilledOutput.ts';

export interface ShellOptions {
  cwd: string;
  signal: AbortSignal;
  timeoutMs: number;
  /** What the command is started by; bash itself where it is not given. */
  launcher?: Launcher | undefined;
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
  const output = new Output(new SpilledOutput());
  options.signal.throwIfAborted();
  const started = await start(command, options);
  try {
    const end = started.kind === 'started' ? await followed(started, output, options) : started;
    return { end, output };
  } finally {
    output.end();
  }
}

async function start(
  command: string,
  { cwd, launcher }: ShellOptions,
): Promise<Started | Extract<ShellEnd, { kind: 'not_started' }>> {
  const mark = randomBytes(12).toString('hex');
  const env = commandEnvironment(process.env, mark);
  try {
    const [program = 'bash', ...args] = [...(launcher ? [launcher.program, ...launcher.args] : []), 'bash', '-c'];
    const child = spawn(program, [...args, ONE_OUTPUT, command], {
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
  const forget = endOnExit(tree);
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
    const end = await ended(over, tree, closed, options.launcher?.hasFirstProcess === true);
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

/** `inSandbox`: the first process of the sandbox is not the command's, and may end a moment after it. */
async function ended(over: Over, tree: ProcessTree, closed: Promise<void>, inSandbox: boolean): Promise<ShellEnd> {
  if (over.kind === 'stopped') {
    const unended = await tree.end();
    await soon(closed);
    return { kind: 'timeout', unended };
  }
  // Who reads what the command wrote (`> >(tee log)`) ends by itself now; who does not was left running.
  await soon(closed);
  const left = await leftOf(tree);
  if (left?.length === 0) return { ...over, leftRunning: false };
  const leftRunning = left?.some(({ pid }) => !inSandbox || isFirstOfNamespace(pid) === false) ?? true;
  await tree.end();
  await soon(closed);
  return { ...over, leftRunning };
}

const ENDING_MS = 10;
const ENDING_LOOKS = 5;

/** What lives of a command that has ended. What is just ending gets a moment. Undefined where the process table cannot be read. */
async function leftOf(tree: ProcessTree): Promise<readonly Process[] | undefined> {
  let left: readonly Process[] | undefined;
  for (let look = 0; look < ENDING_LOOKS; look += 1) {
    left = await tree.living();
    if (left?.length === 0) break;
    await new Promise<void>((resolve) => setTimeout(resolve, ENDING_MS));
  }
  return left;
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

const NAMES: ReadonlySet<string> = new Set(
  `PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP CI NO_COLOR HOSTNAME
   XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
   NODE_ENV NODE_PATH NODE_EXTRA_CA_CERTS NVM_DIR NVM_BIN VOLTA_HOME PNPM_HOME BUN_INSTALL DENO_DIR COREPACK_HOME
   VIRTUAL_ENV PYTHONPATH PYENV_ROOT CONDA_PREFIX CONDA_DEFAULT_ENV UV_CACHE_DIR
   GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOFLAGS GOPROXY GOTOOLCHAIN CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN
   JAVA_HOME GRADLE_HOME GRADLE_USER_HOME MAVEN_HOME SDKMAN_DIR ANDROID_HOME DOTNET_ROOT
   GEM_HOME GEM_PATH BUNDLE_PATH RBENV_ROOT ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR
   LD_LIBRARY_PATH PKG_CONFIG_PATH NIX_PATH NIX_PROFILES
   SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO
   HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY
   SYSTEMROOT COMSPEC PATHEXT USERPROFILE APPDATA LOCALAPPDATA PROGRAMFILES`
    .trim()
    .split(/\s+/),
);
const MORE = 'RUNCHART_BASH_ENV';
/** Everything that a command starts inherits this. */
const MARK = 'RUNCHART_CALL';
const PASSWORD_IN_ADDRESS = /\/\/[^/@\s]+@/;

/** The environment of a command whose processes are known by `mark`. */
export function commandEnvironment(host: NodeJS.ProcessEnv, mark: string): Record<string, string> {
  const more = new Set((host[MORE] ?? '').split(',').map((name) => name.trim()));
  const passed = Object.entries(host).filter((entry): entry is [string, string] => {
    const [name, value = ''] = entry;
    if (more.has(name)) return true;
    const listed = NAMES.has(name.toUpperCase()) || /^LC_[A-Z]+$/.test(name);
    return listed && !PASSWORD_IN_ADDRESS.test(value);
  });
  // A program that runs commands in a command keeps the outer mark, so that both are found.
  const marks = [host[MARK], mark].filter(Boolean).join(' ');
  return { ...Object.fromEntries(passed), TERM: 'dumb', [MARK]: marks };
}

const HEAD_BYTES = 64 * 1_024;
const TAIL_BYTES = 64 * 1_024;
const LINE_BYTES = 1_024;
const LINE_SHOWN = 200;

/** At the edge of a cut: the bytes of a character whose other half is missing. */
const CONTINUES = 0b1000_0000;
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0b1100_0000) === CONTINUES;
const CHARACTER_BYTES = 4;

export class Output {
  readonly #head = Buffer.alloc(HEAD_BYTES);
  readonly #tail = Buffer.alloc(TAIL_BYTES);
  /** Bytes that came. */
  #total = 0;
  /** Takes all of it, once it is more than is kept here. */
  readonly #spilled: SpilledOutput | undefined;

  constructor(spilled?: SpilledOutput) {
    this.#spilled = spilled;
  }

  get bytes(): number {
    return this.#total;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    if (this.#total < HEAD_BYTES) {
      const taken = chunk.copy(this.#head, this.#total);
      this.#total += taken;
      rest = chunk.subarray(taken);
    }
    if (rest.length === 0) return;
    this.#spill(rest);
    this.#total += rest.length;
    const kept = rest.subarray(-TAIL_BYTES);
    // The tail is a ring: byte n of what is behind the head lies at n modulo its size.
    const at = (this.#total - HEAD_BYTES - kept.length) % TAIL_BYTES;
    kept.copy(this.#tail, 0, kept.copy(this.#tail, at));
  }

  /** Nothing more comes. */
  end(): void {
    this.#spilled?.end();
  }

  /** The file that holds what is left out; undefined where nothing is. */
  get spilled(): { path: string; bytes: number } | undefined {
    return this.#spilled?.file;
  }

  /** Before `rest` takes the place of what came before it. */
  #spill(rest: Buffer): void {
    const behind = this.#behind();
    if (!this.#spilled || behind + rest.length <= TAIL_BYTES) return;
    if (behind <= TAIL_BYTES) {
      this.#spilled.write(this.#first());
      this.#spilled.write(this.#last(behind));
    }
    this.#spilled.write(rest);
  }

  /** All of it, or its beginning and its end. */
  text(): string {
    const behind = this.#behind();
    if (behind <= TAIL_BYTES) return plainText(Buffer.concat([this.#first(), this.#last(behind)]));
    const head = withoutHalfAtEnd(this.#first());
    const tail = withoutHalfAtStart(this.#last(TAIL_BYTES));
    const left = this.#total - head.length - tail.length;
    return `${plainText(head)}\n[${left} bytes left out]\n${plainText(tail)}`;
  }

  /** The last line that is not empty, cut to what a display may show; empty while there is none. */
  lastLine(): string {
    const behind = this.#behind();
    const bytes = behind === 0 ? this.#first() : this.#last(Math.min(behind, LINE_BYTES));
    const lines = plainText(withoutHalfAtStart(bytes.subarray(-LINE_BYTES)))
      .trimEnd()
      .split('\n');
    return Array.from(lines.at(-1) ?? '')
      .slice(0, LINE_SHOWN)
      .join('');
  }

  #behind(): number {
    return Math.max(0, this.#total - HEAD_BYTES);
  }

  #first(): Buffer {
    return this.#head.subarray(0, Math.min(this.#total, HEAD_BYTES));
  }

  /** The last `count` bytes of those behind the head. */
  #last(count: number): Buffer {
    const end = this.#behind() % TAIL_BYTES;
    if (count <= end) return this.#tail.subarray(end - count, end);
    return Buffer.concat([this.#tail.subarray(TAIL_BYTES - (count - end)), this.#tail.subarray(0, end)]);
  }
}

function withoutHalfAtStart(bytes: Buffer): Buffer {
  let at = 0;
  while (at < CHARACTER_BYTES - 1 && isContinuation(bytes[at])) at += 1;
  return bytes.subarray(at);
}

/** At most three bytes go: the lead of a character and what came of it. */
function withoutHalfAtEnd(bytes: Buffer): Buffer {
  let at = bytes.length - 1;
  while (at > bytes.length - CHARACTER_BYTES && isContinuation(bytes[at])) at -= 1;
  const lead = bytes[at] ?? 0;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return at + length > bytes.length ? bytes.subarray(0, at) : bytes;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is sought
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

export function plainText(bytes: Uint8Array): string {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  return stripVTControlCharacters(text).replace(/\r\n?/g, '\n').replace(CONTROLS, '\uFFFD');
}
