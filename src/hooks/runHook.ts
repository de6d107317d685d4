/**
 * Runs one hook: a function, or a command that receives JSON and prints JSON. Rule: a hook has a time limit, and a
 * command that exceeds it is ended with all its processes. A failure is returned, never thrown.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Json } from '../../machines/internal.ts';
import { thrownText } from '../errors.ts';
import { toJson } from '../json.ts';
import { beginning } from '../printable.ts';
import { within } from '../timeLimit.ts';
import { ProcessTree } from '../tools/coding/processTree.ts';
import { isObject } from '../validation.ts';

/** The moments at which a hook can run. */
export type HookEvent =
  | 'SessionStart'
  | 'UserPromptSubmit'
  | 'PreToolUse'
  | 'PermissionRequest'
  | 'PostToolUse'
  | 'PostToolUseFailure'
  | 'Notification'
  | 'PreCompact'
  | 'SubagentStart'
  | 'SubagentStop'
  | 'Stop'
  | 'SessionEnd';

/** The input of a hook: JSON on stdin for a command, an argument for a function. */
export interface HookInput {
  /** The event that happened. */
  event: HookEvent;
  /** The conversation in which it happened. */
  conversationId: string;
  /** The run in which it happened. */
  runId: string;
  /** The working directory of the conversation. */
  cwd: string;
  /** The name of the tool, for events about a call. */
  toolName?: string;
  /** The id of the call, for events about a call. */
  callId?: string;
  /** The arguments of the call. */
  args?: Json;
  /** The text of the call's result, after the call. */
  result?: string;
  /** The message of the failure, for `PostToolUseFailure`. */
  error?: string;
  /** The text of the user's message, for `UserPromptSubmit`. */
  prompt?: string;
  /** Why the event happened, for example `auto` or `manual` for `PreCompact`. */
  source?: string;
}

/** The answer of a hook. Each event uses some of the fields. */
export interface HookOutput {
  /** False ends the run as Stopped, cause `hook`. */
  continue?: boolean;
  /** The reason of that stop, for people. */
  stopReason?: string;
  /** The decision about the call, the message or the end. */
  decision?: 'allow' | 'ask' | 'block';
  /** The reason of the decision. The model receives it for a blocked call. */
  reason?: string;
  /** New arguments for the call. */
  updatedInput?: Json;
  /** A text that the model receives with its next request. */
  additionalContext?: string;
  /** The model receives a marker in place of the result, after `PostToolUse`. */
  suppressOutput?: boolean;
}

/**
 * A command or a function that runs at an event. `command` runs in a shell. It receives JSON on stdin and prints its answer
 * as JSON on stdout. Exit code 2 blocks, with stderr as the reason.
 */
export type Hook = {
  /** A regular expression that must match the whole tool name. Default: every tool. */
  matcher?: string;
  /** If true (default), a failure of this check blocks the call. */
  required?: boolean;
  /** Default: 5,000. */
  timeoutMs?: number;
} & ({ run(input: HookInput): HookOutput | void | Promise<HookOutput | void> } | { command: string });

export type HookAnswer = { kind: 'said'; output: HookOutput } | { kind: 'failed'; message: string };

export interface HookPorts {
  setTimer(ms: number, fire: () => void): () => void;
  signal: AbortSignal;
}

const TIMEOUT_MS = 5_000;
const BLOCKS = 2;
const OUTPUT_MAX = 1_048_576;
const REASON_MAX = 16_384;
/** The time for reading remaining output after the command has ended: another process may keep its outputs open. */
const DRAIN_MS = 100;

/** Rejects only if the signal is aborted. */
export async function runHook(hook: Hook, input: HookInput, { setTimer, signal }: HookPorts): Promise<HookAnswer> {
  const ms = hook.timeoutMs ?? TIMEOUT_MS;
  const ended = new AbortController();
  try {
    const act = async (): Promise<unknown> =>
      'command' in hook ? commandAnswer(hook.command, input, ended.signal) : hook.run(Object.freeze({ ...input }));
    return { kind: 'said', output: readOutput(await within(ms, { setTimer, signal }, act)) };
  } catch (error) {
    if (signal.aborted) throw error;
    return { kind: 'failed', message: thrownText(error) };
  } finally {
    ended.abort();
  }
}

const TEXTS = ['stopReason', 'reason', 'additionalContext'] as const;
const FLAGS = ['continue', 'suppressOutput'] as const;
const DECISIONS: readonly unknown[] = ['allow', 'ask', 'block'];

/** Throws for an invalid answer, so that a misread one never allows a call. */
function readOutput(answer: unknown): HookOutput {
  if (answer === undefined || answer === null) return {};
  const json = toJson(answer);
  if (json.kind === 'refused') throw new TypeError(`a hook answers JSON: ${json.why}`);
  const { value } = json;
  if (!isObject(value)) throw new TypeError('a hook answers an object, or nothing');
  for (const key of TEXTS) {
    if (value[key] !== undefined && typeof value[key] !== 'string') throw new TypeError(`${key} must be a text`);
  }
  for (const key of FLAGS) {
    if (value[key] !== undefined && typeof value[key] !== 'boolean')
      throw new TypeError(`${key} must be true or false`);
  }
  if (value.decision !== undefined && !DECISIONS.includes(value.decision)) {
    throw new TypeError('decision must be "allow", "ask" or "block"');
  }
  return value as HookOutput;
}

interface Printed {
  code: number | null;
  by: string | null;
  stdout: string;
  stderr: string;
}

async function commandAnswer(command: string, input: HookInput, ended: AbortSignal): Promise<unknown> {
  const { code, by, stdout, stderr } = await printed(command, input, ended);
  if (code === BLOCKS)
    return { decision: 'block', reason: beginning(stderr.trim(), REASON_MAX) || 'blocked by a hook' };
  if (code !== 0)
    throw new Error(`the hook ended with ${by ?? `exit code ${code}`}: ${beginning(stderr.trim(), REASON_MAX)}`);
  const text = stdout.trim();
  // Output that is no JSON object is ignored: it is text for a person who tests the command.
  return text.startsWith('{') ? JSON.parse(text) : undefined;
}

/** Resolves when the command ends. Also ends the command's remaining processes, and the command itself after an abort. */
async function printed(command: string, input: HookInput, ended: AbortSignal): Promise<Printed> {
  const mark = randomBytes(12).toString('hex');
  const env = { ...process.env, RUNCHART_CALL: mark, RUNCHART_CWD: input.cwd };
  const child = spawn('bash', ['-c', command], {
    cwd: input.cwd,
    env,
    detached: true,
    stdio: 'pipe',
    windowsHide: true,
  });
  const tree = child.pid === undefined ? undefined : new ProcessTree(child.pid, mark);
  const end = (): void => void tree?.end();
  ended.addEventListener('abort', end, { once: true });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (stdout.length < OUTPUT_MAX) stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (stderr.length < REASON_MAX) stderr += text;
  });
  // A command that does not read its input may close the pipe.
  child.stdin.on('error', () => undefined).end(JSON.stringify(input));
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Printed>((resolve, reject) => {
      child.once('error', reject);
      const done = (code: number | null, by: string | null): void => resolve({ code, by, stdout, stderr });
      child.once('exit', (code, by) => {
        timer = setTimeout(() => done(code, by), DRAIN_MS);
      });
      child.once('close', done);
    });
  } finally {
    clearTimeout(timer);
    child.stdout.destroy();
    child.stderr.destroy();
  }
}
