/**
 * Turns, tokens and cost of model calls, for a run and for the cycles of a stored log. Invariant: a sum with an
 * unknown price is unknown. The tokens of a cycle are the sum over its rounds. Its cost is the sum over the replies of
 * all its runs.
 */
import type { RuntimeEntry } from '../../machines/internal.ts';
import type { RequestCycle } from '../projector/index.ts';

type Reply = Extract<RuntimeEntry, { type: 'model-reply' }>;

export interface Tally {
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Null if a price is unknown. */
  readonly costUsd: number | null;
}

export const emptyTally: Tally = { turns: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 };

export const withReply = (tally: Tally, { usage, costUsd }: Reply): Tally => ({
  turns: tally.turns + 1,
  inputTokens: tally.inputTokens + usage.inputTokens,
  outputTokens: tally.outputTokens + usage.outputTokens,
  costUsd: tally.costUsd === null || costUsd === null ? null : tally.costUsd + costUsd,
});

export const count = (number: number, noun: string): string =>
  `${number.toLocaleString('en-US')} ${noun}${number === 1 ? '' : 's'}`;

export const costText = ({ costUsd }: Tally): string =>
  costUsd === null ? 'cost unknown' : costUsd === 0 ? '$0' : `$${costUsd.toFixed(costUsd < 0.01 ? 6 : 4)}`;

export const tallyText = (tally: Tally): string => {
  const tokens = `${tally.inputTokens.toLocaleString('en-US')} tokens in, ${tally.outputTokens.toLocaleString('en-US')} out`;
  return `${count(tally.turns, 'turn')} · ${tokens} · ${costText(tally)}`;
};

export class ReplaySpending {
  /** The request message of each run. */
  readonly #rootOf = new Map<string, string>();
  /** The cost for each request message. */
  readonly #costOf = new Map<string, number | null>();

  /** Accepts any value of a log, in order. */
  addEntry(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    const { type, runId, messageId, kind, of, usage, costUsd } = value as Record<string, unknown>;
    if (typeof runId !== 'string') return;
    if (type === 'user-message' && kind !== 'steer' && typeof messageId === 'string') {
      this.#rootOf.set(runId, messageId);
    } else if (type === 'run-resumed' && typeof of === 'string') {
      const root = this.#rootOf.get(of);
      if (root !== undefined) this.#rootOf.set(runId, root);
    } else if (type === 'model-reply' || (type === 'compaction' && (usage !== undefined || costUsd !== undefined))) {
      this.#add(this.#rootOf.get(runId), costUsd);
    }
  }

  /** Returns the tally of a cycle, or undefined if no reply has usage. */
  tallyOf({ root, rounds }: RequestCycle): Tally | undefined {
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

export const sumOfTallies = (tallies: readonly Tally[]): Tally =>
  tallies.reduce(
    (sum, tally) => ({
      turns: sum.turns + tally.turns,
      inputTokens: sum.inputTokens + tally.inputTokens,
      outputTokens: sum.outputTokens + tally.outputTokens,
      costUsd: sum.costUsd === null || tally.costUsd === null ? null : sum.costUsd + tally.costUsd,
    }),
    emptyTally,
  );
