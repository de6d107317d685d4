/**
 * One request in a new or continued session: `runchart run`, and `runchart -p`. Invariant: the reply goes to standard
 * output, everything else to standard error. A call that the rules ask about waits for a person's yes. Without a
 * terminal it waits (`run`) or is denied (`-p`), which is printed. The exit code shows how the run ended.
 */
import type { Content } from '../content/content.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Run } from '../conversation/run.ts';
import { ConfigurationError } from '../errors.ts';
import type { RunResult } from '../index.ts';
import { type AgentOptions, type CodingAgent, codingAgent, mustWorkIn } from './codingAgent.ts';
import { equipmentNotes, failedServers } from './commands/equipmentLines.ts';
import { meaningOf, messageContent } from './commands/messageContent.ts';
import { CANCELLED, exitCodeOf, WAITING } from './exitCodes.ts';
import { endedLine, endingWithProgram, goneCommands, goneNote } from './interactive/backgroundLines.ts';
import { CONTINUED, summaryNote, windowAfter } from './models/contextRecovery.ts';
import { decidePending, pipedInput, readPrompt, showCall, terminalAsker } from './personInput.ts';
import { followAsJson, followAsMessages, followAsSteps } from './renderLog.ts';
import { outputTo, Screen } from './screen.ts';
import { chosenSession, newSessionId, type SessionChoice, shellWord } from './sessions/sessionStore.ts';

export interface RunOptions extends AgentOptions, SessionChoice {
  json?: boolean;
}

/** The difference between the two commands for one request. */
export interface RunForm {
  /** With `json`: only entries of the log, or everything that a transport sends. */
  json: 'entries' | 'messages';
  /** The treatment of a call that needs a question, if there is no terminal. */
  unasked: 'waits' | 'denied';
}

/** Resolves to the exit code. Rejects with ConfigurationError and with errors of opening a log. */
export async function runCommand(
  words: string,
  options: RunOptions,
  form: RunForm,
  signal: AbortSignal,
): Promise<number> {
  const screen = new Screen({ reply: outputTo(process.stdout), steps: outputTo(process.stderr) });
  const asks = !options.json && process.stdin.isTTY === true && process.stderr.isTTY === true;
  let made = await codingAgent(options, asks || form.unasked === 'waits' ? undefined : denialPrinter(screen));
  try {
    const chosen = await chosenSession(options, made.sessions, made.cwd);
    const isContinued = chosen !== undefined && options.new !== true;
    const prompt = await readPrompt(words, pipedInput(), {
      optional: words !== '' || chosen !== undefined,
      note: (text) => screen.line(['yellow', text]),
      signal,
    });
    if (signal.aborted) return CANCELLED;
    if (prompt === '' && !isContinued) {
      throw new ConfigurationError('there is nothing to do: give a prompt, or a session to go on with');
    }
    const { cwd, equipment } = made;
    const notes = (texts: readonly string[]): void => {
      if (!options.json) for (const text of texts) screen.line(['yellow', `! ${text}`]);
    };
    notes(equipmentNotes(equipment));
    const contentWith = async (notes: readonly string[]): Promise<Content> => {
      const meaning = meaningOf(prompt, equipment.commands, cwd);
      // Only a command attaches files. Notes alone attach nothing.
      if (meaning.length > 0) {
        const typed = words.trim() === '' ? prompt : words;
        return messageContent(prompt, notes, cwd, meaning, [typed, ...meaningOf(typed, equipment.commands, cwd)]);
      }
      return notes.length > 0 ? [prompt, ...notes].map((text) => ({ type: 'text', text })) : prompt;
    };
    const first: Form = { prompt, contentWith, signal, asks, how: options.json ? form.json : 'steps' };
    const id = chosen ?? newSessionId();
    let result = await answered(made, id, screen, first);
    if (result.window !== undefined) {
      notes([summaryNote(result.window)]);
      const next = await made.remade({ contextWindow: String(result.window) });
      await made.close();
      made = next;
      made.compactNext('');
      result = await answered(made, id, screen, { ...first, prompt: CONTINUED, contentWith: async () => CONTINUED });
    }
    notes(failedServers(equipment));
    return result.code;
  } finally {
    await made.close();
  }
}

interface Form extends Pick<Request, 'prompt' | 'signal' | 'asks'> {
  how: Shown;
  /** Returns the prompt, with the text of its command and with these notes for the model. */
  contentWith(notes: readonly string[]): Promise<Content>;
}

interface Answered {
  code: number;
  /** The window for the continuation, if the request was too long for the model. */
  window?: number;
}

/** One request in a session that is opened for it. */
async function answered(
  made: CodingAgent,
  id: string,
  screen: Screen,
  { how, contentWith, ...form }: Form,
): Promise<Answered> {
  const conversation = await made.agent.open(id);
  mustWorkIn(conversation, made.cwd);
  const content = await contentWith(goneCommands(conversation.log()).map(goneNote));
  const reportResult = follow(conversation, made, screen, how);
  const state: Request = { conversation, screen, ...form, content, last: undefined };
  const code = await request(state);
  if (how === 'steps') printEnding(screen, conversation, made);
  const window = form.signal.aborted ? undefined : windowAfter(state.last?.error, made.model, conversation.log());
  if (window !== undefined) return { code, window };
  if (state.last) reportResult(state.last);
  if (how === 'steps') printSession(screen, conversation, made);
  return { code };
}

const denialPrinter =
  (screen: Screen) =>
  ({ name, rules }: { name: string; rules: readonly string[] }): void => {
    const options = rules.map((rule) => `--allow '${rule.replaceAll("'", "'\\''")}'`).join(' ');
    const how = options === '' ? 'no rule would allow it; ask for it on a terminal' : `this would allow it: ${options}`;
    screen.line(['yellow', `! ${name} is denied, since there is no terminal to ask on: ${how}`]);
  };

type Shown = 'steps' | RunForm['json'];

/** Shows the events of the conversation. Call the returned function with the last result. */
function follow(
  conversation: Conversation,
  { store, about, background }: CodingAgent,
  screen: Screen,
  how: Shown,
): (result: RunResult) => void {
  const output = outputTo(process.stdout);
  if (how === 'messages') return followAsMessages(conversation, store.entriesAtOpen, output, about);
  if (how === 'entries') followAsJson(conversation, store.entriesAtOpen, output);
  else {
    followAsSteps(conversation, store.entriesAtOpen, screen);
    background?.watch((command) => {
      if (command.end?.kind !== undefined && command.end.kind !== 'stopped') screen.line(...endedLine(command).spans);
    });
  }
  return () => undefined;
}

/** A command in the background ends with the program. The output that the model has not read is shown. */
function printEnding(screen: Screen, { id }: Conversation, { background }: CodingAgent): void {
  for (const command of background?.running(id) ?? []) {
    for (const { spans } of endingWithProgram(command)) screen.line(...spans);
  }
}

function printSession(screen: Screen, { id }: Conversation, { sessions }: CodingAgent): void {
  screen.line(['dim', `session ${id}, ${sessions.logText(id)}`]);
}

interface Request {
  conversation: Conversation;
  screen: Screen;
  /** An empty prompt continues a waiting or interrupted run. */
  prompt: string;
  content: Content;
  signal: AbortSignal;
  /** A terminal is available for questions. */
  asks: boolean;
  last: RunResult | undefined;
}

async function request(state: Request): Promise<number> {
  const { conversation, screen, prompt, content, signal } = state;
  if (conversation.status === 'waiting') {
    const code = await continueRun(state);
    if (prompt === '' || code === CANCELLED) return code;
    if (code === WAITING) {
      screen.line(['plain', 'the prompt was not sent']);
      return code;
    }
  }
  const before = conversation.log().length;
  const run = prompt === '' ? conversation.resume() : conversation.send(content, { signal });
  const code = await runToEnd(run, state);
  if (conversation.log().length === before) screen.line(['plain', 'nothing waits and nothing was interrupted']);
  return code === WAITING ? continueRun(state) : code;
}

/** Asks about waiting calls and resumes, as often as needed. */
async function continueRun(state: Request): Promise<number> {
  const { conversation, screen, signal, asks } = state;
  for (;;) {
    if (asks) await decidePending(conversation, screen, terminalAsker(screen, signal));
    if (signal.aborted) {
      await conversation.cancel();
      return CANCELLED;
    }
    if (conversation.pending.length > 0) {
      printWaiting(conversation, screen, asks);
      return WAITING;
    }
    const code = await runToEnd(conversation.resume(), state);
    if (code !== WAITING) return code;
  }
}

/** Resolves to the exit code of a run, and of the runs after it from the session's queue. */
async function runToEnd(run: Run, state: Request): Promise<number> {
  const { conversation, screen, signal } = state;
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
    state.last = result;
    return signal.aborted ? CANCELLED : exitCodeOf(result);
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

function printWaiting(conversation: Conversation, screen: Screen, wasAsked: boolean): void {
  for (const call of conversation.pending) showCall(screen, call);
  const how = wasAsked ? 'Decide later with' : 'There is no terminal to ask on. Decide on one with';
  screen.line(['plain', `${how}: runchart run --session ${shellWord(conversation.id)}`]);
}
