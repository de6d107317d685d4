/**
 * What stands around the typed line: the state of a request under way, the mark that says what the person is asked, and
 * the renderer for a terminal.
 */
import type { SnapshotFrom } from 'xstate';
import { textOf } from '../../content/content.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { TextFormats } from '../formatted/textFormats.ts';
import type { Span } from '../screen.ts';
import { queuedLine, secondsText, spinner, TranscriptRenderer } from './conversationLines.ts';
import type { ConversationTerminal } from './conversationTerminal.ts';
import type { promptMachine } from './prompt.machine.ts';
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

export const queueLines = (conversation: Conversation | undefined): TextLine[] =>
  (conversation?.queue ?? []).map(({ kind, content }) => queuedLine(kind, textOf(content)));

export function statusLine(isStopping: boolean, since: number, now: number): TextLine {
  const what = isStopping ? 'stopping' : 'working';
  const time = secondsText(now - since);
  return ownLine(['cyan', spinner(now)], ['dim', ` ${what} ${time} · Esc stops · Enter steers · Alt+Enter queues`]);
}

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
      return ['yellow', `┃ run it? [y]es, [n]o, [e]dit${context.call?.canAlways ? ', [a]lways, [k]eep' : ''}:`];
  }
}
