/** A change of a sub-agent, for the charts that hear of one: it ended, and what it used is counted in. */
import type { SubAgentChange } from './spending.ts';

export const subAgentEnds: SubAgentChange = {
  type: 'sub-agent.changed',
  callId: 'a',
  conversationId: 'child',
  phase: 'ended',
  spent: {
    usage: { inputTokens: 2, outputTokens: 1, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
    costUsd: 0.5,
    upTo: 9,
  },
};
