/**
 * `runchart` alone on a terminal: a conversation of many turns. Rule: what was said stays in the session, whatever ends it; the terminal is
 * left as it was found.
 */
import { type AgentOptions, codingAgent } from '../codingAgent.ts';
import { CANCELLED } from '../exitCodes.ts';
import type { OwnInterrupt } from '../input.ts';
import { type Output, outputTo } from '../screen.ts';
import { chosenSession, type SessionChoice } from '../sessions/sessionStore.ts';
import { type ConversationTerminal, LineTerminal, type TerminalSource } from './conversationTerminal.ts';
import { DrawnTerminal } from './drawnTerminal.ts';
import { InteractiveSession } from './interactiveSession.ts';

export interface InteractiveOptions extends AgentOptions, Omit<SessionChoice, 'session' | 'new'> {}

/** Goes on until the person leaves, and answers the exit code. Rejects with ConfigurationError and what opening a session rejects with. */
export async function interactiveCommand(
  options: InteractiveOptions,
  signal: AbortSignal,
  own: OwnInterrupt,
): Promise<number> {
  const made = await codingAgent(options);
  const chooses = options.resume === true;
  const chosen = chooses ? undefined : await chosenSession(options, made.directory, made.cwd);
  const output = outputTo(process.stdout);
  let session: InteractiveSession | undefined;
  try {
    session = new InteractiveSession(made, (source) => terminalOf(output, source));
    own.sigint = session.signalled;
    await session.open(chosen);
    if (chooses) await session.list();
    const aborted = new Promise<'interrupted'>((resolve) => {
      if (signal.aborted) resolve('interrupted');
      signal.addEventListener('abort', () => resolve('interrupted'));
    });
    const how = await Promise.race([session.left, aborted]);
    return how === 'done' ? 0 : CANCELLED;
  } finally {
    own.sigint = undefined;
    const { id, isEmpty = true } = session ?? {};
    session?.close();
    await made.agent.close();
    if (!isEmpty) output.write(`session ${id}: runchart -r ${id} goes on with it\n`);
  }
}

/** Of a terminal that does not say. */
const COLUMNS = 80;

function terminalOf(output: Output, source: TerminalSource): ConversationTerminal {
  const { stdin, stdout } = process;
  if (stdin.isTTY && stdout.isTTY && process.env.TERM !== 'dumb')
    return new DrawnTerminal(stdin, stdout, output.styled, source);
  const columns = stdout.isTTY ? stdout.columns || COLUMNS : undefined;
  return new LineTerminal(stdin, { ...output, columns }, source);
}
