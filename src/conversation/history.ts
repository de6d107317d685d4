/**
 * Earlier messages as one entry of a new log. Invariant: the log can be opened again. A value that is not a list of messages with known
 * roles and complete calls is refused, and the entry contains a copy.
 */
import type { Json, Message, NewEntry, StoredPart, ToolCall } from '../../machines/internal.ts';
import { type Attachments, type EarlierMessage, readContent } from '../content/content.ts';
import { ConfigurationError } from '../errors.ts';
import { toJson } from '../json.ts';

/** `content`: the content in the form of the log. */
function storedMessage(message: EarlierMessage, content: StoredPart[]): Message {
  switch (message.role) {
    case 'user':
      return { role: 'user', content };
    case 'assistant': {
      if (!Array.isArray(message.toolCalls)) throw refused('a reply without a list of toolCalls');
      const toolCalls = message.toolCalls.map(ownCall);
      return message.extra === undefined
        ? { role: 'assistant', content, toolCalls }
        : { role: 'assistant', content, toolCalls, extra: ownJson('extra', message.extra) };
    }
    case 'tool': {
      const { callId, isError } = message;
      if (typeof callId !== 'string') throw refused('a result without the callId of its call');
      return { role: 'tool', callId, content, isError };
    }
  }
}

const ROLES: readonly unknown[] = ['user', 'assistant', 'tool'] satisfies Message['role'][];

const refused = (what: string): ConfigurationError => new ConfigurationError(`history has ${what}`);

function ownJson(field: string, value: unknown): Json {
  const json = toJson(value);
  if (json.kind === 'parsed') return json.value;
  throw refused(`a message whose ${field} is not JSON: ${json.why}`);
}

function ownCall(original: ToolCall): ToolCall {
  const call: ToolCall = { ...original };
  if (typeof call.callId !== 'string' || typeof call.name !== 'string') throw refused('a call without callId and name');
  if (call.argsText !== undefined && typeof call.argsText !== 'string')
    throw refused('a call whose argsText is no text');
  for (const field of ['args', 'extra'] as const) {
    if (call[field] !== undefined) call[field] = ownJson(field, call[field]);
  }
  return call;
}

/**
 * Undefined for an empty list. Rejects with ConfigurationError, and with the error of the store where an image or a file
 * cannot be stored.
 */
export async function historyEntries(
  history: readonly EarlierMessage[],
  attachments: Attachments,
): Promise<NewEntry[]> {
  if (!Array.isArray(history)) {
    throw new ConfigurationError(`history must be a list of messages, got ${typeof history}`);
  }
  const messages: Message[] = [];
  for (const message of history) {
    if (!ROLES.includes(message?.role)) {
      throw new ConfigurationError('history must be a list of messages with role user, assistant or tool');
    }
    const content = attachments.keep(readContent(message.content, attachments.fileBytes));
    // A history may be long, so nothing waits unless there is an image or a file.
    messages.push(storedMessage(message, Array.isArray(content) ? content : await content));
  }
  return messages.length === 0 ? [] : [{ runId: null, type: 'history', messages }];
}
