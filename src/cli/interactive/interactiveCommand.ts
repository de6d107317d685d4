/**
 * `runchart` on a terminal: a conversation of many turns. Invariant: the session keeps every message, however the
 * program ends. The terminal's mode is restored.
 */

import { printableLine } from '../../printable.ts';
import { type AgentOptions, codingAgent } from '../codingAgent.ts';
import { CANCELLED } from '../exitCodes.ts';
import type { OwnInterrupt } from '../personInput.ts';
import { type Output, outputTo } from '../screen.ts';
import { chosenSession, type SessionChoice, shellWord } from '../sessions/sessionStore.ts';
import { type ConversationTerminal, LineTerminal, type TerminalSource } from './conversationTerminal.ts';
import { DrawnTerminal } from './drawnTerminal.ts';
import { InteractiveSession } from './interactiveSession.ts';

export interface InteractiveOptions extends AgentOptions, Omit<SessionChoice, 'session' | 'new'> {
  /** The first message. Empty for none. */
  prompt?: string;
}

/**
 * Runs until the person leaves. Resolves to the exit code. Rejects with ConfigurationError and with errors of opening
 * a session.
 */
export async function interactiveCommand(
  options: InteractiveOptions,
  signal: AbortSignal,
  own: OwnInterrupt,
): Promise<number> {
  const made = await codingAgent({ ...options, titled: true });
  const output = outputTo(process.stdout);
  let session: InteractiveSession | undefined;
  try {
    const chooses = options.resume === true;
    const chosen = chooses ? undefined : await chosenSession(options, made.sessions, made.cwd);
    session = new InteractiveSession(made, (source) => terminalOf(output, source));
    own.sigint = session.signalled;
    await session.open(chosen);
    session.reportEquipment();
    if (chooses) await session.choose();
    if (options.prompt) session.submit(options.prompt, false);
    const aborted = new Promise<'interrupted'>((resolve) => {
      if (signal.aborted) resolve('interrupted');
      signal.addEventListener('abort', () => resolve('interrupted'));
    });
    const how = await Promise.race([session.finished, aborted]);
    return how === 'done' ? 0 : CANCELLED;
  } finally {
    own.sigint = undefined;
    const { id, isEmpty = true } = session ?? {};
    session?.close();
    await (session?.closeAgent() ?? made.close());
    if (id !== undefined && !isEmpty)
      output.write(printableLine(`session ${id}: runchart -r ${shellWord(id)} goes on with it`).concat('\n'));
  }
}

/** Used if the terminal does not report its width. */
const COLUMNS = 80;

function terminalOf(output: Output, source: TerminalSource): ConversationTerminal {
  const { stdin, stdout } = process;
  if (stdin.isTTY && stdout.isTTY && process.env.TERM !== 'dumb')
    return new DrawnTerminal(stdin, stdout, output.styled, source);
  const columns = stdout.isTTY ? stdout.columns || COLUMNS : undefined;
  return new LineTerminal(stdin, { ...output, columns }, source);
}
