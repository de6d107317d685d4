/**
 * The token counts of a reply, from its start and its end. Invariant: later counts replace earlier ones, because they
 * are totals. Input includes the tokens that were read from the cache and written to it.
 */
import type { Usage } from '../../../machines/vocabulary.ts';
import { isRecord, tokenCount } from '../wire/wireJson.ts';

const FIELDS = ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'] as const;

export class MessageUsage {
  readonly #counts = new Map<string, number>();

  add(usage: unknown): void {
    if (!isRecord(usage)) return;
    for (const field of FIELDS) this.#set(field, usage[field]);
    if (isRecord(usage.output_tokens_details))
      this.#set('thinking_tokens', usage.output_tokens_details.thinking_tokens);
  }

  /** Undefined if the server sent no count. */
  total(): Partial<Usage> | undefined {
    if (this.#counts.size === 0) return undefined;
    const input = this.#counts.get('input_tokens');
    const output = this.#counts.get('output_tokens');
    const cachedInputTokens = this.#counts.get('cache_read_input_tokens') ?? 0;
    const cacheWriteTokens = this.#counts.get('cache_creation_input_tokens') ?? 0;
    return {
      ...(input !== undefined && { inputTokens: input + cachedInputTokens + cacheWriteTokens }),
      ...(output !== undefined && { outputTokens: output }),
      cachedInputTokens,
      cacheWriteTokens,
      reasoningTokens: this.#counts.get('thinking_tokens') ?? 0,
    };
  }

  #set(field: string, value: unknown): void {
    const count = tokenCount(value);
    if (count !== undefined) this.#counts.set(field, count);
  }
}
