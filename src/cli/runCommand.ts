/**
 * `runchart run`: one request in a session, new or continued. Rule: the reply goes to standard output, everything else
 * to standard error; tools that only read run unasked, every other one waits for a person's yes. The exit code says how
 * the run ended: 0 completed, 1 error, 2 usage, 3 a call waits for a decision, 130 cancelled.
 */
import { createAgent } from '../agent.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Run } from '../conversation/run.ts';
import { ConfigurationError } from '../errors.ts';
import type { Model, RunResult } from '../index.ts';
import { presets } from '../policies.ts';
import { jsonlStore } from '../stores/jsonl/store.ts';
import { codingTools } from '../tools/coding/index.ts';
import { defineTool, definitionOf, type Tool } from '../tools/tool.ts';
import { knownOf, loadAdapter } from './adapter.ts';
import { CANCELLED, decidePending, pipedInput, readPrompt, showCall, terminalAsker } from './input.ts';
import { countingStore, followAsJson, followAsSteps } from './render.ts';
import { outputTo, Screen } from './screen.ts';
import { checkSession, logPath, newSessionId, sessionsDirectory, workingDirectory } from './sessions/sessionStore.ts';

export interface RunOptions {
  model?: string;
  json?: boolean;
  cwd?: string;
  session?: string;
  new?: boolean;
}

const WAITING = 3;
export const INSTRUCTIONS = `You help with the files of one directory: your tools read inside it, relative paths and commands start there.
Look things up before you state them; prefer the reading tools, for a person is asked before each command. Answer in
plain text, briefly.`;

/** Does it and answers the exit code. Rejects with ConfigurationError and what opening a log rejects with. */
export async function runCommand(words: string, options: RunOptions, signal: AbortSignal): Promise<number> {
  const cwd = await workingDirectory(options.cwd);
  const session = options.session ?? newSessionId();
  const directory = sessionsDirectory();
  const path = logPath(directory, session);
  if (options.session !== undefined) await checkSession(directory, session, options.new === true);
  const model = await namedModel(options.model);
  const screen = new Screen({ reply: outputTo(process.stdout), steps: outputTo(process.stderr) });
  const prompt = await readPrompt(words, pipedInput(), {
    optional: words !== '' || options.session !== undefined,
    note: (text) => screen.line(['yellow', text]),
    signal,
  });
  if (signal.aborted) return CANCELLED;
  if (prompt === '' && (options.session === undefined || options.new)) {
    throw new ConfigurationError('there is nothing to do: give a prompt, or --session to go on with one');
  }
  const store = countingStore(jsonlStore(directory));
  const agent = createAgent({
    model,
    instructions: INSTRUCTIONS,
    tools: askingTools(),
    policies: presets.coding,
    store,
    cwd,
  });
  try {
    const conversation = await agent.open(session);
    mustWorkIn(conversation, cwd);
    if (options.json) followAsJson(conversation, store.found, outputTo(process.stdout));
    else followAsSteps(conversation, store.found, screen);
    const code = await request({ conversation, screen, prompt, signal, asks: !options.json });
    if (!options.json) screen.line(['dim', `session ${session}, log ${path}`]);
    return code;
  } finally {
    await agent.close();
  }
}

export async function namedModel(name: string | undefined): Promise<Model> {
  if (name === undefined || name === '') {
    throw new ConfigurationError('no model: give one with -m, or set OPENAI_MODEL, by the name its server knows');
  }
  const { openai } = await loadAdapter();
  return openai(name, await knownOf(name, process.env.OPENAI_BASE_URL));
}

/** A session's tools read where it began, so it is not taken for one of another directory. */
function mustWorkIn(conversation: Conversation, cwd: string): void {
  if (conversation.cwd === cwd) return;
  throw new ConfigurationError(
    `the session ${conversation.id} works in ${conversation.cwd}, not in ${cwd}: give --cwd ${conversation.cwd}, or another --session`,
  );
}

interface Request {
  conversation: Conversation;
  screen: Screen;
  /** Empty: go on with what waits or was interrupted. */
  prompt: string;
  signal: AbortSignal;
  /** Decisions may be asked for. */
  asks: boolean;
}

async function request(given: Request): Promise<number> {
  const { conversation, screen, prompt, signal } = given;
  if (conversation.status === 'waiting') {
    const code = await continueRun(given);
    if (prompt === '' || code === CANCELLED) return code;
    if (code === WAITING) {
      screen.line(['plain', 'the prompt was not sent']);
      return code;
    }
  }
  const before = conversation.log().length;
  const run = prompt === '' ? conversation.resume() : conversation.send(prompt, { signal });
  const code = await ended(run, given);
  if (conversation.log().length === before) screen.line(['plain', 'nothing waits and nothing was interrupted']);
  return code === WAITING ? continueRun(given) : code;
}

/** Asks about what waits and goes on, as often as it comes to that. */
async function continueRun(given: Request): Promise<number> {
  const { conversation, screen, signal, asks } = given;
  const onTerminal = asks && process.stdin.isTTY === true && process.stderr.isTTY === true;
  for (;;) {
    if (onTerminal) await decidePending(conversation, screen, terminalAsker(screen, signal));
    if (signal.aborted) {
      await conversation.cancel();
      return CANCELLED;
    }
    if (conversation.pending.length > 0) {
      sayWaiting(conversation, screen, onTerminal);
      return WAITING;
    }
    const code = await ended(conversation.resume(), given);
    if (code !== WAITING) return code;
  }
}

/** The exit code of a run, and of those that follow it from the session's queue. */
async function ended(run: Run, { conversation, screen, signal }: Request): Promise<number> {
  let current = run;
  const cancel = (): void => void current.cancel();
  if (signal.aborted) cancel();
  signal.addEventListener('abort', cancel);
  try {
    let result = await current.result;
    while (conversation.status === 'active') {
      current = conversation.resume();
      result = await current.result;
    }
    if (result.error) screen.line(['red', `error (${result.error.code}): ${result.error.message}`]);
    return signal.aborted ? CANCELLED : exitCode(result);
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

function exitCode({ reason }: RunResult): number {
  if (reason === 'completed') return 0;
  if (reason === 'interrupted') return CANCELLED;
  return reason === null ? WAITING : 1;
}

function sayWaiting(conversation: Conversation, screen: Screen, asked: boolean): void {
  for (const call of conversation.pending) showCall(screen, call);
  const how = asked ? 'Decide later with' : 'There is no terminal to ask on. Decide on one with';
  screen.line(['plain', `${how}: runchart run --session ${conversation.id}`]);
}

export const askingTools = (): Tool[] => codingTools().map(asking);

function asking(tool: Tool): Tool {
  const definition = definitionOf(tool);
  if (definition === undefined || definition.readOnly === true) return tool;
  return defineTool({ ...definition, needsApproval: true });
}
