/**
 * Which old results make room in the context window (agent-loop-contract, `prune_old_tool_outputs`). Rule: the newest
 * results stay, and nothing is taken where little would be won.
 */
import { CHARACTERS_A_TOKEN, sizeOfContent } from './messageSize.ts';
import { PRUNED_RESULT } from './shownText.ts';
import type { Message } from './vocabulary.ts';

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
