/**
 * The answers of a script's moves to the charts: replies of the model, ends of tools, decisions. Invariant: each value
 * equals the one that the runtime delivers for the same move.
 */
import type { EffectValue, Json, Settings } from '../../../../machines/internal.ts';
import type { Command } from '../../../runtime/commands.ts';
import type { MoveOf } from '../../../scripts/moves.ts';
import type { Behaviour } from './callBehaviour.ts';

const noUsage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
const MODEL = 'scripted';

export const SUMMARY: EffectValue = { kind: 'summary', text: 'so far', usage: noUsage, costUsd: 0, model: MODEL };

interface Reply {
  readonly made: readonly Behaviour[];
  /** The number of calls before this reply. */
  readonly from: number;
  /** A schema validates final answers. */
  readonly judged: boolean;
}

/** Returns the text of a reply, as the model under test sends it. */
export const textOf = ({ text, calls = [] }: MoveOf<'reply'>): string => text ?? (calls.length > 0 ? '' : 'done');

export function replyValue(move: MoveOf<'reply'>, { made, from, judged }: Reply): EffectValue {
  const words = textOf(move);
  const idAt = (index: number): string => `call${from + index + 1}`;
  return {
    kind: 'reply',
    items: [
      ...(words === '' ? [] : [{ type: 'assistant' as const, text: words }]),
      ...made.map(({ tool, args }, at) => ({ type: 'tool-call' as const, callId: idAt(at), name: tool, args })),
    ],
    calls: made.map(({ call }, index) => ({ ...call, callId: idAt(index) })),
    finish: move.finish ?? (made.length > 0 ? 'tool-calls' : 'stop'),
    empty: words.trim() === '' && made.length === 0,
    ...(judged && { judged: true as const }),
    ...{ usage: noUsage, costUsd: 0, model: MODEL },
  };
}

export function failureValue({ retryable }: MoveOf<'modelFails'>): EffectValue {
  const code = retryable ? 'server' : 'auth';
  return { kind: 'failed', code, message: 'made', retryable, random: 0.5, model: MODEL };
}

/** Returns the end of a tool that the script determines. */
export function madeUpEnd(
  made: 'fail' | 'timeOut',
  { policies }: Settings,
  { idempotent }: { readonly idempotent: boolean },
): EffectValue {
  const content = [{ type: 'text' as const, text: 'made' }];
  const isRepeated = policies.toolRetry !== false && (made === 'fail' || idempotent);
  const code = made === 'fail' ? 'error' : 'timeout';
  return { kind: 'erred', content, code, ...(isRepeated && { retry: { random: 0.5 } }) };
}

type Proposal = Extract<Command, { type: 'decision.proposed' }>['decision'];

/** `within`: a decision within a call answers the call itself. */
export function decisionOf(
  { call, action, args, payload }: MoveOf<'decide'>,
  { suspension, own, within }: { suspension: number; own: Json; within: boolean },
): Proposal {
  const base = { callId: `call${call}`, suspension, by: 'script' };
  if (within || action === 'answer') return { ...base, action: 'answer', payload: payload ?? 'answer' };
  return action === 'edit' ? { ...base, action, args: args ?? own } : { ...base, action };
}

export function settlementOf({ how, result }: MoveOf<'settle'>) {
  const settlements = {
    ran: { ran: result ?? 'done' },
    didNotRun: { didNotRun: true },
    retry: { retry: true },
  } as const;
  return settlements[how];
}
