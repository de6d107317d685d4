/** Earlier messages as the entry that a new log holds of them. Rule: what is no list of messages of known roles is refused. */
import type { Json, Message, NewEntry } from '../../machines/internal.ts';
import { type EarlierMessage, storedContent } from '../content/content.ts';
import { ConfigurationError } from '../errors.ts';
import { toJson } from '../json.ts';

function storedMessage(message: EarlierMessage): Message {
  switch (message?.role) {
    case 'user':
      return { role: 'user', content: storedContent(message.content) };
    case 'assistant': {
      const content = storedContent(message.content);
      const toolCalls = message.toolCalls.map(ownCall);
      return message.extra === undefined
        ? { role: 'assistant', content, toolCalls }
        : { role: 'assistant', content, toolCalls, extra: ownExtra(message.extra) };
    }
    case 'tool': {
      const { callId, content, isError } = message;
      return { role: 'tool', callId, content: storedContent(content), isError };
    }
    default:
      throw new ConfigurationError('history must be a list of messages with role user, assistant or tool');
  }
}

function ownExtra(given: unknown): Json {
  const extra = toJson(given);
  if (extra.kind === 'parsed') return extra.value;
  throw new ConfigurationError(`the extra of an earlier message must be JSON: ${extra.why}`);
}

const ownCall = <Call extends object>(call: Call): Call => ({ ...call });

/** Throws ConfigurationError. Nothing for no message. */
export function historyEntries(history: readonly EarlierMessage[]): NewEntry[] {
  if (!Array.isArray(history)) {
    throw new ConfigurationError(`history must be a list of messages, got ${typeof history}`);
  }
  const messages: Message[] = [];
  for (const message of history) messages.push(storedMessage(message));
  return messages.length === 0 ? [] : [{ runId: null, type: 'history', messages }];
}
