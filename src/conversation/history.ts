/** Earlier messages as the entry that a new log holds of them. Rule: what is no list of messages of known roles is refused. */
import type { Json, Message, NewEntry, StoredPart } from '../../machines/internal.ts';
import { type EarlierMessage, type Images, readContent } from '../content/content.ts';
import { ConfigurationError } from '../errors.ts';
import { toJson } from '../json.ts';

/** `content`: its content, as the log may hold it. */
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

/** Nothing for no message. Rejects with ConfigurationError, and where the store does, which images are in behind it. */
export async function historyEntries(history: readonly EarlierMessage[], images: Images): Promise<NewEntry[]> {
  if (!Array.isArray(history)) {
    throw new ConfigurationError(`history must be a list of messages, got ${typeof history}`);
  }
  const messages: Message[] = [];
  for (const message of history) {
    if (!ROLES.includes(message?.role)) {
      throw new ConfigurationError('history must be a list of messages with role user, assistant or tool');
    }
    const content = images.keep(readContent(message.content));
    // A history may be long: nothing waits without an image.
    messages.push(storedMessage(message, Array.isArray(content) ? content : await content));
  }
  return messages.length === 0 ? [] : [{ runId: null, type: 'history', messages }];
}
