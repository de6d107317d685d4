/** Joins live signals of streamed text. Rule: a client that adds up the text of deltas receives the same text. */
import type { Live } from '../../live.ts';

const isSamePath = (a: readonly string[] = [], b: readonly string[] = []): boolean =>
  a.length === b.length && a.every((callId, index) => callId === b[index]);

/** One signal in place of two that follow each other; undefined where they cannot be joined. */
export function joinedSignal(first: Live, second: Live): Live | undefined {
  if (!('text' in first && 'text' in second) || first.type !== second.type || first.runId !== second.runId)
    return undefined;
  if (first.type === 'tool-input-delta' && second.type === 'tool-input-delta') {
    if (first.index !== second.index) return undefined;
    if (second.name !== undefined && second.name !== first.name) return undefined;
    if (second.callId !== undefined && second.callId !== first.callId) return undefined;
  }
  if (!isSamePath(first.path, second.path)) return undefined;
  return { ...first, text: first.text + second.text };
}
