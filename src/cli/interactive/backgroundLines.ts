/**
 * Commands in the background, as lines: those that run, end or have ended, and those of an earlier program. Invariant: a
 * command that the log shows as started and not as ended, and that does not run, is reported once as gone.
 */
import type { Json, LogEntry } from '../../../machines/internal.ts';
import { textOf } from '../../content/content.ts';
import { printableLine, shortened } from '../../printable.ts';
import type { BackgroundCommand, BackgroundCommands } from '../../tools/coding/commands/backgroundCommands.ts';
import { endText } from '../../tools/coding/commands/backgroundTools.ts';
import { outputLines } from './conversationLines.ts';
import type { ConversationTerminal } from './conversationTerminal.ts';
import { ownLine, type TextLine } from './textRows.ts';

const COMMAND_MAX = 120;
/** The assumed height of the screen; the output of an ending command fills at most half of it. */
const OUTPUT_ROWS = 20;

const shownCommand = (command: string): string => shortened(printableLine(command), COMMAND_MAX);

export const runningLines = (commands: BackgroundCommands | undefined, conversationId: string): TextLine[] =>
  (commands?.running(conversationId) ?? []).map(({ id, command }) =>
    ownLine(['cyan', '◌ '], ['dim', `in the background ${id}  `], ['cyan', shownCommand(command)]),
  );

/** The commands that end because the session is closed and opened again, with another model for example. */
export const endingLines = (commands: BackgroundCommands | undefined, conversationId: string): TextLine[] =>
  (commands?.running(conversationId) ?? []).map(({ id, command }) =>
    ownLine([
      'yellow',
      `! ${id} ${shownCommand(command)}: it ends now, because the session is closed and opened again`,
    ]),
  );

/** A command that ends because the program ends, and the last lines that nobody has read. */
export function endingWithProgram(command: BackgroundCommand): TextLine[] {
  const head = `! ${command.id} ${shownCommand(command.command)}: it ends now, because the program ends`;
  const printed = command.read().text().trimEnd();
  return [ownLine(['yellow', head]), ...(printed === '' ? [] : outputLines(printed, OUTPUT_ROWS))];
}

export const endedLine = (command: BackgroundCommand): TextLine =>
  ownLine(['dim', `· ${command.id} ${shownCommand(command.command)}: ${printableLine(endText(command))}`]);

/** Shows the end of each command, and the running commands. Returns a function that ends this. */
export const showEnds = (
  commands: BackgroundCommands | undefined,
  terminal: Pick<ConversationTerminal, 'commit' | 'changed'>,
): (() => void) | undefined =>
  commands?.watch((command) => {
    if (command.end) terminal.commit([endedLine(command)]);
    terminal.changed();
  });

export interface GoneCommand {
  readonly id: string;
  readonly command: string;
}

export const goneLine = ({ id, command }: GoneCommand): TextLine =>
  ownLine(['yellow', `! ${id} ${shownCommand(command)}: it ended when its session was closed`]);

/** The same for the model, with the next message. */
export const goneNote = ({ id, command }: GoneCommand): string =>
  `[The background command ${id} (${command}) is gone: it ended when the session was closed, and its output is gone too.]`;

const STARTED = /^Started in the background as (bash_[0-9a-f]+)\./;
const ENDED = /\[ended: [^\]]*\]\s*$/;

/** The commands that were started before the session was opened and whose end is not in the log. */
export function goneCommands(entries: readonly LogEntry[]): GoneCommand[] {
  const calls = new Map<string, { name: string; args: Json }>();
  const running = new Map<string, string>();
  for (const entry of entries) {
    if (entry.type === 'agent-output' && entry.item.type === 'tool-call') {
      calls.set(entry.item.callId, entry.item);
    } else if (entry.type === 'tool-result') {
      const call = calls.get(entry.callId);
      if (call) follow(running, call, textOf(entry.content));
    } else if (entry.type === 'user-message') {
      const text = textOf(entry.content);
      for (const id of running.keys()) if (text.includes(`[The background command ${id} (`)) running.delete(id);
    }
  }
  return [...running].map(([id, command]) => ({ id, command }));
}

function follow(running: Map<string, string>, { name, args }: { name: string; args: Json }, text: string): void {
  const { command, bash_id: id } = (args ?? {}) as { command?: Json; bash_id?: Json };
  const [, started] = (name === 'Bash' && STARTED.exec(text)) || [];
  if (started !== undefined && typeof command === 'string') running.set(started, command);
  else if ((name === 'BashOutput' || name === 'KillBash') && typeof id === 'string' && ENDED.test(text))
    running.delete(id);
}
