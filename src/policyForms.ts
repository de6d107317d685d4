/**
 * What each policy takes, by its path: the words of the refusal and the test behind them. Rule: a policy stands here or
 * is a group of others; a value that passes can work.
 */
import { contextForm, isContextPolicy } from './contextPolicy.ts';
import { callback, choice, type Form, flag, isList, number, withMethods } from './form.ts';

/** What reads them is loaded on demand. */
export const textCallFormats = ['tool_call', 'function', 'fence', 'json'] as const;
export type TextCallFormat = (typeof textCallFormats)[number];

const once = (values: readonly unknown[]): boolean => new Set(values).size === values.length;

const whole = (least: number): Form => ({
  wanted: `a whole number of at least ${least}`,
  takes: (value) => Number.isSafeInteger(value) && (value as number) >= least,
});
const orFalse = ({ wanted, takes }: Form): Form => ({
  wanted: `false or ${wanted}`,
  takes: (value) => value === false || takes(value),
});
/** Each of the choices at most once. */
const some = (...choices: string[]): Form => ({
  wanted: `a list of ${choices.join(', ')}, each at most once`,
  takes: (value) => isList(value) && once(value) && value.every((each) => choices.includes(each as string)),
});
const models: Form = {
  wanted: 'a list of models',
  takes: (value) => isList(value) && value.every((each) => withMethods(each, 'stream')),
  secret: true,
};
const context: Form = {
  wanted: contextForm,
  takes: (value) => isContextPolicy(value) && value.every((step) => Object.keys(step).length === 2),
};

/** What both kinds of retry have. */
const retry = (path: string): [string, Form][] => [
  [`${path}.attempts`, whole(1)],
  [`${path}.baseMs`, number(0)],
  [`${path}.factor`, number(1)],
  [`${path}.capMs`, number(0)],
  [`${path}.jitter`, number(0)],
];

export const policyForms: ReadonlyMap<string, Form> = new Map([
  ['whileActive', choice('reject', 'steer', 'followUp')],
  ['steerAt', choice('afterRound', 'afterTool')],
  ['queueDrain', choice('one', 'all')],
  ['promoteFollowUpOn', some('completed', 'interrupted', 'error')],
  ['whileSuspended', choice('followUp', 'reject', 'denyAndRun')],
  ['toolExecution', choice('parallel', 'sequential', 'parallelIfReadOnly')],
  ['maxParallelTools', whole(1)],
  ['onPartialSuspend', choice('continue', 'wait')],
  ['decisionsDuringRound', choice('immediate', 'atGate')],
  ['onToolFailure', choice('tellModel', 'failRun')],
  ...retry('toolRetry'),
  ['toolRetry.retryable', callback],
  ...retry('modelRetry'),
  ['modelRetry.respectRetryAfter', flag],
  ['modelRetry.maxRetryAfterMs', number(0)],
  ['modelRetry.fallbackModels', models],
  ['modelTimeout.firstPartMs', number(0)],
  ['modelTimeout.idleMs', number(0)],
  ['modelTimeout.totalMs', orFalse(number(0))],
  ['partialReply', choice('discard', 'keep')],
  ['onRestart', choice('idle', 'replayDecided', 'resume')],
  ['onEmptyReply', choice('notice', 'retry', 'accept')],
  ['maxStopContinues', whole(0)],
  ['limits.turns', whole(1)],
  ['limits.costUsd', orFalse(number(0))],
  ['limits.tokens', orFalse(whole(0))],
  ['limits.runMs', orFalse(number(0))],
  ['limits.toolCallsPerTurn', whole(0)],
  ['limits.identicalCalls', whole(1)],
  ['limits.emptyReplies', whole(1)],
  ['limits.queue', whole(0)],
  ['limits.decisions', whole(0)],
  ['limits.suspensionsPerCall', whole(0)],
  ['limits.subAgents', whole(0)],
  ['limits.toolMs', number(0)],
  ['limits.resultBytes', whole(0)],
  ['textToolCalls', orFalse(some(...textCallFormats))],
  ['observerErrors', choice('isolate', 'propagate')],
  ['context', context],
]);
