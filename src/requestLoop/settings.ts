/**
 * The settings of a request loop (agent-loop-contract 2.2, 6.1), and what they make of the policies. Rule: they may change
 * between requests, so each request reads them anew; a value that cannot work is refused by its name.
 */

import { RunchartError } from '../errors.ts';
import type { DeepPartial, Policies } from '../policies.ts';
import { presets } from '../policies.ts';
import { check, flag, number, object, whole } from '../validation.ts';
import { isFinalError } from './requestErrors.ts';

export interface LoopSettings {
  /** Model calls a request at most; `policies.limits.turns` where it is not given. */
  maxIterations?: number;
  /** Executions of a tool that fails, the first one counted; `policies.toolRetry` where it is not given. */
  maxRetries?: number;
  /** Arguments that the tool's JSON Schema does not name are refused. */
  toolStrictValidation?: boolean;
  /** Passes before each call of the model. */
  requestDelayMs?: number;
  /** 0, which is the default, for no limit. */
  globalRequestTimeoutSeconds?: number;
}

const settingsValidator = object({
  maxIterations: whole(1),
  maxRetries: whole(0),
  toolStrictValidation: flag,
  requestDelayMs: number(0),
  globalRequestTimeoutSeconds: number(0),
});

/** A checked copy. Throws ConfigurationError. */
export const checkedSettings = (settings: LoopSettings): LoopSettings =>
  check('settings', settings, settingsValidator) as LoopSettings;

/** Equal for settings under which one agent may serve. */
export const versionOf = ({ maxIterations, maxRetries, ...rest }: LoopSettings): string => {
  const { toolStrictValidation = false, requestDelayMs = 0, globalRequestTimeoutSeconds = 0 } = rest;
  return JSON.stringify([maxIterations, maxRetries, toolStrictValidation, requestDelayMs, globalRequestTimeoutSeconds]);
};

type GivenPolicies = DeepPartial<Policies>;

/** Errors that end a tool's call are never a reason to execute it again, whatever the host says of the others. */
type GivenRetry = Exclude<GivenPolicies['toolRetry'], undefined>;
function toolRetryOf(given: GivenRetry | undefined, maxRetries: number | undefined): GivenRetry {
  const base = given ?? presets.requestLoop.toolRetry ?? false;
  if ((base === false && maxRetries === undefined) || (maxRetries !== undefined && maxRetries < 2)) return false;
  const { retryable, ...rest } = base || { retryable: undefined };
  return {
    ...rest,
    ...(maxRetries !== undefined && { attempts: maxRetries }),
    retryable: (error) =>
      !isFinalError(error) && (retryable ? retryable(error) === true : !RunchartError.isRunchartError(error)),
  };
}

const FIRST_PART_MS = 60_000;

/** The policies of an agent that serves under these settings. */
export function policiesUnder(given: GivenPolicies = {}, settings: LoopSettings): GivenPolicies {
  const { maxIterations, maxRetries, requestDelayMs = 0 } = settings;
  const { firstPartMs = FIRST_PART_MS } = given.modelTimeout ?? {};
  return {
    ...presets.requestLoop,
    ...given,
    toolRetry: toolRetryOf(given.toolRetry, maxRetries),
    // The delay is no silence of the model's.
    modelTimeout: { ...given.modelTimeout, firstPartMs: firstPartMs + requestDelayMs },
    limits: { ...given.limits, ...(maxIterations !== undefined && { turns: maxIterations }) },
  };
}
