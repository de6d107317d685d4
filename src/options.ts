/**
 * The options of an agent, checked at start. Rule: nested policies are merged key by key over the defaults; an unknown
 * key or an impossible value is refused with a message that names it.
 */
import { type ChartPolicies, defaultPolicies, type Settings } from '../machines/index.ts';
import { ConfigurationError } from './errors.ts';
import type { Model } from './models/model.ts';
import { type Plugin, phasesOf } from './plugins/plugin.ts';

export type DeepPartial<T> = T extends readonly unknown[] | ((...a: never[]) => unknown)
  ? T
  : T extends object
    ? { [K in keyof T]?: DeepPartial<T[K]> }
    : T;

type Retry = { attempts: number; baseMs: number; factor: number; capMs: number; jitter: number };

/** Every policy; meaning and defaults in docs/policies.md. */
export interface Policies extends Omit<ChartPolicies, 'modelRetry'> {
  modelRetry: ChartPolicies['modelRetry'] & { fallbackModels: readonly Model[] };
  modelTimeout: { firstPartMs: number; idleMs: number; totalMs: number | false };
  toolRetry: false | (Retry & { retryable?(error: unknown): boolean });
  textToolCalls: false | readonly ('tool_call' | 'function' | 'fence' | 'json')[];
  observerErrors: 'isolate' | 'propagate';
  context: readonly { kind: 'prune' | 'warn' | 'compact' | 'exhaust'; at: number }[];
}

export const defaults: Policies = {
  ...defaultPolicies,
  modelRetry: { ...defaultPolicies.modelRetry, fallbackModels: [] },
  modelTimeout: { firstPartMs: 60_000, idleMs: 60_000, totalMs: false },
  toolRetry: false,
  textToolCalls: false,
  observerErrors: 'isolate',
  context: [
    { kind: 'warn', at: 0.8 },
    { kind: 'prune', at: 0.8 },
    { kind: 'compact', at: 0.8 },
    { kind: 'exhaust', at: 0.95 },
  ],
};

const CHOICES: { [path: string]: readonly unknown[] } = {
  whileActive: ['reject', 'steer', 'followUp'],
  steerAt: ['afterRound', 'afterTool'],
  queueDrain: ['one', 'all'],
  whileSuspended: ['followUp', 'reject', 'denyAndRun'],
  toolExecution: ['parallel', 'sequential', 'parallelIfReadOnly'],
  onPartialSuspend: ['continue', 'wait'],
  decisionsDuringRound: ['immediate', 'atGate'],
  onToolFailure: ['tellModel', 'failRun'],
  partialReply: ['discard', 'keep'],
  onRestart: ['idle', 'replayDecided'],
  onEmptyReply: ['notice', 'retry', 'accept'],
  observerErrors: ['isolate', 'propagate'],
};
/** Numbers that may be switched off. */
const OR_FALSE: ReadonlySet<string> = new Set([
  'limits.costUsd',
  'limits.tokens',
  'limits.runMs',
  'modelTimeout.totalMs',
]);
/** Numbers of which there must be at least one. */
const AT_LEAST_ONE: ReadonlySet<string> = new Set([
  'maxParallelTools',
  'modelRetry.attempts',
  'modelRetry.factor',
  'limits.turns',
]);
/** What has a form of its own and is taken as it is once its kind is right. */
const FREE: ReadonlySet<string> = new Set([
  'modelRetry.fallbackModels',
  'context',
  'toolRetry',
  'textToolCalls',
  'promoteFollowUpOn',
]);
const REASONS: readonly unknown[] = ['completed', 'interrupted', 'error'];

const shown = (value: unknown): string => {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
};
const impossible = (path: string, wanted: string, value: unknown): ConfigurationError =>
  new ConfigurationError(`policies.${path} must be ${wanted}, got ${shown(value)}`);

function checkedNumber(path: string, value: unknown): unknown {
  if (value === false && OR_FALSE.has(path)) return value;
  const least = AT_LEAST_ONE.has(path) ? 1 : 0;
  if (typeof value === 'number' && !Number.isNaN(value) && value >= least) return value;
  throw impossible(path, `a number of at least ${least}${OR_FALSE.has(path) ? ' or false' : ''}`, value);
}

function checkedFree(path: string, value: unknown): unknown {
  if (path === 'promoteFollowUpOn') {
    if (Array.isArray(value) && value.every((reason) => REASONS.includes(reason))) return value;
    throw impossible(path, `a list of ${REASONS.join(', ')}`, value);
  }
  if (Array.isArray(value) || (path !== 'context' && path !== 'modelRetry.fallbackModels' && value === false))
    return value;
  if (path === 'toolRetry' && typeof value === 'object' && value !== null) return value;
  throw impossible(path, path === 'toolRetry' ? 'false or an object' : 'a list', value);
}

function checked(path: string, value: unknown, normal: unknown): unknown {
  const choices = CHOICES[path];
  if (choices) {
    if (choices.includes(value)) return value;
    throw impossible(path, `one of ${choices.map(shown).join(', ')}`, value);
  }
  if (FREE.has(path)) return checkedFree(path, value);
  if (typeof normal === 'boolean' && !OR_FALSE.has(path)) {
    if (typeof value === 'boolean') return value;
    throw impossible(path, 'true or false', value);
  }
  if (typeof normal === 'number' || OR_FALSE.has(path)) return checkedNumber(path, value);
  return merged(path, value, normal as object);
}

function merged(path: string, given: unknown, normal: object): object {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw impossible(path, 'an object', given);
  const result: Record<string, unknown> = { ...normal };
  for (const [key, value] of Object.entries(given)) {
    const at = path ? `${path}.${key}` : key;
    if (!Object.hasOwn(normal, key)) {
      throw new ConfigurationError(`policies.${at} is unknown; known are ${Object.keys(normal).join(', ')}`);
    }
    if (value !== undefined) result[key] = checked(at, value, (normal as Record<string, unknown>)[key]);
  }
  return result;
}

/** Policies over the defaults. Throws ConfigurationError. */
export const mergedPolicies = (given: DeepPartial<Policies> | undefined): Policies =>
  merged('', given ?? {}, defaults) as Policies;

/** The agent's model and its fallbacks, each once. */
export const modelsOf = (model: Model, policies: Policies): Model[] => {
  const models = [model, ...policies.modelRetry.fallbackModels];
  return models.filter((candidate, index) => models.findIndex(({ id }) => id === candidate.id) === index);
};

/** What charts read of it all. */
export function settingsOf(
  conversationId: string,
  policies: Policies,
  plugins: readonly Plugin[],
  models: readonly Model[],
): Settings {
  const { modelTimeout: _t, toolRetry: _r, textToolCalls: _c, observerErrors: _o, context: _x, ...rest } = policies;
  const { fallbackModels: _f, ...modelRetry } = policies.modelRetry;
  return {
    conversationId,
    policies: { ...rest, modelRetry },
    phases: phasesOf(plugins),
    models: models.map(({ id }) => id),
  };
}
