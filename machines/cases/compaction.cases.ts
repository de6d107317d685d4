/** Cases of COMPACTION: with and without hooks, one attempt or several, a fallback, and every end. */

import type { CompactionContext, CompactionInput } from '../compaction/compaction.machine.ts';
import { defaultPolicies } from '../policies.ts';
import type { EffectValue } from '../ports.ts';
import type { Cases } from './cases.ts';
import { failedAttempt, noUsage } from './modelCall.cases.ts';

const retry = { ...defaultPolicies.modelRetry, attempts: 2 };
const plain: CompactionInput = { runId: 'r', turn: 1, models: ['m'], retry, upToSeq: 7, heard: false };

const inputs: readonly CompactionInput[] = [
  plain,
  { ...plain, retry: { ...retry, attempts: 1 } },
  { ...plain, heard: true, retry: { ...retry, attempts: 1 } },
  { ...plain, heard: true, models: ['m', 'n'] },
];

export const summed: EffectValue = { kind: 'summary', text: 'before', usage: noUsage, costUsd: 0.25, model: 'm' };
const preCompactAnswers: readonly EffectValue[] = [
  { kind: 'done' },
  { kind: 'compact', instructions: 'Keep the names.' },
  { kind: 'compact', block: { by: 'guard', reason: 'not now' } },
];
const answers: readonly EffectValue[] = [
  summed,
  failedAttempt,
  { ...failedAttempt, code: 'auth', retryable: false, kept: 'The last message' },
  { ...failedAttempt, code: 'empty_reply', retryable: false, spent: { usage: noUsage, costUsd: 0.5 } },
  { ...failedAttempt, code: 'rate-limit', retryAfterMs: retry.maxRetryAfterMs + 1 },
];

export const compactionCases = {
  inputs,
  cases: {
    'effect.done': [...preCompactAnswers, ...answers].map((value) => ({ type: 'effect.done', id: '', value })),
    'timer.elapsed': [2, 4].map((attempt) => ({ type: 'timer.elapsed', id: `r/t1/compaction/wait/${attempt}` })),
  },
  projection: ({ attempts, instructions, spent }: CompactionContext) => [attempts, instructions, spent],
} satisfies Cases;
