/**
 * LLM_CALL (docs/internals/lifecycle.md, LLM_CALL): one model call with its visible attempts. RUN contains these states
 * inside LlmCall; this chart contains the same ones, so that tests can prove them alone. Each attempt after the first
 * is logged before its wait begins.
 */
import { setup } from 'xstate';
import { backoffMs, type ChartPolicies } from './policies.ts';
import type { EffectDone, EffectRequest, ModelValue, TimerElapsed } from './ports.ts';
import { ask, type Chart, type ConfigOf, type FinalEvent, type Guards, log, update } from './verbs.ts';
import type { Failure, NewEntry } from './vocabulary.ts';
import { verbs } from './xstateVerbs.ts';

/** The progress of a model call. */
export interface Attempts {
  /** Counts from 1 within the turn. */
  attempt: number;
  /** Index of the current model: the agent's own, then its fallbacks. */
  model: number;
  /** Counts from 1 for the current model. */
  ofModel: number;
}
export const firstAttempt: Attempts = { attempt: 1, model: 0, ofModel: 1 };

export interface ModelCallContext {
  runId: string;
  turn: number;
  /** The purpose of the call, part of the ids of its requests; empty for the turn's own call. */
  within?: string;
  attempts: Attempts;
  models: readonly string[];
  retry: ChartPolicies['modelRetry'];
}
type WithContext = { context: ModelCallContext };
type Args = WithContext & { event: { type: string } };
type Failed = Extract<ModelValue, { kind: 'failed' }>;

const failedOf = (event: { type: string }): Failed | undefined => {
  const value = event.type === 'effect.done' ? (event as EffectDone).value : undefined;
  return value?.kind === 'failed' ? value : undefined;
};

export const failureOf = (event: { type: string }): Failure => {
  const failed = failedOf(event);
  return { code: failed?.code ?? 'network', message: failed?.message ?? 'the model call failed' };
};

const tooLong = (failed: Failed, retry: ModelCallContext['retry']): boolean =>
  retry.respectRetryAfter && (failed.retryAfterMs ?? 0) > retry.maxRetryAfterMs;

/** The answer is a reply. */
export const replies = ({ event }: { event: { type: string } }): boolean =>
  event.type === 'effect.done' && (event as EffectDone).value.kind === 'reply';

/** The same model is called again after a wait. */
export function retries({ context, event }: Args): boolean {
  const failed = failedOf(event);
  if (!failed?.retryable || tooLong(failed, context.retry)) return false;
  return context.attempts.ofModel < context.retry.attempts;
}

/** The index of a later model. Models that do not accept the request are left out, and no model is tried again. */
const nextIndex = (attempts: Attempts, failed: Failed | undefined): number =>
  Math.max(attempts.model + 1, failed?.nextModel ?? 0);

/** All attempts of this model failed, and another model remains. */
export function fallsBack({ context, event }: Args): boolean {
  const failed = failedOf(event);
  if (!failed?.retryable || tooLong(failed, context.retry)) return false;
  return nextIndex(context.attempts, failed) < context.models.length;
}

/** The timer belongs to the wait of the current attempt, not of an older one. */
export const waitIsOver = ({ context, event }: Args): boolean =>
  event.type === 'timer.elapsed' && (event as TimerElapsed).id === waitId(context);

export const nextAttempt = ({ context: { attempts } }: WithContext) => ({
  attempts: { attempt: attempts.attempt + 1, model: attempts.model, ofModel: attempts.ofModel + 1 },
});
export const nextModel = ({ context: { attempts }, event }: Args) => ({
  attempts: { attempt: attempts.attempt + 1, model: nextIndex(attempts, failedOf(event)), ofModel: 1 },
});

/** Milliseconds before the next attempt: exponential with jitter, or the wait that the provider requested. */
function waitMs({ retry, attempts }: ModelCallContext, failed: Failed): number {
  if (retry.respectRetryAfter && failed.retryAfterMs !== undefined) return failed.retryAfterMs;
  return backoffMs(retry, attempts.ofModel - 1, failed.random);
}

/** `attempts` already includes the next attempt. `model`: the model of the next attempt. */
function retryEntry(context: ModelCallContext, failed: Failed, wait: number, model: string): NewEntry[] {
  const { runId, turn, attempts } = context;
  const reason = `${failed.code}: ${failed.message}`;
  return [{ runId, type: 'model-retry', turn, attempt: attempts.attempt, waitMs: wait, model, reason }];
}

/** The prefix of the ids of a call's requests. */
export const stemOf = ({ runId, turn, within = '' }: ModelCallContext): string => `${runId}/t${turn}${within}`;

const waitId = (context: ModelCallContext): string => `${stemOf(context)}/wait/${context.attempts.attempt}`;

function askModel({ context }: WithContext): EffectRequest {
  const { runId, turn, attempts } = context;
  const { attempt, model } = attempts;
  return { kind: 'model', id: `${runId}/t${turn}/model/${attempt}`, runId, turn, attempt, model };
}

function retryEntries({ context, event }: Args): NewEntry[] {
  const failed = failedOf(event);
  return failed ? retryEntry(context, failed, waitMs(context, failed), failed.model) : [];
}
function askRetryWait({ context, event }: Args): EffectRequest | undefined {
  const failed = failedOf(event);
  return failed && { kind: 'timer', id: waitId(context), ms: waitMs(context, failed) };
}
function fallbackEntries({ context, event }: Args): NewEntry[] {
  const failed = failedOf(event);
  return failed ? retryEntry(context, failed, 0, context.models[context.attempts.model] ?? failed.model) : [];
}

/**
 * The states of a model call; `requests` makes the request of an attempt. The owner decides the state after a reply or a final failure.
 */
export const attemptsOf = <Request>(request: Request) =>
  ({
    attempting: {
      entry: ask(request),
      on: {
        'effect.done': [
          { guard: 'retries', target: 'backingOff', actions: update(nextAttempt) },
          { guard: 'fallsBack', target: 'fallback', actions: update(nextModel) },
        ],
      },
    },
    backingOff: {
      entry: [log(retryEntries), ask(askRetryWait)],
      on: { 'timer.elapsed': { guard: 'waitIsOver', target: 'attempting' } },
    },
    fallback: { entry: log(fallbackEntries), always: { target: 'attempting' } },
  }) as const;

export const attemptStates = attemptsOf(askModel);

export interface ModelCallInput {
  runId: string;
  turn: number;
  models: readonly string[];
  retry: ChartPolicies['modelRetry'];
}
export type ModelCallEvent = EffectDone | TimerElapsed;
export interface ModelCallOutput {
  kind: 'replied' | 'failed';
}

const guards = { replies, retries, fallsBack, waitIsOver } satisfies Guards<ModelCallContext, ModelCallEvent>;

const modelCallSetup = () =>
  setup({
    types: {} as {
      context: ModelCallContext;
      events: ModelCallEvent;
      input: ModelCallInput;
      output: ModelCallOutput;
    },
    actions: verbs<ModelCallContext, ModelCallEvent>(),
    guards,
  });

const config = {
  id: 'LLM_CALL',
  context: ({ input }) => ({ ...input, attempts: firstAttempt }),
  output: ({ event }) => ({ kind: (event as FinalEvent<ModelCallOutput['kind']>).output }),
  initial: 'attempting',
  on: { 'effect.done': [{ guard: 'replies', target: '.Replied' }, { target: '.Failed' }] },
  states: {
    ...attemptStates,
    Replied: { type: 'final', output: 'replied' },
    Failed: { type: 'final', output: 'failed' },
  },
} satisfies ConfigOf<typeof modelCallSetup>;

export const modelCallChart: Chart = { id: config.id, config, implementations: { guards, actors: {} } };
/** The chart MODEL_CALL: the attempts at one reply, with retries and fallback models. */
export const modelCallMachine = /* @__PURE__ */ (() => modelCallSetup().createMachine(config))();
