/**
 * What the cycles of a stored log took. Rule: tokens are what the rounds say; money is what the records of the replies
 * say, of every run that worked on the cycle, and is unknown as soon as one of them leaves it open.
 */
import type { RequestCycle } from '../projector/index.ts';
import { nothingSpent, type Tally } from './tally.ts';

export class Spending {
  /** A run to the message it works on. */
  readonly #rootOf = new Map<string, string>();
  /** By that message. */
  readonly #costOf = new Map<string, number | null>();

  /** Takes anything a log may hold, in order. */
  take(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    const { type, runId, messageId, kind, of, costUsd } = value as Record<string, unknown>;
    if (typeof runId !== 'string') return;
    if (type === 'user-message' && kind !== 'steer' && typeof messageId === 'string') {
      this.#rootOf.set(runId, messageId);
    } else if (type === 'run-resumed' && typeof of === 'string') {
      const root = this.#rootOf.get(of);
      if (root !== undefined) this.#rootOf.set(runId, root);
    } else if (type === 'model-reply') {
      this.#add(this.#rootOf.get(runId), costUsd);
    }
  }

  /** Undefined where no reply says what it took. */
  of({ root, rounds }: RequestCycle): Tally | undefined {
    const usages = rounds.flatMap(({ usage }) => (usage === undefined ? [] : [usage]));
    if (usages.length === 0) return undefined;
    return {
      turns: usages.length,
      inputTokens: usages.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
      outputTokens: usages.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
      costUsd: this.#costOf.get(root.messageId) ?? null,
    };
  }

  #add(root: string | undefined, costUsd: unknown): void {
    if (root === undefined) return;
    const before = this.#costOf.get(root);
    const isPrice = typeof costUsd === 'number' && Number.isFinite(costUsd);
    this.#costOf.set(root, before === null || !isPrice ? null : (before ?? 0) + costUsd);
  }
}

export const together = (tallies: readonly Tally[]): Tally =>
  tallies.reduce(
    (sum, tally) => ({
      turns: sum.turns + tally.turns,
      inputTokens: sum.inputTokens + tally.inputTokens,
      outputTokens: sum.outputTokens + tally.outputTokens,
      costUsd: sum.costUsd === null || tally.costUsd === null ? null : sum.costUsd + tally.costUsd,
    }),
    nothingSpent,
  );
