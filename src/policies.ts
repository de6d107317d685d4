/**
 * The policies of an agent: what each takes, its default, and named bundles of them. Rule: nested policies are merged key by key
 * over the defaults; an unknown key or an impossible value is refused with a message that names it.
 */
import { type ChartPolicies, defaultPolicies, type Settings, type ToolRetry } from '../machines/internal.ts';
import { checkModel, type Model, type TextCallFormat, textCallFormats } from './models/model.ts';
import { type Plugin, phasesOf } from './plugins/plugin.ts';
import {
  callback,
  check,
  choice,
  flag,
  hasMethods,
  isList,
  isObject,
  list,
  number,
  object,
  orFalse,
  type Validator,
  whole,
} from './validation.ts';

const KINDS = ['warn', 'prune', 'compact', 'exhaust'] as const;
type Kind = (typeof KINDS)[number];
export type ContextPolicy = readonly { kind: Kind; at: number }[];

export const contextDefaults: ContextPolicy = [
  { kind: 'warn', at: 0.8 },
  { kind: 'prune', at: 0.8 },
  { kind: 'compact', at: 0.8 },
  { kind: 'exhaust', at: 0.95 },
];

const isShare = (at: unknown): boolean => typeof at === 'number' && at >= 0 && at <= 1;
const isStep = (step: unknown): boolean =>
  isObject(step) && Object.keys(step).length === 2 && KINDS.includes(step.kind as Kind) && isShare(step.at);

export const contextValidator: Validator = {
  expected: `a list of { kind, at }, each kind (${KINDS.join(', ')}) once, at a share of 0 to 1`,
  test: (value) =>
    isList(value) &&
    value.every(isStep) &&
    new Set((value as ContextPolicy).map(({ kind }) => kind)).size === value.length,
};

/** What the chart is to look at; nothing where no window is known or nothing is to happen. */
export function thresholdsOf(policy: ContextPolicy, window: number | undefined): Settings['context'] {
  if (typeof window !== 'number' || Number.isNaN(window)) return undefined;
  return policy.length > 0 ? Object.fromEntries(policy.map(({ kind, at }) => [kind, at])) : undefined;
}

/** Each of the choices at most once. */
const some = (...choices: string[]): Validator => ({
  expected: `a list of ${choices.join(', ')}, each at most once`,
  test: (value) =>
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

export const policiesValidator = object(
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
        fallbackModels: list('models', (each) => hasMethods(each, 'stream')),
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
        outputRepairs: whole(0),
      },
      { defaults: limits },
    ),
    textToolCalls: orFalse(some(...textCallFormats)),
    observerErrors: choice('isolate', 'propagate'),
    context: contextValidator,
  },
  { defaults },
);

export type DeepPartial<T> = T extends readonly unknown[] | ((...a: never[]) => unknown)
  ? T
  : T extends object
    ? { [K in keyof T]?: DeepPartial<T[K]> }
    : T;

/** Every policy; meaning and defaults in docs/policies.md. */
export interface Policies extends Omit<ChartPolicies, 'modelRetry'> {
  modelRetry: ChartPolicies['modelRetry'] & { fallbackModels: readonly Model[] };
  modelTimeout: { firstPartMs: number; idleMs: number; totalMs: number | false };
  toolRetry: false | (ToolRetry & { retryable?(error: unknown): boolean });
  textToolCalls: false | readonly TextCallFormat[];
  observerErrors: 'isolate' | 'propagate';
  context: ContextPolicy;
}

/** Policies over the defaults. Throws ConfigurationError. */
export const mergedPolicies = (given: DeepPartial<Policies> | undefined): Policies =>
  check('policies', given === undefined ? {} : given, policiesValidator) as Policies;

/** The agent's model and its fallbacks, each once. Throws ConfigurationError for one that cannot be called. */
export const modelsOf = (model: Model, policies: Policies): Model[] => {
  const models = [model, ...policies.modelRetry.fallbackModels];
  models.forEach(checkModel);
  return models.filter((candidate, index) => models.findIndex(({ id }) => id === candidate.id) === index);
};

function toolRetryOf({ retryable: _p, ...retry }: Exclude<Policies['toolRetry'], false>): ToolRetry {
  return retry;
}

const read = new WeakMap<Policies, Settings['policies']>();
/** The policies that charts read, the same for all conversations of an agent. */
function chartPoliciesOf(policies: Policies): Settings['policies'] {
  const known = read.get(policies);
  if (known) return known;
  const { modelTimeout: _t, toolRetry: retry, textToolCalls: _c, observerErrors: _o, context: _x, ...rest } = policies;
  const { fallbackModels: _f, ...modelRetry } = policies.modelRetry;
  const made = { ...rest, modelRetry, toolRetry: retry && toolRetryOf(retry) };
  read.set(policies, made);
  return made;
}

/** What charts read of it all. */
export function settingsOf(
  conversationId: string,
  policies: Policies,
  plugins: readonly Plugin[],
  models: readonly Model[],
): Settings {
  const context = thresholdsOf(policies.context, models[0]?.contextWindow);
  return {
    conversationId,
    policies: chartPoliciesOf(policies),
    phases: phasesOf(plugins),
    models: models.map(({ id }) => id),
    ...(context && { context }),
  };
}

export const presets: {
  conversation: DeepPartial<Policies>;
  coding: DeepPartial<Policies>;
  requestLoop: DeepPartial<Policies>;
} = {
  /** One thing at a time: busy means busy, tools in order, nothing half-said is kept. */
  conversation: { whileActive: 'reject', toolExecution: 'sequential', partialReply: 'discard' },
  /** A coding agent: messages queue up, reading runs in parallel, writing does not. */
  coding: { whileActive: 'followUp', toolExecution: 'parallelIfReadOnly', promoteFollowUpOn: ['completed'] },
  /** A request loop with callbacks: failing tools are tried again, calls may stand in the text. */
  requestLoop: {
    toolExecution: 'parallel',
    toolRetry: { attempts: 3, baseMs: 500, factor: 2, capMs: 5000, jitter: 0.1 },
    partialReply: 'keep',
    observerErrors: 'propagate',
    textToolCalls: ['tool_call', 'function', 'fence', 'json'],
  },
};
