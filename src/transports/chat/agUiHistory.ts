/**
 * A log as the messages that an AG-UI page keeps. Rule: a page that received every event of the log's runs has messages with
 * the same ids. Superseded entries have no message.
 */
import {
  canonical,
  eachEarlierEntry,
  type Json,
  type LogEntry,
  standingEntries,
  textOfContent,
} from '../../../machines/internal.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Fields } from '../clientActs.ts';
import { agUiContentOf, inlineAgUiParts } from './chatParts.ts';
import { isFields, listOf } from './chatRequests.ts';
import { pageIdOf } from './chatRuns.ts';
import type { Piece } from './pieces.ts';
import { StreamFold } from './streamFold.ts';

/** A message of AG-UI. Its fields depend on its role. */
export interface AgUiMessage {
  id: string;
  role: string;
  [field: string]: unknown;
}

interface ToolCallMessage extends AgUiMessage {
  toolCalls?: object[];
}

class Messages {
  readonly #byId = new Map<string, ToolCallMessage>();

  get list(): AgUiMessage[] {
    return [...this.#byId.values()];
  }

  take(piece: Piece): void {
    switch (piece.kind) {
      case 'user':
        return this.#add({ id: piece.messageId, role: 'user', content: agUiContentOf(piece.content) });
      case 'begins':
        return this.#add({ id: piece.id, role: piece.channel === 'text' ? 'assistant' : 'reasoning', content: '' });
      case 'grows': {
        const message = this.#byId.get(piece.id);
        if (message) message.content = `${message.content}${piece.delta}`;
        return;
      }
      case 'call': {
        const { callId: id, name, args, argsText = JSON.stringify(args), parent } = piece;
        if (!this.#byId.has(parent)) this.#add({ id: parent, role: 'assistant' });
        const message = this.#byId.get(parent);
        const call = { id, type: 'function', function: { name, arguments: argsText } };
        if (message) message.toolCalls = [...(message.toolCalls ?? []), call];
        return;
      }
      case 'result': {
        const { callId: toolCallId, content } = piece;
        return this.#add({ id: `${toolCallId}/result`, role: 'tool', toolCallId, content: textOfContent(content) });
      }
    }
  }

  #add(message: AgUiMessage): void {
    this.#byId.set(message.id, message);
  }
}

/** The pieces of one entry, which represents the messages that the conversation was opened with. */
function earlierPieces(entry: Extract<LogEntry, { type: 'history' }>): Piece[] {
  const fold = new StreamFold();
  const pieces: Piece[] = [];
  eachEarlierEntry(entry, (each) => void pieces.push(...fold.take(each)));
  return [...pieces, ...fold.end()];
}

/** The messages of a log. The ids of parts count superseded parts, because the page's own ids do. */
export function agUiMessagesOf(entries: readonly LogEntry[]): AgUiMessage[] {
  const standing = new Set(standingEntries(entries));
  const fold = new StreamFold();
  const messages = new Messages();
  for (const entry of entries) {
    const pieces = entry.type === 'history' ? earlierPieces(entry) : fold.take(entry);
    if (standing.has(entry)) for (const piece of pieces) messages.take(piece);
  }
  return messages.list;
}

/** The log before the request. For a repeated message, the log before its first occurrence. */
function messagesBefore(conversation: Conversation, from: number, last: unknown): AgUiMessage[] {
  const messages = agUiMessagesOf(conversation.log().slice(0, from)).filter(({ role }) => role !== 'reasoning');
  const repeated = messages.map(({ id }) => id === last || pageIdOf(id) === last).lastIndexOf(true);
  return repeated < 0 ? messages : messages.slice(0, repeated);
}

const isText = (value: unknown): value is string => typeof value === 'string';
/** The calls that the messages are results of. */
const callsOf = (messages: readonly Fields[]): ReadonlySet<string> =>
  new Set(messages.map(({ toolCallId }) => toolCallId).filter(isText));

/**
 * The snapshots that a page needs when its run begins: all messages, if one before the request is not among its own, and the state, if it
 * is not the page's. Messages that only the page has are kept. `from`: the length of the log before the request.
 */
export async function snapshotsFor(body: Fields, conversation: Conversation, from: number): Promise<object[]> {
  const pageMessages = listOf(body.messages);
  const ids = new Set(pageMessages.map(({ id }) => id));
  const results = callsOf(pageMessages);
  const has = ({ id, toolCallId }: AgUiMessage): boolean =>
    ids.has(id) || ids.has(pageIdOf(id)) || (isText(toolCallId) && results.has(toolCallId));
  const messages = messagesBefore(conversation, from, pageMessages.at(-1)?.id);
  const lacks = pageMessages.length > 0 && !messages.every(has);
  for (const message of lacks ? messages : [])
    if (Array.isArray(message.content)) message.content = await inlineAgUiParts(message.content, conversation);
  const storedIds = new Set(messages.flatMap(({ id }) => [id, pageIdOf(id)]));
  const calls = callsOf(messages);
  const others = pageMessages.filter(
    ({ id, toolCallId }) => !storedIds.has(String(id)) && !calls.has(String(toolCallId)),
  );
  const isSystem = ({ role }: Fields): boolean => role === 'system' || role === 'developer';
  const history = [...others.filter(isSystem), ...messages];
  // The protocol's client keeps the place of each message that it has. So the first snapshot has only the history,
  // and the second one has the messages after it too.
  const all = [...history, ...others.filter((message) => !isSystem(message))];
  const snapshots = [history, all].map((list) => ({ type: 'MESSAGES_SNAPSHOT', messages: list }));
  const { state } = conversation;
  const isShared = canonical(state) === canonical((isFields(body.state) ? body.state : {}) as Json);
  return [
    // An answer without messages shows nothing of them.
    ...(lacks ? snapshots : []),
    ...(isShared ? [] : [{ type: 'STATE_SNAPSHOT', snapshot: state }]),
  ];
}
