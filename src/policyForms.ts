/**
 * What each policy takes, and what it is where it is not given. Rule: a policy stands here or is a group of others; a
 * value that passes can work.
 */
import { defaultPolicies } from '../machines/internal.ts';
import { contextDefaults, contextForm } from './contextPolicy.ts';
import {
  callback,
  choice,
  type Form,
  flag,
  isList,
  list,
  number,
  object,
  orFalse,
  whole,
  withMethods,
} from './validation.ts';

/** What reads them is loaded on demand. */
export const textCallFormats = ['tool_call', 'function', 'fence', 'json'] as const;
export type TextCallFormat = (typeof textCallFormats)[number];

/** Each of the choices at most once. */
const some = (...choices: string[]): Form => ({
  wanted: `a list of ${choices.join(', ')}, each at most once`,
  takes: (value) =>
    isList(value) && new Set(value).size === value.length && value.every((each) => choices.includes(each as string)),
});

/** What both kinds of retry have. */
const retry = {
  attempts: whole(1),
  baseMs: number(0),
  factor: number(1),
  capMs: number(0),
  jitter: number(0),
};
/** What `toolRetry` is where it is no longer false; `retryable` has no default of its own. */
const toolRetry = { attempts: 3, baseMs: 500, factor: 2, capMs: 5000, jitter: 0.1 };
const modelRetry = { ...defaultPolicies.modelRetry, fallbackModels: [] };
const modelTimeout = { firstPartMs: 60_000, idleMs: 60_000, totalMs: false as const };
const { limits } = defaultPolicies;

export const defaults = {
  ...defaultPolicies,
  modelRetry,
  modelTimeout,
  toolRetry: false as const,
  textToolCalls: false as const,
  observerErrors: 'isolate' as const,
  context: contextDefaults,
};

export const policyForm = object(
  {
    whileActive: choice('reject', 'steer', 'followUp'),
    steerAt: choice('afterRound', 'afterTool'),
    queueDrain: choice('one', 'all'),
    promoteFollowUpOn: some('completed', 'interrupted', 'error'),
    whileSuspended: choice('followUp', 'reject', 'denyAndRun'),
    toolExecution: choice('parallel', 'sequential', 'parallelIfReadOnly'),
    maxParallelTools: whole(1),
    onPartialSuspend: choice('continue', 'wait'),
    decisionsDuringRound: choice('immediate', 'atGate'),
    onToolFailure: choice('tellModel', 'failRun'),
    toolRetry: orFalse(object({ ...retry, retryable: callback }, { defaults: toolRetry })),
    modelRetry: object(
      {
        ...retry,
        respectRetryAfter: flag,
        maxRetryAfterMs: number(0),
        fallbackModels: list('models', (each) => withMethods(each, 'stream')),
      },
      { defaults: modelRetry },
    ),
    modelTimeout: object(
      { firstPartMs: number(0), idleMs: number(0), totalMs: orFalse(number(0)) },
      { defaults: modelTimeout },
    ),
    partialReply: choice('discard', 'keep'),
    onRestart: choice('idle', 'replayDecided', 'resume'),
    onEmptyReply: choice('notice', 'retry', 'accept'),
    maxStopContinues: whole(0),
    limits: object(
      {
        turns: whole(1),
        costUsd: orFalse(number(0)),
        tokens: orFalse(whole(0)),
        runMs: orFalse(number(0)),
        toolCallsPerTurn: whole(0),
        identicalCalls: whole(1),
        emptyReplies: whole(1),
        queue: whole(0),
        decisions: whole(0),
        suspensionsPerCall: whole(0),
        subAgents: whole(0),
        toolMs: number(0),
        resultBytes: whole(0),
      },
      { defaults: limits },
    ),
    textToolCalls: orFalse(some(...textCallFormats)),
    observerErrors: choice('isolate', 'propagate'),
    context: contextForm,
  },
  { defaults },
);
