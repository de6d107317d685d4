/**
 * Runs one shell command until all its processes have ended, and keeps its output. Rule: it waits for the command,
 * never for a pipe that another process holds open. An abort or a time-out ends the whole process tree. The environment
 * contains only the variables listed here and in RUNCHART_BASH_ENV. Output is bounded: its beginning and end are kept
 * with the number of missing bytes, and control characters are removed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { basename } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { thrownMessage } from '../../errors.ts';
import { TIMER_MAX_MS } from '../../timeLimit.ts';
import { isFirstOfNamespace, type Process } from './processTable.ts';
import { endOnExit, ProcessTree } from './processTree.ts';
import type { Launcher } from './sandbox.ts';
import { SpilledOutput } from './spilledOutput.ts';

export interface ShellOptions {
  cwd: string;
  signal: AbortSignal;
  timeoutMs: number;
  /** Starts the command; default: bash directly. */
  launcher?: Launcher | undefined;
  /** The command does not keep this program alive. It is ended when the program exits. */
  isBackground?: boolean;
  /** Receives the output of `runShell` before the command starts. */
  printing?(output: Output): unknown;
  /** Called repeatedly while the command runs. */
  progress(update: { elapsedMs: number; outputBytes: number; lastLine: string }): void;
}

export type ShellEnd =
  | { kind: 'exited'; code: number; leftRunning: boolean }
  /** Killed by a signal that this module did not send. */
  | { kind: 'killed'; by: string; leftRunning: boolean }
  /** `unended` counts processes that could not be ended. */
  | { kind: 'timeout'; unended: number }
  | { kind: 'not_started'; why: string };

type Over = { kind: 'exited'; code: number } | { kind: 'killed'; by: string } | { kind: 'stopped' };
type Started = { kind: 'started'; child: ChildProcess; pid: number; mark: string };

/** Both outputs share one pipe, so that their lines keep their order. */
const ONE_OUTPUT = 'exec bash -c -- "$0" 2>&1';
const PROGRESS_MS = 500;
/** The time for reading remaining output after the command has ended. */
const DRAIN_MS = 100;

/** Runs a command. After an abort, rejects with the signal's reason when all its processes have ended. */
export async function runShell(command: string, options: ShellOptions): Promise<{ end: ShellEnd; output: Output }> {
  const output = new Output(new SpilledOutput());
  options.printing?.(output);
  return { end: await runInto(output, command, options), output };
}

/** The receiver of a command's output. */
type Sink = Pick<Output, 'push' | 'bytes' | 'lastLine' | 'end'>;

/** The same, with an output that is read while the command runs. */
export async function runInto(output: Sink, command: string, options: ShellOptions): Promise<ShellEnd> {
  options.signal.throwIfAborted();
  const started = await start(command, options);
  try {
    return started.kind === 'started' ? await waitForEnd(started, output, options) : started;
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
      // Only a launcher writes to the second output: that of the command is the first one.
      stdio: ['ignore', 'pipe', launcher ? 'pipe' : 'ignore'],
      windowsHide: true,
    });
    if (child.pid !== undefined) return { kind: 'started', child, pid: child.pid, mark };
    const [error] = await once(child, 'error');
    return { kind: 'not_started', why: thrownMessage(error) };
  } catch (error) {
    return { kind: 'not_started', why: thrownMessage(error) };
  }
}

async function waitForEnd({ child, pid, mark }: Started, output: Sink, options: ShellOptions): Promise<ShellEnd> {
  const { signal, progress } = options;
  const tree = new ProcessTree(pid, mark);
  const forget = endOnExit(tree);
  const since = performance.now();
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  child.stdout?.on('data', (chunk: Buffer) => output.push(chunk)).on('error', () => undefined);
  const launcherOutput = new LauncherOutput();
  child.stderr?.on('data', (chunk: Buffer) => launcherOutput.push(chunk)).on('error', () => undefined);
  const tick = setInterval(() => {
    tree.capture();
    const elapsedMs = Math.round(performance.now() - since);
    progress({ elapsedMs, outputBytes: output.bytes, lastLine: output.lastLine() });
  }, PROGRESS_MS);
  const endTree = (): void => void tree.end();
  if (options.isBackground) {
    tick.unref();
    child.unref();
    (child.stdout as Socket | null)?.unref();
    (child.stderr as Socket | null)?.unref();
  }
  // Stays until the end, so that an abort while output is still read also ends the tree.
  signal.addEventListener('abort', endTree);
  try {
    const firstEvent = signal.aborted ? { kind: 'stopped' as const } : await firstOf(child, tree, options);
    const end = await ended(firstEvent, tree, closed, options.launcher?.hasFirstProcess === true);
    signal.throwIfAborted();
    const hasFailed = end.kind === 'exited' && end.code !== 0 && output.bytes === 0;
    const why = hasFailed && options.launcher ? launcherOutput.errorOf(options.launcher.program) : undefined;
    return why === undefined ? end : { kind: 'not_started', why };
  } finally {
    clearInterval(tick);
    if (signal.aborted) await tree.end();
    signal.removeEventListener('abort', endTree);
    child.stdout?.destroy();
    child.stderr?.destroy();
    child.unref();
    forget();
  }
}

/** The beginning of a launcher's output, such as the reason why a sandbox cannot be started. */
class LauncherOutput {
  #text = '';

  push(chunk: Buffer): void {
    if (this.#text.length < LINE_BYTES) this.#text += chunk.toString('utf8').slice(0, LINE_BYTES);
  }

  /** The lines in which the program names itself, as one line. */
  errorOf(program: string): string | undefined {
    const lines = plainText(Buffer.from(this.#text)).split('\n');
    return lines.filter((line) => line.startsWith(`${basename(program)}: `)).join('; ') || undefined;
  }
}

/** Resolves with the first of: the command's end, the time-out, an abort. */
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
      if (timeoutMs !== Number.POSITIVE_INFINITY) timer = setTimeout(late, Math.min(timeoutMs, TIMER_MAX_MS));
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', aborted);
  }
}

/** `inSandbox`: the sandbox's first process is not the command's, and may end shortly after it. */
async function ended(
  firstEvent: Over,
  tree: ProcessTree,
  closed: Promise<void>,
  inSandbox: boolean,
): Promise<ShellEnd> {
  if (firstEvent.kind === 'stopped') {
    const unended = await tree.end();
    await soon(closed);
    return { kind: 'timeout', unended };
  }
  // A process that only reads the command's output (`> >(tee log)`) now ends by itself. Any other was left running.
  await soon(closed);
  const survivors = await leftOf(tree);
  if (survivors?.length === 0) return { ...firstEvent, leftRunning: false };
  const leftRunning = survivors?.some(({ pid }) => !inSandbox || isFirstOfNamespace(pid) === false) ?? true;
  await tree.end();
  await soon(closed);
  return { ...firstEvent, leftRunning };
}

const ENDING_MS = 10;
const ENDING_LOOKS = 5;

/**
 * The processes that survive an ended command. Processes that are just ending get a moment. Undefined if the process
 * table cannot be read.
 */
async function leftOf(tree: ProcessTree): Promise<readonly Process[] | undefined> {
  let survivors: readonly Process[] | undefined;
  for (let look = 0; look < ENDING_LOOKS; look += 1) {
    survivors = await tree.living();
    if (survivors?.length === 0) break;
    await new Promise<void>((resolve) => setTimeout(resolve, ENDING_MS));
  }
  return survivors;
}

/** Waits for the event for a short time. */
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
/** Every process of a command inherits this variable. */
const MARK = 'RUNCHART_CALL';
const PASSWORD_IN_ADDRESS = /\/\/[^/@\s]+@/;
/** A proxy may be written without a scheme. */
const PASSWORD_OF_PROXY = /^[^/@\s]+@/;

/** The environment of a command. `mark` identifies its processes. */
export function commandEnvironment(host: NodeJS.ProcessEnv, mark: string): Record<string, string> {
  const more = new Set((host[MORE] ?? '').split(',').map((name) => name.trim()));
  const passed = Object.entries(host).filter((entry): entry is [string, string] => {
    const [name, value = ''] = entry;
    if (more.has(name)) return true;
    const listed = NAMES.has(name.toUpperCase()) || /^LC_[A-Z]+$/.test(name);
    const hasPassword = PASSWORD_IN_ADDRESS.test(value) || (/_proxy$/i.test(name) && PASSWORD_OF_PROXY.test(value));
    return listed && !hasPassword;
  });
  // If this program itself runs inside a command, the outer mark stays, so that both trees are found.
  const marks = [host[MARK], mark].filter(Boolean).join(' ');
  return { ...Object.fromEntries(passed), TERM: 'dumb', [MARK]: marks };
}

const HEAD_BYTES = 64 * 1_024;
const TAIL_BYTES = 64 * 1_024;
const LINE_BYTES = 1_024;
const LINE_SHOWN = 200;

/** Continuation bytes of a UTF-8 character that a cut may separate. */
const CONTINUES = 0b1000_0000;
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0b1100_0000) === CONTINUES;
const CHARACTER_BYTES = 4;

export class Output {
  readonly #head = Buffer.alloc(HEAD_BYTES);
  readonly #tail = Buffer.alloc(TAIL_BYTES);
  /** The number of bytes received. */
  #total = 0;
  /** Receives the whole output after it exceeds the memory limit. */
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
      const headBytes = chunk.copy(this.#head, this.#total);
      this.#total += headBytes;
      rest = chunk.subarray(headBytes);
    }
    if (rest.length === 0) return;
    this.#spill(rest);
    this.#total += rest.length;
    const tailBytes = rest.subarray(-TAIL_BYTES);
    // The tail is a ring buffer: byte n after the head is at n modulo its size.
    const at = (this.#total - HEAD_BYTES - tailBytes.length) % TAIL_BYTES;
    tailBytes.copy(this.#tail, 0, tailBytes.copy(this.#tail, at));
  }

  /** Call after the last byte. */
  end(): void {
    this.#spilled?.end();
  }

  /** The file with the whole output; undefined if nothing is left out. */
  get spilled(): { path: string; bytes: number } | undefined {
    return this.#spilled?.file;
  }

  /** Writes the earlier bytes to the file before `rest` overwrites them. */
  #spill(rest: Buffer): void {
    const afterHead = this.#bytesAfterHead();
    if (!this.#spilled || afterHead + rest.length <= TAIL_BYTES) return;
    if (afterHead <= TAIL_BYTES) {
      this.#spilled.write(this.#first());
      this.#spilled.write(this.#last(afterHead));
    }
    this.#spilled.write(rest);
  }

  /** The whole output, or its beginning and its end. */
  text(): string {
    const afterHead = this.#bytesAfterHead();
    if (afterHead <= TAIL_BYTES) return plainText(Buffer.concat([this.#first(), this.#last(afterHead)]));
    const head = withoutHalfAtEnd(this.#first());
    const tail = withoutHalfAtStart(this.#last(TAIL_BYTES));
    const survivors = this.#total - head.length - tail.length;
    return `${plainText(head)}\n[${survivors} bytes left out]\n${plainText(tail)}`;
  }

  /** The last non-empty line, cut for a display; empty if there is none. */
  lastLine(): string {
    const afterHead = this.#bytesAfterHead();
    const bytes = afterHead === 0 ? this.#first() : this.#last(Math.min(afterHead, LINE_BYTES));
    const lines = plainText(withoutHalfAtStart(bytes.subarray(-LINE_BYTES)))
      .trimEnd()
      .split('\n');
    return Array.from(lines.at(-1) ?? '')
      .slice(0, LINE_SHOWN)
      .join('');
  }

  #bytesAfterHead(): number {
    return Math.max(0, this.#total - HEAD_BYTES);
  }

  #first(): Buffer {
    return this.#head.subarray(0, Math.min(this.#total, HEAD_BYTES));
  }

  /** The last `count` bytes after the head. */
  #last(count: number): Buffer {
    const end = this.#bytesAfterHead() % TAIL_BYTES;
    if (count <= end) return this.#tail.subarray(end - count, end);
    return Buffer.concat([this.#tail.subarray(TAIL_BYTES - (count - end)), this.#tail.subarray(0, end)]);
  }
}

function withoutHalfAtStart(bytes: Buffer): Buffer {
  let at = 0;
  while (at < CHARACTER_BYTES - 1 && isContinuation(bytes[at])) at += 1;
  return bytes.subarray(at);
}

/** Removes an incomplete UTF-8 character, which is at most three bytes. */
export function withoutHalfAtEnd(bytes: Buffer): Buffer {
  let at = bytes.length - 1;
  while (at > bytes.length - CHARACTER_BYTES && isContinuation(bytes[at])) at -= 1;
  const lead = bytes[at] ?? 0;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return at + length > bytes.length ? bytes.subarray(0, at) : bytes;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is sought
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** Matches an escape character that begins no sequence. Searching these for a sequence would take quadratic time. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is sought
const NO_SEQUENCE = /[\u001b\u009b](?=[[\]()#;?]{16})/g;

export function plainText(bytes: Uint8Array): string {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes).replace(NO_SEQUENCE, '\uFFFD');
  return stripVTControlCharacters(text).replace(/\r\n?/g, '\n').replace(CONTROLS, '\uFFFD');
}
