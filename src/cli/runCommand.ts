/**
 * One request in a session, new or continued: `runchart run`, and `runchart -p`. Rule: the reply goes to standard output, everything else
 * to standard error; what the rules ask about waits for a person's yes, and where there is no terminal to ask on it waits (`run`) or is
 * denied (`-p`), which is said. The exit code says how the run ended.
 */
import type { Conversation } from '../conversation/conversation.ts';
import type { Run } from '../conversation/run.ts';
import { ConfigurationError } from '../errors.ts';
import type { RunResult } from '../index.ts';
import { type AgentOptions, type CodingAgent, codingAgent, mustWorkIn } from './codingAgent.ts';
import { CANCELLED, exitCodeOf, WAITING } from './exitCodes.ts';
import { decidePending, pipedInput, readPrompt, showCall, terminalAsker } from './input.ts';
import { followAsJson, followAsMessages, followAsSteps } from './render.ts';
import { outputTo, Screen } from './screen.ts';
import { chosenSession, logPath, newSessionId, type SessionChoice } from './sessions/sessionStore.ts';

export interface RunOptions extends AgentOptions, SessionChoice {
  json?: boolean;
}

/** What differs between the two ways to give one request. */
export interface RunForm {
  /** With `json`: entries of the log alone, or all that a transport carries. */
  json: 'entries' | 'messages';
  /** What is asked about without a terminal. */
  unasked: 'waits' | 'denied';
}

/** Does it and answers the exit code. Rejects with ConfigurationError and what opening a log rejects with. */
export async function runCommand(
  words: string,
  options: RunOptions,
  form: RunForm,
  signal: AbortSignal,
): Promise<number> {
  const screen = new Screen({ reply: outputTo(process.stdout), steps: outputTo(process.stderr) });
  const asks = !options.json && process.stdin.isTTY === true && process.stderr.isTTY === true;
  const made = await codingAgent(options, asks || form.unasked === 'waits' ? undefined : sayDenied(screen));
  try {
    const chosen = await chosenSession(options, made.directory, made.cwd);
    const goesOn = chosen !== undefined && options.new !== true;
    const prompt = await readPrompt(words, pipedInput(), {
      optional: words !== '' || chosen !== undefined,
      note: (text) => screen.line(['yellow', text]),
      signal,
    });
    if (signal.aborted) return CANCELLED;
    if (prompt === '' && !goesOn) {
      throw new ConfigurationError('there is nothing to do: give a prompt, or a session to go on with');
    }
    const conversation = await made.agent.open(chosen ?? newSessionId());
    mustWorkIn(conversation, made.cwd);
    const tell = follow(conversation, made, screen, options.json ? form.json : 'steps');
    const given: Request = { conversation, screen, prompt, signal, asks, last: undefined };
    const code = await request(given);
    if (given.last) tell(given.last);
    if (!options.json) sayWhere(screen, conversation, made);
    return code;
  } finally {
    await made.agent.close();
  }
}

const sayDenied =
  (screen: Screen) =>
  ({ name, rules }: { name: string; rules: readonly string[] }): void => {
    const options = rules.map((rule) => `--allow '${rule.replaceAll("'", "'\\''")}'`).join(' ');
    const how = options === '' ? 'no rule would allow it; ask for it on a terminal' : `this would allow it: ${options}`;
    screen.line(['yellow', `! ${name} is denied, since there is no terminal to ask on: ${how}`]);
  };

/** Shows what happens; what it answers is to be called with the last result. */
function follow(
  conversation: Conversation,
  { store, about }: CodingAgent,
  screen: Screen,
  how: 'steps' | RunForm['json'],
): (result: RunResult) => void {
  const output = outputTo(process.stdout);
  if (how === 'messages') return followAsMessages(conversation, store.found, output, about);
  if (how === 'entries') followAsJson(conversation, store.found, output);
  else followAsSteps(conversation, store.found, screen);
  return () => undefined;
}

function sayWhere(screen: Screen, { id }: Conversation, { directory }: CodingAgent): void {
  screen.line(['dim', `session ${id}, log ${logPath(directory, id)}`]);
}

interface Request {
  conversation: Conversation;
  screen: Screen;
  /** Empty: go on with what waits or was interrupted. */
  prompt: string;
  signal: AbortSignal;
  /** There is a terminal to ask for decisions on. */
  asks: boolean;
  last: RunResult | undefined;
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
  for (;;) {
    if (asks) await decidePending(conversation, screen, terminalAsker(screen, signal));
    if (signal.aborted) {
      await conversation.cancel();
      return CANCELLED;
    }
    if (conversation.pending.length > 0) {
      sayWaiting(conversation, screen, asks);
      return WAITING;
    }
    const code = await ended(conversation.resume(), given);
    if (code !== WAITING) return code;
  }
}

/** The exit code of a run, and of those that follow it from the session's queue. */
async function ended(run: Run, given: Request): Promise<number> {
  const { conversation, screen, signal } = given;
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
    given.last = result;
    return signal.aborted ? CANCELLED : exitCodeOf(result);
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

function sayWaiting(conversation: Conversation, screen: Screen, asked: boolean): void {
  for (const call of conversation.pending) showCall(screen, call);
  const how = asked ? 'Decide later with' : 'There is no terminal to ask on. Decide on one with';
  screen.line(['plain', `${how}: runchart run --session ${conversation.id}`]);
}
