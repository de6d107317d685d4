/**
 * The options of an agent, checked at start. Rule: nested policies are merged key by key over the defaults; an unknown
 * key or an impossible value is refused with a message that names it.
 */
import type { ChartPolicies, Settings, ToolRetry } from '../machines/internal.ts';
import { type ContextPolicy, thresholdsOf } from './contextPolicy.ts';
import type { Model } from './models/model.ts';
import { checkModel } from './models/modelForms.ts';
import { type Plugin, phasesOf } from './plugins/plugin.ts';
import { policyForm, type TextCallFormat } from './policyForms.ts';
import { check } from './validation.ts';

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
  check('policies', given === undefined ? {} : given, policyForm) as Policies;

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
