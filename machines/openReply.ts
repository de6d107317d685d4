/** The reply that is being written into the log. Rule: it is complete when an entry comes that stands behind it. */
import type { AgentItem, LogEntry, StoredPart, ToolCall } from './vocabulary.ts';

const BEHIND: ReadonlySet<LogEntry['type']> = new Set<LogEntry['type']>([
  'model-reply',
  'user-message',
  'tool-result',
  'tool-started',
  'tool-suspended',
  'run-started',
  'run-resumed',
  'run-stop',
  'run-suspended',
  'continuation',
  'compaction',
]);

/** Whether this entry stands behind a complete reply. */
export const endsReply = ({ type }: LogEntry): boolean => BEHIND.has(type);

export class OpenReply {
  #content: StoredPart[] = [];
  #calls: ToolCall[] = [];

  /** Takes what the model is shown again of an item, never a blank text; `isKnown`: an earlier reply made the call. */
  add(item: AgentItem, isKnown: (callId: string) => boolean): void {
    if (item.type === 'assistant' && item.text.trim() !== '') this.#content.push({ type: 'text', text: item.text });
    if (item.type !== 'tool-call') return;
    const { type: _, ...call } = item;
    if (!isKnown(call.callId) && !this.#calls.some(({ callId }) => callId === call.callId)) this.#calls.push(call);
  }

  /** The whole reply, and begins the next; undefined where there is none. */
  take(): { content: StoredPart[]; toolCalls: ToolCall[] } | undefined {
    const content = this.#content;
    const toolCalls = this.#calls;
    if (content.length === 0 && toolCalls.length === 0) return undefined;
    this.#content = [];
    this.#calls = [];
    return { content, toolCalls };
  }
}
