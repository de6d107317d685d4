/**
 * A conversation as the updates of the Agent Client Protocol: messages, thoughts, tool calls, plans and usage.
 * Invariant: a fold of entries and live signals. Each entry is shown once it is durable. Streamed text is not repeated
 * with its entry. A replay shows the messages and calls that the model still receives.
 */
import type { ContentBlock, SessionUpdate } from '@agentclientprotocol/sdk';
import {
  type AgentItem,
  addUsage,
  type Json,
  type LogEntry,
  type StoredPart,
  usageOf,
  zeroUsage,
} from '../../../machines/internal.ts';
import { isEncodedImage } from '../../content/imageFormat.ts';
import type { Live } from '../../live.ts';
import { printableLine } from '../../printable.ts';
import { terminalLine } from '../../words/entryWords.ts';
import { planOf, resultContent, type ShownToolCall, shownCall, textContent } from './toolCallWords.ts';

interface UpdateOptions {
  readonly cwd: string;
  /** The context window of the model, in tokens. Undefined if it is unknown. */
  readonly contextWindow: number | undefined;
  /** The editor shows notices. */
  readonly notices: boolean;
}

type Of<T extends LogEntry['type']> = Extract<LogEntry, { type: T }>;
type TextKind = 'agent_message_chunk' | 'agent_thought_chunk' | 'user_message_chunk';

const chunk = (sessionUpdate: TextKind, content: ContentBlock, messageId: string): SessionUpdate => ({
  sessionUpdate,
  content,
  messageId,
});

export class SessionUpdates {
  readonly #options: UpdateOptions;
  readonly #calls = new Map<string, ShownToolCall>();
  #spent = zeroUsage;
  #lastReply: Of<'model-reply'> | undefined;
  /** The parts of the current reply that were streamed. */
  #streamed = { assistant: false, reasoning: false };
  #messages = 0;
  #notes = 0;

  /** `earlier`: the entries so far, for the sum of the cost, and for calls that have not ended. */
  constructor(options: UpdateOptions, earlier: readonly LogEntry[] = []) {
    this.#options = options;
    for (const entry of earlier) {
      this.#spend(entry);
      if (entry.type === 'agent-output' && entry.item.type === 'tool-call') this.#keepCall(entry.item);
    }
  }

  /** Signals of a sub-agent count only as progress of its call. */
  signal(signal: Live): SessionUpdate[] {
    if (signal.type === 'tool-progress') return this.#progress(signal.path?.[0] ?? signal.callId, signal.update);
    if (signal.path) return [];
    if (signal.type === 'text-delta') {
      this.#streamed.assistant = true;
      return [this.#text('assistant', signal.text, signal.runId)];
    }
    if (signal.type === 'reasoning-delta') {
      this.#streamed.reasoning = true;
      return [this.#text('reasoning', signal.text, signal.runId)];
    }
    return signal.type === 'reset' ? this.#reset(signal.runId) : [];
  }

  entry(entry: LogEntry): SessionUpdate[] {
    this.#spend(entry);
    const updates = this.#shown(entry);
    return entry.type === 'model-reply' ? [...updates, ...this.usage()] : updates;
  }

  #shown(entry: LogEntry): SessionUpdate[] {
    switch (entry.type) {
      case 'agent-output':
        return this.#item(entry);
      case 'model-reply':
        this.#endReply();
        this.#lastReply = entry;
        return [];
      case 'tool-started':
        return this.#changed(entry, 'in_progress');
      case 'tool-suspended':
        return this.#changed(entry, 'pending');
      case 'tool-result':
        return this.#result(entry);
      case 'renamed':
        return [{ sessionUpdate: 'session_info_update', title: printableLine(entry.title) }];
      default:
        return this.#notice(entry);
    }
  }

  /** The same for an entry of the past, with the messages of the person. */
  replayed(entry: LogEntry): SessionUpdate[] {
    if (entry.type === 'user-message') return this.#userParts(entry.content);
    if (entry.type !== 'history') return this.#shown(entry);
    return entry.messages.flatMap(({ role, content }) => {
      if (role === 'tool') return [];
      if (role === 'user') return this.#userParts(content);
      return content.flatMap((part) => (part.type === 'text' ? [this.#text('assistant', part.text, 'history')] : []));
    });
  }

  /** The used part of the context after the last reply, and the cost of the session. Empty if both are unknown. */
  usage(): SessionUpdate[] {
    const { contextWindow: size } = this.#options;
    if (size === undefined || !this.#lastReply) return [];
    const { inputTokens, outputTokens } = this.#lastReply.usage;
    const { costUsd } = this.#spent;
    const cost = costUsd === null ? {} : { cost: { amount: costUsd, currency: 'USD' } };
    return [{ sessionUpdate: 'usage_update', used: inputTokens + outputTokens, size, ...cost }];
  }

  /** A note for the person: a notice where the editor shows notices, else a thought. */
  note(text: string): SessionUpdate {
    if (this.#options.notices) return { sessionUpdate: 'notice', severity: 'warning', title: printableLine(text) };
    this.#notes += 1;
    return chunk('agent_thought_chunk', { type: 'text', text: printableLine(text) }, `note/${this.#notes}`);
  }

  #spend(entry: LogEntry): void {
    const used = usageOf(entry);
    if (used) this.#spent = addUsage(this.#spent, used);
  }

  /** The first part is the text that the person typed. An attached file is named: the editor has shown its content before. */
  #userParts(content: readonly StoredPart[]): SessionUpdate[] {
    return content.map((part, index) => this.#userPart(part, index > 0));
  }

  #userPart(part: StoredPart, isAttached: boolean): SessionUpdate {
    this.#messages += 1;
    const id = `user/${this.#messages}`;
    if (part.type === 'image' && isEncodedImage(part.data)) {
      return chunk('user_message_chunk', { type: 'image', mimeType: part.mediaType, data: part.data }, id);
    }
    if (part.type !== 'text') return chunk('user_message_chunk', { type: 'text', text: `[${part.mediaType}]` }, id);
    const text = isAttached ? part.text.replace(/^(\[attached [^\n]*\])\n[\s\S]*$/, '$1') : part.text;
    return chunk('user_message_chunk', { type: 'text', text }, id);
  }

  #text(kind: 'assistant' | 'reasoning', text: string, runId: string | null): SessionUpdate {
    const sessionUpdate = kind === 'assistant' ? 'agent_message_chunk' : 'agent_thought_chunk';
    return chunk(sessionUpdate, { type: 'text', text }, `${runId}/${this.#messages}/${kind}`);
  }

  /** The protocol cannot take text back. Another attempt may follow, or the end of a request that was cancelled or failed. */
  #reset(runId: string): SessionUpdate[] {
    const wasShown = this.#streamed.assistant || this.#streamed.reasoning;
    const note = this.#text('assistant', '\n\n*The reply broke off: what was shown of it does not count.*\n\n', runId);
    this.#endReply();
    return wasShown ? [note] : [];
  }

  #endReply(): void {
    this.#streamed = { assistant: false, reasoning: false };
    this.#messages += 1;
  }

  #item({ item, runId }: Of<'agent-output'>): SessionUpdate[] {
    if (item.type !== 'tool-call') return this.#streamed[item.type] ? [] : [this.#text(item.type, item.text, runId)];
    const shown = shownCall(this.#keepCall(item), this.#options.cwd);
    return [{ sessionUpdate: 'tool_call', toolCallId: item.callId, status: 'pending', ...shown }];
  }

  #keepCall({ callId, name, args, argsText, group }: Extract<AgentItem, { type: 'tool-call' }>): ShownToolCall {
    const call = { name, args: argsText ?? args, group };
    this.#calls.set(callId, call);
    return call;
  }

  /** Somebody may have changed the arguments. */
  #changed(
    { callId, args }: Of<'tool-started' | 'tool-suspended'>,
    status: 'in_progress' | 'pending',
  ): SessionUpdate[] {
    const call = this.#calls.get(callId);
    const changed = call && args !== undefined ? { ...call, args } : undefined;
    if (changed) this.#calls.set(callId, changed);
    const shown = changed && shownCall(changed, this.#options.cwd);
    return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, status, ...shown }];
  }

  #progress(toolCallId: string, update: Json): SessionUpdate[] {
    const last = typeof update === 'object' && update !== null && 'lastLine' in update ? update.lastLine : undefined;
    if (typeof last !== 'string' || last.trim() === '') return [];
    return [{ sessionUpdate: 'tool_call_update', toolCallId, content: [textContent(printableLine(last.trim()))] }];
  }

  #result(entry: Of<'tool-result'>): SessionUpdate[] {
    const call = this.#calls.get(entry.callId);
    const isFine = entry.outcome === 'succeeded';
    const { outcome, code } = entry;
    const update: SessionUpdate = {
      sessionUpdate: 'tool_call_update',
      toolCallId: entry.callId,
      status: isFine ? 'completed' : 'failed',
      content: resultContent(call, entry, this.#options.cwd),
      ...(!isFine && { rawOutput: { outcome, ...(code !== undefined && { code }) } }),
    };
    const plan = isFine && call ? planOf(call) : undefined;
    return plan ? [update, { sessionUpdate: 'plan', entries: plan }] : [update];
  }

  #notice(entry: LogEntry): SessionUpdate[] {
    const line = this.#options.notices ? terminalLine(entry) : undefined;
    if (!line) return [];
    return [
      {
        sessionUpdate: 'notice',
        severity: line.style === 'yellow' ? 'warning' : 'info',
        title: printableLine(line.text),
      },
    ];
  }
}
