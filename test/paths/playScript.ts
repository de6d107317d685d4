/**
 * Plays a script against a chart with its real children. Invariant: a move answers an open request, or is an event from
 * outside. After the script or its cut, the plainest answers follow until nothing is open.
 */
import type { AnyStateMachine } from 'xstate';
import type { EffectRequest, EffectValue, ModelValue, RoundCall } from '../../machines/index.ts';
import type { Report } from '../../machines/ports.ts';
import { DrivenChart, type DrivenChartOptions } from '../../src/testing/chartPaths/drivenChart.ts';

/** An answer by kind, and by call if there are several, or an event. */
export type Move =
  | readonly [kind: Exclude<EffectRequest['kind'], 'timer' | Report['kind']>, value: EffectValue, callId?: string]
  | readonly ['ring', id: string]
  | readonly ['event', event: { type: string }];

const noUsage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
const call = (callId: string, gated: boolean): RoundCall => ({
  callId,
  name: 'write',
  gated,
  readOnly: false,
  fingerprint: callId,
});
/**
 * Returns a reply with these calls. A capital letter means a call that needs approval. Without calls it ends the turn.
 */
export function reply(calls = ''): ModelValue {
  const made = [...calls].map((name) => call(name.toLowerCase(), name !== name.toLowerCase()));
  return {
    kind: 'reply',
    items: [
      { type: 'assistant', text: 'hello' },
      ...made.map(({ callId, name }) => ({ type: 'tool-call' as const, callId, name, args: {} })),
    ],
    calls: made,
    finish: made.length > 0 ? 'tool-calls' : 'stop',
    empty: false,
    usage: noUsage,
    costUsd: 0,
    model: 'm',
  };
}
const content = [{ type: 'text' as const, text: 'done' }];
export const succeeded: EffectValue = { kind: 'succeeded', content };
export const pending: EffectValue = { kind: 'pending', reason: 'form' };
export const suspend: EffectValue = { kind: 'suspend', reason: 'permission' };
export const allow: EffectValue = { kind: 'allow' };
export const committed: EffectValue = { kind: 'committed' };
export const decision = (callId: string, action: 'approve' | 'deny' = 'approve', suspension = 1) => ({
  callId,
  suspension,
  decision: { callId, action },
});

/** The plainest answer to each kind of request. */
const PLAIN: Record<Exclude<EffectRequest['kind'], 'timer' | Report['kind']>, EffectValue> = {
  commit: committed,
  context: { kind: 'context', used: 0, limit: 100, warned: false },
  phase: { kind: 'done' },
  model: reply(),
  summary: { kind: 'summary', text: 'before', usage: noUsage, costUsd: 0, model: 'm' },
  gate: allow,
  tool: succeeded,
  afterTool: { kind: 'shown', content },
};
const STEPS_MAX = 60;

export class Play {
  readonly ride: DrivenChart;

  constructor(
    machine: AnyStateMachine,
    input: unknown,
    options: Pick<DrivenChartOptions, 'inspect' | 'interpreter'> = {},
  ) {
    this.ride = new DrivenChart(machine, { input, children: 'real', ...options });
  }

  move(move: Move): void {
    if (move[0] === 'event') return this.ride.deliver(move[1]);
    if (move[0] === 'ring') return this.ride.deliver({ type: 'timer.elapsed', id: move[1] } as never);
    const [kind, value, callId] = move;
    const wanted = (request: EffectRequest): boolean =>
      request.kind === kind && (callId === undefined || ('callId' in request && request.callId === callId));
    const request = [...this.ride.journal.open.values()].find(wanted);
    if (!request) throw new Error(`no ${kind} ${callId ?? ''} is open; open are: ${this.open.join(', ')}`);
    this.#answer(request, value);
  }

  get open(): string[] {
    return [...this.ride.journal.open.keys()];
  }

  /** Answers open requests, oldest first, until only timers are open. */
  finish(): void {
    for (let step = 0; step < STEPS_MAX; step++) {
      const request = [...this.ride.journal.open.values()].find(({ kind }) => kind !== 'timer');
      if (!request || request.kind === 'timer' || request.kind === 'ended' || request.kind === 'answer') return;
      this.#answer(request, PLAIN[request.kind]);
    }
    throw new Error(`not at rest after ${STEPS_MAX} more answers; open are: ${this.open.join(', ')}`);
  }

  #answer({ id }: EffectRequest, value: EffectValue): void {
    this.ride.deliver({ type: 'effect.done', id, value } as never);
  }
}
