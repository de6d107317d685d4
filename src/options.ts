/**
 * The options of an agent, checked at start. Rule: nested policies are merged key by key over the defaults; an unknown
 * key or an impossible value is refused with a message that names it.
 */
import { type ChartPolicies, defaultPolicies, type Settings, type ToolRetry } from '../machines/index.ts';
import { type ContextPolicy, contextDefaults, thresholdsOf } from './contextPolicy.ts';
import { ConfigurationError } from './errors.ts';
import { impossible } from './form.ts';
import type { Model } from './models/model.ts';
import { checkModel } from './models/modelForms.ts';
import { type Plugin, phasesOf } from './plugins/plugin.ts';
import { policyForms, type TextCallFormat } from './policyForms.ts';

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

export const defaults: Policies = {
  ...defaultPolicies,
  modelRetry: { ...defaultPolicies.modelRetry, fallbackModels: [] },
  modelTimeout: { firstPartMs: 60_000, idleMs: 60_000, totalMs: false },
  toolRetry: false,
  textToolCalls: false,
  observerErrors: 'isolate',
  context: contextDefaults,
};

/** What `toolRetry` is where it is no longer false; `retryable` has no default of its own. */
const toolRetryDefaults = { attempts: 3, baseMs: 500, factor: 2, capMs: 5000, jitter: 0.1, retryable: undefined };

const named = (path: string): string => (path ? `policies.${path}` : 'policies');

function checked(path: string, value: unknown, normal: unknown): unknown {
  if (path === 'toolRetry') return value === false ? value : merged(path, value, toolRetryDefaults);
  const form = policyForms.get(path);
  if (!form) return merged(path, value, normal as object);
  // A copy: what was checked stays as it is.
  if (form.takes(value)) return Array.isArray(value) ? [...value] : value;
  throw impossible(named(path), form, value);
}

function merged(path: string, given: unknown, normal: object): object {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    const wanted = path === 'toolRetry' ? 'false or an object' : 'an object';
    throw impossible(named(path), { wanted }, given);
  }
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
  merged('', given === undefined ? {} : given, defaults) as Policies;

/** The agent's model and its fallbacks, each once. Throws ConfigurationError for one that cannot be called. */
export const modelsOf = (model: Model, policies: Policies): Model[] => {
  const models = [model, ...policies.modelRetry.fallbackModels];
  models.forEach(checkModel);
  return models.filter((candidate, index) => models.findIndex(({ id }) => id === candidate.id) === index);
};

function toolRetryOf({ retryable: _p, ...retry }: Exclude<Policies['toolRetry'], false>): ToolRetry {
  return retry;
}

/** What charts read of it all. */
export function settingsOf(
  conversationId: string,
  policies: Policies,
  plugins: readonly Plugin[],
  models: readonly Model[],
): Settings {
  const { modelTimeout: _t, toolRetry: retry, textToolCalls: _c, observerErrors: _o, context: _x, ...rest } = policies;
  const { fallbackModels: _f, ...modelRetry } = policies.modelRetry;
  const toolRetry = retry && toolRetryOf(retry);
  const context = thresholdsOf(policies.context, models[0]?.contextWindow);
  return {
    conversationId,
    policies: { ...rest, modelRetry, toolRetry },
    phases: phasesOf(plugins),
    models: models.map(({ id }) => id),
    ...(context && { context }),
  };
}
