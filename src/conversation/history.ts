/** Earlier messages as one entry of a new log. Invariant: a value that is not a list of messages with known roles is refused. */
import type { Json, Message, NewEntry, StoredPart } from '../../machines/internal.ts';
import { type Attachments, type EarlierMessage, readContent } from '../content/content.ts';
import { ConfigurationError } from '../errors.ts';
import { toJson } from '../json.ts';

/** `content`: the content in the form of the log. */
function storedMessage(message: EarlierMessage, content: StoredPart[]): Message {
  switch (message.role) {
    case 'user':
      return { role: 'user', content };
    case 'assistant': {
      const toolCalls = message.toolCalls.map(ownCall);
      return message.extra === undefined
        ? { role: 'assistant', content, toolCalls }
        : { role: 'assistant', content, toolCalls, extra: ownExtra(message.extra) };
    }
    case 'tool': {
      const { callId, isError } = message;
      return { role: 'tool', callId, content, isError };
    }
  }
}

const ROLES: readonly unknown[] = ['user', 'assistant', 'tool'] satisfies Message['role'][];

function ownExtra(given: unknown): Json {
  const extra = toJson(given);
  if (extra.kind === 'parsed') return extra.value;
  throw new ConfigurationError(`the extra of an earlier message must be JSON: ${extra.why}`);
}

const ownCall = <Call extends object>(call: Call): Call => ({ ...call });

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
