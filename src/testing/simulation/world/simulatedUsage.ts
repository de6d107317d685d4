/** The tokens that the simulated models report, and their prices. Invariant: all replies report different counts. */
import type { Usage } from '../../../../machines/internal.ts';
import type { Prices } from '../../../models/model.ts';

export const PRICES: Prices = { input: 3, output: 15, cachedInput: 0.3, cacheWrite: 3.75 };
export type TokenCounts = Pick<Usage, 'inputTokens' | 'outputTokens' | 'cachedInputTokens' | 'cacheWriteTokens'>;

/** Returns the usage of the reply with this number. */
export const usageOf = (number: number): TokenCounts => ({
  inputTokens: 100,
  outputTokens: 20 + number,
  cachedInputTokens: number % 40,
  cacheWriteTokens: number % 7,
});
