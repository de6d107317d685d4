/**
 * How full the context window is with the next request. Rule: a model's own count is taken where it is larger than the
 * estimate, and the cost of a look does not grow with the conversation until there is something to prune.
 */
import {
  CHARACTERS_A_TOKEN,
  type ContextValue,
  type Knowledge,
  shareOf,
  type Transcript,
} from '../machines/internal.ts';
import type { ToolSpec } from './models/model.ts';
import type { NextRequest } from './request.ts';

/** Tokens kept free for the reply, unless the model replies with less. */
const RESERVE = 16_384;

/** Characters of tool lists; an agent's own is always the same one. */
const measured = new WeakMap<readonly ToolSpec[], number>();
function sizeOfTools(tools: readonly ToolSpec[]): number {
  if (tools.length === 0) return 0;
  const size = measured.get(tools) ?? JSON.stringify(tools).length;
  measured.set(tools, size);
  return size;
}

export function contextUse(
  { pruneAbove = Number.POSITIVE_INFINITY }: { pruneAbove?: number },
  { next, transcript, known }: { next: NextRequest; transcript: Transcript; known: Knowledge },
): ContextValue {
  const limit = next.window;
  const { system, tools, maxOutputTokens = RESERVE } = next.frame();
  const { characters, reported } = transcript.size();
  const estimate = (characters + system.length + sizeOfTools(tools)) / CHARACTERS_A_TOKEN;
  const held = Math.max(reported, estimate) + Math.min(RESERVE, maxOutputTokens);
  const value: ContextValue = { kind: 'context', used: Math.ceil(held), limit, warned: known.warned };
  const prunable = shareOf(value) > pruneAbove ? transcript.prunable() : undefined;
  if (!prunable) return value;
  const { callIds, tokens } = prunable;
  return { ...value, prunable: { callIds, used: Math.ceil(held - tokens) } };
}
