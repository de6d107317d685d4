/**
 * The reply that is being written into the log. Rule: it is complete when an entry comes that stands behind it; who looks
 * at it before that is shown it as far as it goes, and ends nothing.
 */
import { NO_RESULT, textPart } from './shownText.ts';
import type { AgentItem, LogEntry, Message, StoredPart, ToolCall } from './vocabulary.ts';

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
  /** Made when somebody looks. */
  #shown: readonly Message[] | undefined;

  /** Takes what the model is shown again of an item, never a blank text; `isKnown`: an earlier reply made the call. */
  add(item: AgentItem, isKnown: (callId: string) => boolean): void {
    this.#shown = undefined;
    if (item.type === 'assistant' && item.text.trim() !== '') this.#content.push({ type: 'text', text: item.text });
    if (item.type !== 'tool-call') return;
    const { type: _, ...call } = item;
    if (!isKnown(call.callId) && !this.#calls.some(({ callId }) => callId === call.callId)) this.#calls.push(call);
  }

  /** The reply so far, as if it were complete: its message, then a result for each call. Empty where there is none. */
  get messages(): readonly Message[] {
    this.#shown ??= this.#show().map((message) => Object.freeze(message));
    return this.#shown;
  }

  get calls(): readonly ToolCall[] {
    return this.#calls;
  }

  /** Begins the next reply. */
  clear(): void {
    this.#content = [];
    this.#calls = [];
    this.#shown = undefined;
  }

  #show(): Message[] {
    if (this.#content.length + this.#calls.length === 0) return [];
    const results = this.#calls.map(
      ({ callId }): Message => ({ role: 'tool', callId, content: textPart(NO_RESULT), isError: true }),
    );
    return [{ role: 'assistant', content: this.#content.slice(), toolCalls: this.#calls.slice() }, ...results];
  }
}
