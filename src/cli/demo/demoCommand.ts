/**
 * `runchart demo`: one request with a real tool on a real file, and one that needs approval, against a scripted model
 * in its own process. Invariant: everything but the model's words is real. Only a new temporary directory is written,
 * and the model's process never outlives this one.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { createAgent } from '../../agent.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Run } from '../../conversation/run.ts';
import { RunchartError } from '../../errors.ts';
import type { LogEntry, RunResult } from '../../index.ts';
import { startLogInspector } from '../../inspect/inspector.ts';
import { jsonlStore } from '../../stores/jsonl/jsonlStore.ts';
import { codingTools } from '../../tools/coding/index.ts';
import { defineTool, type Tool } from '../../tools/tool.ts';
import { costText, count } from '../costTally.ts';
import { CANCELLED } from '../exitCodes.ts';
import { type Asker, decidePending, terminalAsker } from '../personInput.ts';
import { followAsSteps, type Renderer } from '../renderLog.ts';
import { outputTo, Screen } from '../screen.ts';
import { logPath } from '../sessions/sessionPlace.ts';
import { ORDER, QUESTION } from './demoScript.ts';

const SESSION = 'demo';
/** USD per million tokens. The prices are invented, so that there is a cost to show. */
const PRICES = { input: 2, output: 8 };
const SAMPLE = new URL('../../../../docs/examples/sample/', import.meta.url);

export interface DemoOptions {
  /** The page decides, also on a terminal, and stays open. */
  inspect?: boolean;
}

/** Resolves to the exit code. */
export async function demoCommand({ inspect = false }: DemoOptions, signal: AbortSignal): Promise<number> {
  const { openai } = await import('../../models/openai/index.ts');
  const output = outputTo(process.stdout);
  const screen = new Screen({ reply: output, steps: output });
  const place = await mkdtemp(join(tmpdir(), 'runchart-demo-'));
  const workspace = join(place, 'workspace');
  const sessions = join(place, 'sessions');
  await cp(fileURLToPath(SAMPLE), workspace, { recursive: true });
  const server = await startDemoServer();
  const { baseURL, pid } = server;
  screen.line(['bold', 'runchart demo'], ['dim', `: a scripted model at ${baseURL}, process ${pid}; all else is real`]);
  const inspector = await startLogInspector({ control: true, open: inspect && process.stdout.isTTY });
  screen.line(['bold', 'inspector'], ['plain', `   ${inspector.url}`], ['dim', ' (open it in a browser)']);
  const agent = createAgent({
    inspect: inspector.observe,
    model: openai('demo-model', { baseURL, apiKey: 'demo', prices: PRICES }),
    instructions: 'You explain the files of one directory.',
    tools: [...codingTools(), writeNote],
    store: jsonlStore(sessions),
    cwd: workspace,
  });
  try {
    const conversation = await agent.open(SESSION);
    const renderer = followAsSteps(conversation, 0, screen);
    const ask = inspect ? pageAsker(screen, conversation, signal) : asker(screen, conversation, signal);
    const code = await bothRequests(conversation, screen, ask, signal);
    if (code === 0) printSummary({ conversation, screen, renderer, path: logPath(sessions, SESSION) });
    if (code === 0 && (inspect || (onTerminal() && inspector.pages > 0))) await leaveOpen(screen, inspect, signal);
    return code;
  } finally {
    await agent.close();
    await inspector.close();
    await server.close();
  }
}

const writeNote: Tool = defineTool({
  name: 'WriteNote',
  description: 'Writes a note into the working directory.',
  parameters: z.object({
    file_name: z.string().regex(/^[\w-]+\.md$/, 'expected a plain name that ends with .md'),
    text: z.string().max(10_000),
  }),
  group: 'write-group',
  needsApproval: true,
  async execute({ file_name, text }, { cwd, signal }) {
    await writeFile(join(cwd, file_name), text, { signal });
    return `${file_name} was written, ${count(Buffer.byteLength(text), 'byte')}.`;
  },
});

async function bothRequests(
  conversation: Conversation,
  screen: Screen,
  ask: Asker,
  signal: AbortSignal,
): Promise<number> {
  screen.line(['plain', '']);
  const first = await resultOf(conversation.send(QUESTION, { signal }), screen, signal);
  if (first.reason !== 'completed') return signal.aborted ? CANCELLED : 1;
  screen.line(['plain', '']);
  let last = await resultOf(conversation.send(ORDER, { signal }), screen, signal);
  if (last.reason === null && !signal.aborted) {
    await decidePending(conversation, screen, ask);
    if (signal.aborted) await conversation.cancel();
    // The page may already have resumed the run.
    else if (conversation.status === 'waiting') last = await resultOf(conversation.resume(), screen, signal);
    else await awaitSettled(conversation, signal);
  }
  if (signal.aborted) return CANCELLED;
  const stop = [...conversation.log()].reverse().find(({ type }) => type === 'run-stop');
  return stop?.type === 'run-stop' && stop.reason === 'completed' ? 0 : 1;
}

/** Resolves when nothing runs. */
async function awaitSettled(conversation: Conversation, signal: AbortSignal): Promise<void> {
  const cancel = (): void => void conversation.cancel();
  signal.addEventListener('abort', cancel);
  while (conversation.status === 'active' || conversation.status === 'cancelling')
    await firstEntry(conversation, ({ type }) => type === 'run-stop' || type === 'run-suspended', signal);
  signal.removeEventListener('abort', cancel);
}

/** Resolves with the next matching entry, or with undefined if the signal is aborted. */
function firstEntry(conversation: Conversation, isWanted: (entry: LogEntry) => boolean, signal: AbortSignal) {
  return new Promise<LogEntry | undefined>((resolve) => {
    const following = conversation.log$(conversation.log().length).subscribe((entry) => {
      if (!isWanted(entry)) return;
      following.unsubscribe();
      // Status and views change after the entry is emitted.
      queueMicrotask(() => resolve(entry));
    });
    signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}

async function resultOf(run: Run, screen: Screen, signal: AbortSignal): Promise<RunResult> {
  const cancel = (): void => void run.cancel();
  signal.addEventListener('abort', cancel);
  const result = await run.result;
  signal.removeEventListener('abort', cancel);
  if (result.error) screen.line(['red', `error (${result.error.code}): ${result.error.message}`]);
  return result;
}

const onTerminal = (): boolean => process.stdin.isTTY === true && process.stdout.isTTY === true;

/**
 * Asks a person on a terminal, unless somebody decides in the page first. Without a terminal the demo decides, and
 * prints that.
 */
function asker(screen: Screen, conversation: Conversation, signal: AbortSignal): Asker {
  if (!onTerminal()) {
    return async () => {
      screen.line(['yellow', '  there is no terminal to ask on: the demo approves this call by itself']);
      return { action: 'approve', by: 'demo' };
    };
  }
  return async (call) => {
    const elsewhere = new AbortController();
    const decided = firstEntry(conversation, ({ type }) => type === 'decision', signal).then(() => elsewhere.abort());
    const answer = await Promise.race([
      terminalAsker(screen, AbortSignal.any([signal, elsewhere.signal]))(call),
      decided,
    ]);
    if (answer && answer !== 'later') return answer;
    if (elsewhere.signal.aborted && !signal.aborted) {
      screen.line(['dim', '  it was decided in the page']);
      return 'later';
    }
    screen.line(['yellow', '  no decision: the demo ends here, so it denies this call by itself']);
    return { action: 'deny', by: 'demo' };
  };
}

/** The decision comes from the page only. */
function pageAsker(screen: Screen, conversation: Conversation, signal: AbortSignal): Asker {
  return async () => {
    screen.line(['yellow', '  decide in the page: the address stands above']);
    await firstEntry(conversation, ({ type }) => type === 'decision', signal);
    return 'later';
  };
}

/** Keeps the page open until a person ends it. */
async function leaveOpen(screen: Screen, untilSignal: boolean, signal: AbortSignal): Promise<void> {
  screen.line(['plain', '']);
  screen.line(['plain', `The page stays open until ${untilSignal ? 'Ctrl-C' : 'you press Enter'}.`]);
  if (signal.aborted) return;
  const ended = once(signal, 'abort');
  if (untilSignal) {
    await ended;
    return;
  }
  const lines = createInterface({ input: process.stdin, terminal: false });
  await Promise.race([ended, once(lines, 'line'), once(lines, 'close')]);
  lines.close();
}

interface Shown {
  conversation: Conversation;
  screen: Screen;
  renderer: Renderer;
  path: string;
}

function printSummary({ conversation, screen, renderer, path }: Shown): void {
  const { total } = renderer;
  const tokens = `${total.inputTokens.toLocaleString('en-US')} tokens in, ${total.outputTokens.toLocaleString('en-US')} out`;
  const calls = conversation.view().cycles.flatMap(({ rounds }) => rounds.flatMap(({ output }) => output.calls));
  const outcomes = calls.map(({ name, result }) => `${name} ${result?.outcome ?? 'open'}`).join(', ');
  const row = (name: string, text: string): void => screen.line(['bold', name.padEnd(9)], ['plain', text]);
  screen.line(['plain', '']);
  row('result', `2 requests completed; ${outcomes}`);
  row('cost', `${costText(total)} for ${count(total.turns, 'model call')}, ${tokens}, at the demo's invented prices`);
  row('files', conversation.cwd);
  row('log', `${path}, ${conversation.log().length} entries`);
  row('further', `the cycles of the log            ${invocation()} replay ${path}`);
  row('', `each entry of it                 less ${path}`);
  row('', `the charts the runs went through ${invocation()} charts`);
  row('', `a request to a model of yours    OPENAI_API_KEY=… ${invocation()} run -m <model> "<prompt>"`);
  row('', `this log in a page               ${invocation()} inspect ${path}`);
}

/** Returns how this program was called, so that a hint can be typed as printed. */
function invocation(): string {
  const script = process.argv[1] ?? 'runchart';
  if (basename(script) === 'runchart') return 'runchart';
  const path = relative(process.cwd(), script);
  return `node ${path.startsWith('..') ? script : path}`;
}

const START_MS = 10_000;

interface DemoServer {
  readonly baseURL: string;
  readonly pid: number;
  /** Resolves when the process has ended. */
  close(): Promise<void>;
}

/** Rejects if the process does not print its port in time. */
export async function startDemoServer(): Promise<DemoServer> {
  const file = fileURLToPath(new URL('./scriptedServer.js', import.meta.url));
  const child = spawn(process.execPath, [file], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('exit', () => resolve());
  });
  const close = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  try {
    const lines = createInterface({ input: child.stdout });
    const silent = AbortSignal.timeout(START_MS);
    const [line] = (await Promise.race([once(lines, 'line', { signal: silent }), exited.then(() => [''])])) as [string];
    lines.close();
    const port = Number(line);
    if (!Number.isInteger(port) || port <= 0) throw new Error(`expected a port number, got ${JSON.stringify(line)}`);
    return { baseURL: `http://127.0.0.1:${port}/v1`, pid: child.pid ?? 0, close };
  } catch (cause) {
    await close();
    throw new RunchartError('demo', `the demo's model server did not start: ${String(cause)}`, { cause });
  }
}
