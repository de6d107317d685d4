/**
 * The surroundings of the typed line: the state of a request under way, the mark of the current question, and the renderer for a terminal.
 */
import type { SnapshotFrom } from 'xstate';
import { textOf } from '../../content/content.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { BackgroundCommands } from '../../tools/coding/commands/backgroundCommands.ts';
import type { TextFormats } from '../formatted/textFormats.ts';
import type { Span } from '../screen.ts';
import { runningLines } from './backgroundLines.ts';
import { queuedLine, secondsText, spinner, TranscriptRenderer } from './conversationLines.ts';
import type { ConversationTerminal } from './conversationTerminal.ts';
import type { AskedCall, promptMachine } from './prompt.machine.ts';
import { ownLine, type TextLine } from './textRows.ts';

const WIDTH = 80;

export const rendererFor = (
  terminal: ConversationTerminal,
  formats: () => TextFormats | undefined,
): TranscriptRenderer =>
  new TranscriptRenderer({
    formats,
    rows: () => terminal.rows,
    ...(terminal.textColumns !== undefined && { columns: () => terminal.textColumns ?? WIDTH }),
  });

/** A conversation as it is shown under the transcript. */
interface Foot {
  readonly snapshot: SnapshotFrom<typeof promptMachine>;
  readonly opened: { conversation: Conversation; renderer: TranscriptRenderer } | undefined;
  readonly background: BackgroundCommands | undefined;
  /** When the request under way began, in milliseconds since the epoch. */
  readonly busySince: number | undefined;
}

/** The work under way, the queued messages, the commands in the background, and the state of the request. */
export function footLines({ snapshot, opened, background, busySince }: Foot, now: number): TextLine[] {
  const { work, exit } = snapshot.value;
  const lines = [...(opened?.renderer.underWay(now) ?? [])];
  for (const { kind, content } of opened?.conversation.queue ?? []) lines.push(queuedLine(kind, textOf(content)));
  lines.push(...runningLines(background, opened?.conversation.id ?? ''));
  if (exit === 'leaving') lines.push(ownLine(['yellow', 'Ctrl-C again leaves']));
  else if (work === 'busy') lines.push(statusLine(opened?.conversation.status === 'cancelling', busySince ?? now, now));
  return lines;
}

/** True if the person can type. */
export const isAwaiting = ({ value: { work } }: SnapshotFrom<typeof promptMachine>): boolean =>
  work === 'idle' || (typeof work === 'object' && work.asking !== 'deciding');

function statusLine(isStopping: boolean, since: number, now: number): TextLine {
  const what = isStopping ? 'stopping' : 'working';
  const time = secondsText(now - since);
  return ownLine(['cyan', spinner(now)], ['dim', ` ${what} ${time} · Esc stops · Enter steers · Alt+Enter queues`]);
}

const answersOf = (call: AskedCall | undefined): string =>
  `[y]es, [n]o, [e]dit${call?.canAlways ? ', [a]lways, [k]eep' : ''}`;

export function questionSpan({ value, context }: SnapshotFrom<typeof promptMachine>): Span {
  if (typeof value.work !== 'object') return ['cyan', '>'];
  switch (value.work.asking) {
    case 'reasoning':
      return ['yellow', '┃ why not? (Enter for no reason)'];
    case 'editing':
      return ['yellow', '┃ arguments:'];
    case 'deciding':
      return ['yellow', '┃'];
    default:
      return ['yellow', `┃ ${context.call?.isPlan ? 'carry it out' : 'run it'}? ${answersOf(context.call)}:`];
  }
}
