/** What model calls took: turns, tokens, money. Rule: a sum with an unknown price in it is unknown, and says so. */
import type { RuntimeEntry } from '../../machines/index.ts';

type Reply = Extract<RuntimeEntry, { type: 'model-reply' }>;

export interface Tally {
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Null where a price is unknown. */
  readonly costUsd: number | null;
}

export const nothingSpent: Tally = { turns: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 };

export const withReply = (tally: Tally, { usage, costUsd }: Reply): Tally => ({
  turns: tally.turns + 1,
  inputTokens: tally.inputTokens + usage.inputTokens,
  outputTokens: tally.outputTokens + usage.outputTokens,
  costUsd: tally.costUsd === null || costUsd === null ? null : tally.costUsd + costUsd,
});

export const count = (number: number, noun: string): string =>
  `${number.toLocaleString('en-US')} ${noun}${number === 1 ? '' : 's'}`;

export const costText = ({ costUsd }: Tally): string =>
  costUsd === null ? 'cost unknown' : `$${costUsd.toFixed(costUsd < 0.01 ? 6 : 4)}`;

export const tallyText = (tally: Tally): string => {
  const tokens = `${tally.inputTokens.toLocaleString('en-US')} tokens in, ${tally.outputTokens.toLocaleString('en-US')} out`;
  return `${count(tally.turns, 'turn')} · ${tokens} · ${costText(tally)}`;
};
