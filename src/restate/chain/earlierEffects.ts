/**
 * Effects that run again before another one, because only another process has executed them: phases of plugins before a model call, which
 * change its request, and the gate before a tool, which prepares the call. Invariant: their answers are ignored, because the recorded
 * ones count.
 */
import type { EffectRequest } from '../../../machines/internal.ts';

/** These use the request that phases and plugins after tools have changed. */
const ASKS_MODEL: ReadonlySet<EffectRequest['kind']> = new Set(['model', 'context', 'summary']);

export class EarlierEffects {
  /** Executed by another process since the last reply, in order. */
  #effects: EffectRequest[] = [];
  /** The effect after each earlier effect that runs, by its id. */
  readonly #next = new Map<string, EffectRequest>();

  add(request: EffectRequest): void {
    if (request.kind === 'phase' || request.kind === 'afterTool' || request.kind === 'gate')
      this.#effects.push(request);
  }

  /** The next request begins anew. */
  forget(): void {
    this.#effects = [];
  }

  /** The effect that begins first: the request itself, or an earlier effect, after which `after` returns the next one. */
  before(request: EffectRequest): EffectRequest {
    const needed = this.#effects.filter((effect) =>
      effect.kind === 'gate'
        ? request.kind === 'tool' && request.callId === effect.callId
        : ASKS_MODEL.has(request.kind),
    );
    this.#effects = this.#effects.filter((effect) => !needed.includes(effect));
    // Under the id of the request, so that they end with it.
    const chain = [...needed.map((effect, index) => ({ ...effect, id: `${request.id}/again-${index}` })), request];
    for (const [index, link] of chain.entries()) {
      const next = chain[index + 1];
      if (next) this.#next.set(link.id, next);
    }
    return chain[0] ?? request;
  }

  /** The effect after the earlier effect of this id. Undefined for another effect. */
  after(id: string): EffectRequest | undefined {
    const next = this.#next.get(id);
    this.#next.delete(id);
    return next;
  }
}
