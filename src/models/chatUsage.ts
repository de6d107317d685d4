/**
 * Token counts of a chat completion. Rule: input includes the cached tokens; a count that is missing or no number
 * of tokens is 0 for the details and absent for input and output.
 */
import type { Usage } from '../../machines/vocabulary.ts';
import { isRecord } from './wireJson.ts';

export function readUsage(value: unknown): Partial<Usage> | undefined {
  if (!isRecord(value)) return undefined;
  const prompt = isRecord(value.prompt_tokens_details) ? value.prompt_tokens_details : {};
  const completion = isRecord(value.completion_tokens_details) ? value.completion_tokens_details : {};
  const inputTokens = tokens(value.prompt_tokens);
  const outputTokens = tokens(value.completion_tokens);
  return {
    ...(inputTokens === undefined ? {} : { inputTokens }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    cachedInputTokens: tokens(prompt.cached_tokens) ?? tokens(value.prompt_cache_hit_tokens) ?? 0,
    cacheWriteTokens: tokens(prompt.cache_write_tokens) ?? tokens(value.cache_creation_input_tokens) ?? 0,
    reasoningTokens: tokens(completion.reasoning_tokens) ?? 0,
  };
}

const tokens = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.trunc(value) : undefined;
