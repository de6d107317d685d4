/**
 * How large the messages are, which old results make room (agent-loop-contract, `prune_old_tool_outputs`), and what the
 * log says of the context window. Rule: each message is measured once, and only when somebody asks; the newest results
 * stay, and nothing is taken where little would be won.
 */
import type { LogEntry, Message, StoredPart, ToolCall } from '../vocabulary.ts';
import { PRUNED_RESULT } from './texts.ts';

/** Where nothing better is known, so many characters are a token. */
export const CHARACTERS_A_TOKEN = 4;

/** What an image takes at most with the providers that say so, about 1,600 tokens; its data tells nothing of it. */
const IMAGE = 1_600 * CHARACTERS_A_TOKEN;

const sizeOfCall = ({ callId, name, args, argsText }: ToolCall): number =>
  callId.length + name.length + (argsText ?? JSON.stringify(args)).length;

export const sizeOfContent = (content: readonly StoredPart[]): number =>
  content.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : IMAGE), 0);

export function sizeOf(message: Message): number {
  const size = sizeOfContent(message.content);
  if (message.role === 'user') return size;
  if (message.role === 'tool') return size + message.callId.length;
  return message.toolCalls.reduce((sum, call) => sum + sizeOfCall(call), size);
}

export class MessageSizes {
  #sizes: number[] = [];
  #sum = 0;

  /** Characters of all `messages`; those measured before are not looked at again. */
  sumOf(messages: readonly Message[]): number {
    for (const message of messages.slice(this.#sizes.length)) {
      const size = sizeOf(message);
      this.#sizes.push(size);
      this.#sum += size;
    }
    return this.#sum;
  }

  /** The message at `index` is another one now. */
  replaced(index: number, message: Message): void {
    const before = this.#sizes[index];
    if (before === undefined) return;
    const size = sizeOf(message);
    this.#sizes[index] = size;
    this.#sum += size - before;
  }

  /** Messages moved: they are measured anew. */
  forget(): void {
    this.#sizes = [];
    this.#sum = 0;
  }
}

/** The newest results up to here are kept, and so much at least must be saved; in characters. */
const KEPT = 40_000 * CHARACTERS_A_TOKEN;

const SAVED_LEAST = 20_000 * CHARACTERS_A_TOKEN;

export interface Prunable {
  /** In the order of the messages. */
  callIds: string[];
  tokens: number;
}

/** `mayGo` says of a call whether its result has been seen. */
export function prunableIn(messages: readonly Message[], mayGo: (callId: string) => boolean): Prunable | undefined {
  const callIds: string[] = [];
  let held = 0;
  let saved = 0;
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index];
    if (message?.role !== 'tool') continue;
    const size = sizeOfContent(message.content);
    held += size;
    if (held <= KEPT || size <= PRUNED_RESULT.length || !mayGo(message.callId)) continue;
    callIds.push(message.callId);
    saved += size - PRUNED_RESULT.length;
  }
  return saved < SAVED_LEAST ? undefined : { callIds: callIds.reverse(), tokens: saved / CHARACTERS_A_TOKEN };
}

/** An `extension` entry: its results are not shown to the model any more. Value: `{ callIds }`. */
export const PRUNED = 'runchart.pruned';

/** An `extension` entry: use has fallen below the warning again. Value: `{ used, limit }`. */
export const EASED = 'runchart.context-eased';

/** The share of the window that is used; a window without room is full. */
export const shareOf = ({ used, limit }: { used: number; limit: number }): number => (limit > 0 ? used / limit : 1);

/** The calls whose results an entry takes out of the model's sight. */
export function prunedBy(entry: LogEntry): string[] {
  if (entry.type !== 'extension' || entry.name !== PRUNED) return [];
  const { value } = entry;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  const { callIds } = value;
  return Array.isArray(callIds) ? callIds.filter((id) => typeof id === 'string') : [];
}

/** Whether a warning stands behind this entry; undefined where the entry does not say. */
export function warnedBy(entry: LogEntry): boolean | undefined {
  if (entry.type === 'context-warning') return true;
  return entry.type === 'extension' && entry.name === EASED ? false : undefined;
}
