/** Cases of LLM_CALL: one attempt or several, with and without a fallback, with every kind of failure. */

import type { ModelCallContext, ModelCallInput } from '../modelCall.machine.ts';
import { defaultPolicies } from '../policies.ts';
import type { ModelValue } from '../ports.ts';
import type { Cases } from './cases.ts';

const retry = { ...defaultPolicies.modelRetry, attempts: 2 };
const plain: ModelCallInput = { runId: 'r', turn: 1, models: ['m'], retry };

const inputs: readonly ModelCallInput[] = [
  { ...plain, retry: { ...retry, attempts: 1 } },
  plain,
  { ...plain, models: ['m', 'n'] },
  { ...plain, models: ['m', 'n'], retry: { ...retry, respectRetryAfter: false } },
  { ...plain, models: ['m', 'n', 'o'], retry: { ...retry, attempts: 1 } },
];

export const noUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};
export const textReply: Extract<ModelValue, { kind: 'reply' }> = {
  kind: 'reply',
  items: [{ type: 'assistant', text: 'hello' }],
  calls: [],
  finish: 'stop',
  empty: false,
  usage: noUsage,
  costUsd: 0,
  model: 'm',
};
export const failedAttempt: Extract<ModelValue, { kind: 'failed' }> = {
  kind: 'failed',
  code: 'network',
  message: 'connection lost',
  retryable: true,
  random: 0.5,
  model: 'm',
};
const values: readonly ModelValue[] = [
  textReply,
  failedAttempt,
  { ...failedAttempt, code: 'auth', retryable: false },
  { ...failedAttempt, nextModel: 2 },
  { ...failedAttempt, code: 'rate-limit', retryAfterMs: 2000 },
  { ...failedAttempt, code: 'rate-limit', retryAfterMs: retry.maxRetryAfterMs + 1 },
];

export const modelCallCases = {
  inputs,
  cases: {
    'effect.done': values.map((value) => ({ type: 'effect.done', id: '', value })),
    'timer.elapsed': [2, 4].map((attempt) => ({ type: 'timer.elapsed', id: `r/t1/wait/${attempt}` })),
  },
  projection: ({ attempts }: ModelCallContext) => attempts,
} satisfies Cases;
