/**
 * The context window of the model under test, and messages that fill it. Invariant: the library's own functions compute
 * the fill level and the summarizable messages, for the real agent and for the charts.
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

/** The parts of a request besides its messages. */
export type Frame = Pick<ModelRequest, 'system' | 'tools'>;

export const CONTEXT_WINDOW = WINDOW_CHARACTERS / CHARACTERS_A_TOKEN;
export const REPLY_TOKENS = 1_000;

/**
 * Returns two shares of the window for a first message: one makes a summary due after the next reply, one leaves no
 * room. A share that the policy `context` ignores is omitted.
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

/** Returns how full the window is with these messages. `wanted`: a plugin requests a summary now. */
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
