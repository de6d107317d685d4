/**
 * How large messages are, in characters. Rule: each message is measured once, and only when somebody asks; a running
 * sum, never a second look at all of them.
 */
import type { Message, StoredPart, ToolCall } from './vocabulary.ts';

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
