/**
 * The context window of the model under test, and messages that fill it. Rule: how full it is, and what can be summed up, is
 * the library's own calculation, for the agent that runs and for the charts alike.
 */
import {
  CHARACTERS_A_TOKEN,
  type ContextValue,
  type EffectRequest,
  type LogEntry,
  type LogState,
  type Settings,
  type Transcript,
} from '../../../machines/internal.ts';
import type { ModelRequest } from '../../models/model.ts';
import { contextUse } from '../../runtime/contextWindow.ts';
import { WINDOW_CHARACTERS } from '../../scripts/moves.ts';

/** What a request sends besides the messages. */
export type Frame = Pick<ModelRequest, 'system' | 'tools'>;

export const CONTEXT_WINDOW = WINDOW_CHARACTERS / CHARACTERS_A_TOKEN;
export const REPLY_TOKENS = 1_000;

/**
 * Shares of the window that a first message takes: one after which the next reply makes a summary due, and one that leaves no
 * room at all. A share that the policy `context` does not act on is left out.
 */
export function sharesToFill({ context = {} }: Settings, { system, tools }: Frame): number[] {
  const { compact, exhaust } = context;
  const beside = (system.length + JSON.stringify(tools).length) / CHARACTERS_A_TOKEN + REPLY_TOKENS;
  const shares: number[] = [];
  if (compact !== undefined && compact < (exhaust ?? 1)) {
    const middle = (compact + Math.min(exhaust ?? 1, 1)) / 2 - beside / CONTEXT_WINDOW;
    const share = Number(middle.toFixed(3));
    if (share > 0) shares.push(share);
  }
  return exhaust === undefined ? shares : [...shares, 1];
}

/** How full the window is with these messages; `wanted`: a plugin wants a summary now. */
export function predictedUse(
  request: Extract<EffectRequest, { kind: 'context' }>,
  {
    frame,
    wanted,
    ...scope
  }: { frame: Frame; transcript: Transcript; entries: readonly LogEntry[]; logState: LogState; wanted: boolean },
): ContextValue {
  const next = { window: CONTEXT_WINDOW, frame: () => ({ ...frame, maxOutputTokens: REPLY_TOKENS }) };
  return contextUse(request, { ...scope, next, ...(wanted && { compact: true as const }) });
}
