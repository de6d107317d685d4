/**
 * The words servers use for why a reply ended. Rule: letter case does not count, and a word in neither list is
 * undefined: the reply did end, but the reason is not known.
 */
import type { FinishReason } from '../../machines/vocabulary.ts';

const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['stop', 'stop'],
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['eos', 'stop'],
  ['eos_token', 'stop'],
  ['tool_calls', 'tool-calls'],
  ['tool_use', 'tool-calls'],
  ['function_call', 'tool-calls'],
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['content_filter', 'content-filter'],
  ['safety', 'content-filter'],
  ['recitation', 'content-filter'],
  ['pause_turn', 'pause'],
]);
/** By these a server says that it failed. */
const FAILURES: ReadonlySet<string> = new Set(['error', 'insufficient_system_resource']);

export function finishReason(word: string): FinishReason | 'failed' | undefined {
  const said = word.toLowerCase();
  return FAILURES.has(said) ? 'failed' : REASONS.get(said);
}
