/**
 * Earlier messages as the entries of a new log. Rule: each request becomes a cycle with its stop, and each call has a
 * result: where the messages hold none, one that says so. So no call of the past is ever run.
 */
import type { NewEntry } from '../../machines/internal.ts';
import { type EarlierMessage, storedContent } from '../content/content.ts';
import { ConfigurationError } from '../errors.ts';

const STOP: NewEntry = { runId: null, type: 'run-stop', reason: 'completed', cause: 'history' };

function assistantEntries(message: Extract<EarlierMessage, { role: 'assistant' }>): NewEntry[] {
  const texts = storedContent(message.content).flatMap((part): NewEntry[] =>
    part.type === 'text' ? [{ runId: null, type: 'agent-output', item: { type: 'assistant', text: part.text } }] : [],
  );
  const calls = message.toolCalls.map(
    (call): NewEntry => ({ runId: null, type: 'agent-output', item: { type: 'tool-call', ...call } }),
  );
  return [...texts, ...calls];
}

function noResult(callId: string): NewEntry {
  const text = 'The earlier messages hold no result of this call. It was not run here.';
  const content = [{ type: 'text' as const, text }];
  return { runId: null, type: 'tool-result', callId, outcome: 'cancelled', content, code: 'restart' };
}

/** The results of calls that have none behind them, in their order; an id that is used again names its first call. */
function missingResults(history: readonly EarlierMessage[]): (message: EarlierMessage, index: number) => NewEntry[] {
  const last = new Map<string, number>();
  for (const [index, message] of history.entries()) if (message?.role === 'tool') last.set(message.callId, index);
  const called = new Set<string>();
  return (message, index) => {
    if (message.role !== 'assistant') return [];
    const ids = new Set(message.toolCalls.map(({ callId }) => callId).filter((callId) => !called.has(callId)));
    for (const callId of ids) called.add(callId);
    return [...ids].filter((callId) => (last.get(callId) ?? -1) < index).map(noResult);
  };
}

/** Entries for `open(id, { history })`. Throws ConfigurationError where it is no list of messages of known roles. */
export function historyEntries(history: readonly EarlierMessage[], newId: () => string): NewEntry[] {
  if (!Array.isArray(history)) {
    throw new ConfigurationError(`history must be a list of messages, got ${typeof history}`);
  }
  const entries: NewEntry[] = [];
  const missing = missingResults(history);
  let open = false;
  for (const [index, message] of history.entries()) {
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
        entries.push(...assistantEntries(message), ...missing(message, index));
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
