/**
 * Runs untrusted patterns. Rule: a pattern never runs on the main thread, takes time linear in the text, and can be
 * stopped at once. It runs in a ripgrep process if the machine has one, otherwise in a worker thread. ripgrep receives
 * only lines and an expression, never a path. It receives only expressions that both engines read alike. An abort or
 * the end of a batch's time stops the match, and `end` releases everything.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { delimiter, isAbsolute, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type Refusal, refused } from '../workspace.ts';
import { afterCpuTime, cpuTimeOf } from './cpuLimit.ts';
import type { Pattern } from './pattern.ts';

/** The index of a matching text and the position of its first match. */
export type Hit = readonly [index: number, at: number];
type Matched = { kind: 'hits'; hits: Hit[] } | Refusal;

export interface Matcher {
  /**
   * The first `hitsMax` matching texts. Only one batch may run at a time. Rejects with the signal's reason on abort.
   */
  match(pattern: Pattern, texts: readonly string[], hitsMax: number): Promise<Matched>;
  /** Must always be called, however the last match ended. */
  end(): Promise<void>;
}

interface Batch {
  pattern: Pattern;
  texts: readonly string[];
  hitsMax: number;
}
type Reply = { hits: Hit[] } | { error: string };

const BATCH_MS = 1_500;
const require = createRequire(import.meta.url);

/** Source text, so that it runs the same from the sources and from the built package. */
const THREAD = `
const { parentPort, workerData } = require('node:worker_threads');
const { readlinkSync } = require('node:fs');
try {
  workerData.thread[0] = Number(readlinkSync('/proc/thread-self').split('/').pop());
} catch {}
const { RE2JS } = require(workerData.re2js);
parentPort.on('message', ({ pattern: { source, inverted = false }, texts, hitsMax }) => {
  try {
    const expression = RE2JS.compile(source);
    const hits = [];
    for (let index = 0; index < texts.length && hits.length < hitsMax; index += 1) {
      const matcher = expression.matcher(texts[index]);
      if (matcher.find() !== inverted) hits.push([index, inverted ? 0 : matcher.start()]);
    }
    parentPort.postMessage({ hits });
  } catch (error) {
    parentPort.postMessage({ error: String(error.message) });
  }
});`;

/** `thread` receives the thread's number where the system has one. */
function startThread(thread: Int32Array): Worker {
  const resourceLimits = { maxOldGenerationSizeMb: 128 };
  const workerData = { re2js: require.resolve('re2js'), thread };
  const worker = new Worker(THREAD, { eval: true, env: {}, execArgv: [], resourceLimits, workerData });
  // A thread that fails between two batches must not cause an uncaught exception.
  return worker.on('error', () => undefined);
}

/** The caller must call `end`. `batchMs` limits the CPU time of one batch. */
export function startMatcher(signal: AbortSignal, batchMs = BATCH_MS): Matcher {
  let thread: Worker | undefined;
  /** The numbers of the process and of the thread that work on the batch; 0 if none does. */
  const working = { process: 0, thread: new Int32Array(new SharedArrayBuffer(4)) };
  const usedMs = (): number | undefined => {
    if (working.process !== 0) return cpuTimeOf(`/proc/${working.process}`);
    const id = thread ? working.thread[0] : 0;
    return id ? cpuTimeOf(`/proc/self/task/${id}`) : undefined;
  };
  let program: Promise<string | undefined> | undefined;

  async function inProcess(batch: Batch, stopSignal: AbortSignal) {
    const { source, inverted } = batch.pattern;
    const form = inverted ? undefined : ripgrepForm(source);
    program ??= findRipgrep();
    const isExecutable = form === undefined ? undefined : await program;
    if (form === undefined || isExecutable === undefined) return undefined;
    const began = (pid: number): void => {
      working.process = pid;
    };
    const ran = await runRipgrep(isExecutable, { ...batch, form, began }, stopSignal);
    began(0);
    // If ripgrep refuses the expression, the JavaScript engine decides.
    return ran.kind === 'refused' ? undefined : ran;
  }

  async function inThread(batch: Batch, stopSignal: AbortSignal) {
    thread ??= startThread(working.thread);
    const answer = once(thread, 'message', { signal: stopSignal });
    thread.postMessage(batch);
    const [reply] = (await answer) as [Reply];
    return 'hits' in reply ? ({ kind: 'hits', hits: reply.hits } as const) : unusable(reply.error);
  }

  return {
    async match(pattern, texts, hitsMax) {
      signal.throwIfAborted();
      const stop = new AbortController();
      const end = (): void => stop.abort();
      const endWatch = afterCpuTime(batchMs, usedMs, end);
      signal.addEventListener('abort', end);
      const batch = { pattern, texts, hitsMax };
      try {
        const matched = (await inProcess(batch, stop.signal)) ?? (await inThread(batch, stop.signal));
        signal.throwIfAborted();
        return matched.kind === 'stopped' ? tooSlow(batchMs) : matched;
      } catch (error) {
        signal.throwIfAborted();
        return stop.signal.aborted ? tooSlow(batchMs) : unusable(String(error));
      } finally {
        endWatch();
        signal.removeEventListener('abort', end);
        // Otherwise the thread would answer the next batch with the result of this one.
        if (stop.signal.aborted) await stopThread();
      }
    },
    end: stopThread,
  };

  async function stopThread(): Promise<void> {
    const ended = thread?.terminate();
    thread = undefined;
    working.thread[0] = 0;
    await ended;
  }
}

const unusable = (reason: string): Refusal =>
  refused(
    'invalid_arguments',
    `the pattern cannot be run: ${reason}; it must have the syntax of RE2, without lookaround and backreferences`,
  );

const tooSlow = (ms: number): Refusal =>
  refused(
    'timeout',
    `the pattern took more than ${ms} ms of computing on one batch and was stopped; give a simpler one`,
  );

const RIPGREP = process.platform === 'win32' ? 'rg.exe' : 'rg';
const OPTIONS = ['--no-config', '--color=never', '--no-heading', '--no-filename', '--line-number', '--column'];
/** ripgrep must not treat a byte order mark or a NUL byte specially. */
const AS_TEXT = ['--text', '--encoding=none', '--threads=1'];
/** The JavaScript engine refuses higher repetition counts. */
const REPEATS_MAX = 1_000;

/**
 * The path of ripgrep. Relative entries of PATH are skipped, because they could name a program in the searched
 * directory.
 */
async function findRipgrep(): Promise<string | undefined> {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const program = join(directory, RIPGREP);
    const isExecutable = isAbsolute(directory) && (await access(program, constants.X_OK).then(...YES_OR_NO));
    if (isExecutable) return program;
  }
  return undefined;
}
const YES_OR_NO = [() => true, () => false] as const;

/** The JavaScript engine's meaning of each escape; ripgrep's own escapes cover all of Unicode. */
const CLASSES: { readonly [name: string]: string } = { d: '0-9', w: '0-9A-Za-z_', s: '\\t\\f\\r ' };
const META = /[\\.+*?()|[\]{}^$&~#-]/;
const SET = /^\[\^?(?:[^\p{Cc}[\]\\&~^-]|\\[dws\\\][^.\-/+*?()|{}$"'trf]|-(?!-))+\]/u;
const GROUP = /^\((?:\?:|\?i:|\?P<\w+>|(?!\?))/;
const REPEAT = /^(?:[*+?]|\{(\d{1,4})(?:,(\d{0,4}))?\})\??(?![*+?{])/;
const PLAIN = /^(?:[|).^$]|[^\p{Cc}\p{Surrogate}\\[\](){}*+?])/u;

function ofSet(set: string): string | undefined {
  if (/\\[dws]-(?!\])|-\\[dws]/.test(set)) return undefined;
  return set.replace(
    /\\(.)/g,
    (escaped, name: string) => CLASSES[name] ?? (/[\w]|[\\\][^-]/.test(name) ? escaped : name),
  );
}

function ofEscape(name: string): string | undefined {
  const members = CLASSES[name.toLowerCase()];
  if (members !== undefined) return `[${name === name.toLowerCase() ? '' : '^'}${members}]`;
  if (name === 'b') return '(?-u:\\b)';
  if (/[trfv]/.test(name)) return `\\${name}`;
  if (META.test(name)) return `\\${name}`;
  return /[^\w\s<>\p{Cc}\P{ASCII}]/u.test(name) ? name : undefined;
}

/** The expression in ripgrep's syntax; undefined if ripgrep might read it differently. */
function ripgrepForm(source: string): string | undefined {
  const [ignoresCase = ''] = /^\(\?i\)/.exec(source) ?? [];
  const written = [ignoresCase];
  let repeats = 1;
  for (let rest = source.slice(ignoresCase.length); rest !== ''; ) {
    const escaped = /^\\(.)/su.exec(rest);
    const repeat = REPEAT.exec(rest);
    const set = SET.exec(rest);
    const [token] = escaped ?? repeat ?? set ?? GROUP.exec(rest) ?? PLAIN.exec(rest) ?? [];
    if (token === undefined) return undefined;
    if (repeat) repeats *= Math.max(1, Number(repeat[1] ?? 1), Number(repeat[2] || 1));
    const form = escaped ? ofEscape(escaped[1] ?? '') : set ? ofSet(token) : token;
    if (form === undefined || repeats > REPEATS_MAX) return undefined;
    written.push(form);
    rest = rest.slice(token.length);
  }
  return written.join('');
}

type Ran = { kind: 'hits'; hits: Hit[] } | { kind: 'refused' } | { kind: 'stopped' };

/**
 * The first `hitsMax` matching texts. `stop` kills ripgrep at once; the promise settles after its process has ended.
 */
async function runRipgrep(
  program: string,
  { form, texts, hitsMax, began }: Omit<Batch, 'pattern'> & { form: string; began(pid: number): void },
  stop: AbortSignal,
): Promise<Ran> {
  const args = [...OPTIONS, ...AS_TEXT, `--max-count=${hitsMax}`, `--regexp=${form}`, '--', '-'];
  const child = spawn(program, args, { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'ignore'], windowsHide: true });
  const kill = (): void => void child.kill('SIGKILL');
  if (child.pid !== undefined) began(child.pid);
  stop.addEventListener('abort', kill);
  try {
    if (stop.aborted) kill();
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    // ripgrep may exit before it has read everything, after enough matches.
    child.stdin.on('error', () => undefined).end(texts.map((text) => `${text}\n`).join(''));
    const [code] = await once(child, 'close');
    if (stop.aborted) return { kind: 'stopped' };
    if (code !== 0 && code !== 1) return { kind: 'refused' };
    return { kind: 'hits', hits: hitsOf(Buffer.concat(chunks).toString(), texts) };
  } catch {
    return { kind: 'refused' };
  } finally {
    stop.removeEventListener('abort', kill);
  }
}

/** Parses lines of `number:column:text`, whose texts may contain any line end but LF. A column counts bytes from 1. */
function hitsOf(printed: string, texts: readonly string[]): Hit[] {
  const hits: Hit[] = [];
  for (const line of printed.split('\n')) {
    const [, number, column] = /^(\d+):(\d+):/.exec(line) ?? [];
    if (number === undefined) continue;
    const index = Number(number) - 1;
    const before = Buffer.from(texts[index] ?? '').subarray(0, Number(column) - 1);
    hits.push([index, before.toString().length]);
  }
  return hits;
}
