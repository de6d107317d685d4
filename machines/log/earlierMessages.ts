/**
 * Messages of an earlier conversation in one entry, and the entries that it represents. Invariant: each request is a cycle
 * with its stop, each message of the model is a reply, and each call has a result. If the messages contain no result, a generated one
 * states that. No call of an earlier conversation ever runs.
 */

import { NO_EARLIER_RESULT } from '../transcript/texts.ts';
import type { AgentItem, LogEntry, Message, ToolCall } from '../vocabulary.ts';

type Reply = Extract<Message, { role: 'assistant' }>;
type Earlier = Pick<Extract<LogEntry, { type: 'history' }>, 'messages' | 'seq' | 'at' | 'conversationId'>;

/** The calls without a later result, in order. An id that occurs twice means its first call. */
function withoutResult(messages: readonly Message[]): (calls: readonly ToolCall[], index: number) => string[] {
  const last = new Map<string, number>();
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index];
    if (message?.role === 'tool') last.set(message.callId, index);
  }
  const called = new Set<string>();
  return (calls, index) => {
    const ids = new Set(calls.map(({ callId }) => callId).filter((callId) => !called.has(callId)));
    for (const callId of ids) called.add(callId);
    return [...ids].filter((callId) => (last.get(callId) ?? -1) < index);
  };
}

/** Text alone, as in most messages of the model. Blank text does not count. */
const isSpoken = ({ content, toolCalls, extra }: Reply): boolean =>
  content.length > 0 &&
  toolCalls.length === 0 &&
  extra === undefined &&
  content.every((part) => part.type === 'text' && part.text.trim());

/**
 * Passes on the represented entries in order. `replied` is called when a message of the model is complete. `spoken`, if
 * present, receives a message that is text alone in place of its entries. A history may be long, so entries are made one by one.
 * The common path avoids object spread, which is ten times slower on Node 20.
 */
export function eachEarlierEntry(
  { messages, seq, at, conversationId }: Earlier,
  take: (entry: LogEntry) => void,
  spoken?: (message: Reply) => void,
  replied?: () => void,
): void {
  const runId = null;
  const lacking = withoutResult(messages);
  const stop = (): void =>
    take({ seq, at, conversationId, runId, type: 'run-stop', reason: 'completed', cause: 'history' });
  const assistant = (message: Reply, index: number): void => {
    if (spoken && isSpoken(message)) return spoken(message);
    const { content, toolCalls, extra } = message;
    const items: AgentItem[] = [];
    for (const part of content) if (part.type === 'text') items.push({ type: 'assistant', text: part.text });
    for (const call of toolCalls) items.push({ type: 'tool-call', ...call });
    for (const item of items) {
      const entry = { seq, at, conversationId, runId, type: 'agent-output' as const, item };
      take(extra === undefined || item !== items.at(-1) ? entry : { ...entry, extra });
    }
    replied?.();
    for (const callId of lacking(toolCalls, index)) {
      const content = [{ type: 'text' as const, text: NO_EARLIER_RESULT }];
      take({
        seq,
        at,
        conversationId,
        runId,
        type: 'tool-result',
        callId,
        outcome: 'cancelled',
        content,
        code: 'restart',
      });
    }
  };
  let open = false;
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index] as Message;
    const { content } = message;
    if (message.role === 'user') {
      if (open) stop();
      take({
        seq,
        at,
        conversationId,
        runId,
        type: 'user-message',
        messageId: `history-${index}`,
        kind: 'direct',
        content,
      });
      open = true;
    } else if (message.role === 'assistant') {
      assistant(message, index);
    } else if (message.role === 'tool') {
      const outcome = message.isError ? 'failed' : 'succeeded';
      take({ seq, at, conversationId, runId, type: 'tool-result', callId: message.callId, outcome, content });
    }
  }
  if (open) stop();
}
