/**
 * Earlier messages as the entries of a new log. Rule: each request becomes a cycle with its stop; a call without a
 * result keeps none, and the model is told so by the projection.
 */
import type { Message, NewEntry } from '../machines/index.ts';
import { type Content, storedContent } from './content.ts';
import { ConfigurationError } from './errors.ts';

const STOP: NewEntry = { runId: null, type: 'run-stop', reason: 'completed', cause: 'history' };

type WithContent<M extends Message> = M extends Message ? Omit<M, 'content'> & { content: Content } : never;
/** A message as a caller gives it: its images may be bytes. */
export type EarlierMessage = WithContent<Message>;

function assistantEntries(message: Extract<EarlierMessage, { role: 'assistant' }>): NewEntry[] {
  const texts = storedContent(message.content).flatMap((part): NewEntry[] =>
    part.type === 'text' ? [{ runId: null, type: 'agent-output', item: { type: 'assistant', text: part.text } }] : [],
  );
  const calls = message.toolCalls.map(
    (call): NewEntry => ({ runId: null, type: 'agent-output', item: { type: 'tool-call', ...call } }),
  );
  return [...texts, ...calls];
}

/** Entries for `open(id, { history })`. Throws ConfigurationError where it is no list of messages of known roles. */
export function historyEntries(history: readonly EarlierMessage[], newId: () => string): NewEntry[] {
  if (!Array.isArray(history)) {
    throw new ConfigurationError(`history must be a list of messages, got ${typeof history}`);
  }
  const entries: NewEntry[] = [];
  let open = false;
  for (const message of history) {
    switch (message?.role) {
      case 'user':
        if (open) entries.push(STOP);
        entries.push({
          runId: null,
          type: 'user-message',
          messageId: newId(),
          kind: 'direct',
          content: storedContent(message.content),
        });
        open = true;
        break;
      case 'assistant':
        entries.push(...assistantEntries(message));
        break;
      case 'tool': {
        const { callId, isError } = message;
        const content = storedContent(message.content);
        const outcome = isError ? 'failed' : 'succeeded';
        entries.push({ runId: null, type: 'tool-result', callId, outcome, content });
        break;
      }
      default:
        throw new ConfigurationError('history must be a list of messages with role user, assistant or tool');
    }
  }
  return open ? [...entries, STOP] : entries;
}
