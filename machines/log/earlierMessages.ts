/**
 * Messages of an earlier conversation, as a new one is opened with: one entry, and what it stands for. Rule: each request
 * is a cycle with its stop, and each call has a result: where the messages hold none, one that says so. So no call of the
 * past is ever run.
 */

import { NO_EARLIER_RESULT } from '../transcript/texts.ts';
import type { AgentItem, LogEntry, Message, WireEvent } from '../vocabulary.ts';

const STOP: WireEvent = { type: 'run-stop', reason: 'completed', cause: 'history' };

type Earlier = Extract<LogEntry, { type: 'history' }>;

const noResult = (callId: string): WireEvent => ({
  type: 'tool-result',
  callId,
  outcome: 'cancelled',
  content: [{ type: 'text', text: NO_EARLIER_RESULT }],
  code: 'restart',
});

/** The results of calls that have none behind them, in their order; an id that is used again names its first call. */
function missingResults(messages: readonly Message[]): (message: Message, index: number) => WireEvent[] {
  const last = new Map<string, number>();
  for (const [index, message] of messages.entries()) if (message.role === 'tool') last.set(message.callId, index);
  const called = new Set<string>();
  return (message, index) => {
    if (message.role !== 'assistant' || message.toolCalls.length === 0) return [];
    const ids = new Set(message.toolCalls.map(({ callId }) => callId).filter((callId) => !called.has(callId)));
    for (const callId of ids) called.add(callId);
    return [...ids].filter((callId) => (last.get(callId) ?? -1) < index).map(noResult);
  };
}

/** The wire events that the messages stand for. */
export function eventsOfMessages(messages: readonly Message[]): WireEvent[] {
  const events: WireEvent[] = [];
  const missing = missingResults(messages);
  let open = false;
  for (const [index, message] of messages.entries()) {
    const { content } = message;
    if (message.role === 'user') {
      if (open) events.push(STOP);
      events.push({ type: 'user-message', messageId: `history-${index}`, kind: 'direct', content });
      open = true;
    } else if (message.role === 'assistant') {
      const { toolCalls, extra } = message;
      const items: AgentItem[] = content.flatMap((part) =>
        part.type === 'text' ? [{ type: 'assistant', text: part.text }] : [],
      );
      for (const call of toolCalls) items.push({ type: 'tool-call', ...call });
      const last = extra === undefined ? undefined : items.at(-1);
      for (const item of items) events.push({ type: 'agent-output', item, ...(item === last && { extra }) });
      events.push(...missing(message, index));
    } else if (message.role === 'tool') {
      const outcome = message.isError ? 'failed' : 'succeeded';
      events.push({ type: 'tool-result', callId: message.callId, outcome, content });
    }
  }
  if (open) events.push(STOP);
  return events;
}

/** The same as entries that stand where it stands. */
export const earlierEntries = ({ messages, seq, at, conversationId }: Earlier): LogEntry[] =>
  eventsOfMessages(messages).map((event) => ({ seq, at, conversationId, runId: null, ...event }));
