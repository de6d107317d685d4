/**
 * The settings of a request loop (docs/internals/contracts.md, 2.2 and 6.1), and the policies that follow from them.
 * Invariant: settings may change between requests, so each request reads them again. An impossible value is refused by
 * its name.
 */

import type { DeepPartial, Policies } from '../agentPolicies.ts';
import { presets } from '../agentPolicies.ts';
import { onlyRefusing } from '../tools/toolRetry.ts';
import { check, flag, number, object, whole } from '../validation.ts';
import { isFinalError } from './requestErrors.ts';

/** The settings of the loop. */
export interface LoopSettings {
  /** The maximum number of model calls in one request. Default: `policies.limits.turns`. */
  maxIterations?: number;
  /** The maximum number of executions of a failing tool, including the first one. Default: `policies.toolRetry`. */
  maxRetries?: number;
  /** Refuses arguments that the tool's JSON Schema does not name. */
  toolStrictValidation?: boolean;
  /** The delay before each call of the model. */
  requestDelayMs?: number;
  /** The default 0 means no limit. */
  globalRequestTimeoutSeconds?: number;
}

const settingsValidator = object({
  maxIterations: whole(1),
  maxRetries: whole(0),
  toolStrictValidation: flag,
  requestDelayMs: number(0),
  globalRequestTimeoutSeconds: number(0),
});

/** Returns a validated copy. Throws ConfigurationError. */
export const checkedSettings = (settings: LoopSettings): LoopSettings =>
  check('settings', settings, settingsValidator) as LoopSettings;

/** Equal settings of an agent have equal versions. */
export const versionOf = ({ maxIterations, maxRetries, ...rest }: LoopSettings): string => {
  const { toolStrictValidation = false, requestDelayMs = 0, globalRequestTimeoutSeconds = 0 } = rest;
  return JSON.stringify([maxIterations, maxRetries, toolStrictValidation, requestDelayMs, globalRequestTimeoutSeconds]);
};

type PartialPolicies = DeepPartial<Policies>;

/** Final errors never cause another execution of a call, whatever the host's policy is. */
type ToolRetryOption = Exclude<PartialPolicies['toolRetry'], undefined>;
function toolRetryOf(toolRetry: ToolRetryOption | undefined, maxRetries: number | undefined): ToolRetryOption {
  const base = toolRetry ?? presets.requestLoop.toolRetry ?? false;
  if ((base === false && maxRetries === undefined) || (maxRetries !== undefined && maxRetries < 2)) return false;
  const { retryable, ...rest } = base || { retryable: undefined };
  return {
    ...rest,
    ...(maxRetries !== undefined && { attempts: maxRetries }),
    retryable: retryable
      ? (error) => !isFinalError(error) && retryable(error) === true
      : onlyRefusing((error) => isFinalError(error)),
  };
}

const FIRST_PART_MS = 60_000;

/** Returns the policies of an agent under these settings. */
export function policiesUnder(policies: PartialPolicies = {}, settings: LoopSettings): PartialPolicies {
  const { maxIterations, maxRetries, requestDelayMs = 0 } = settings;
  const { firstPartMs = FIRST_PART_MS } = policies.modelTimeout ?? {};
  return {
    ...presets.requestLoop,
    ...policies,
    toolRetry: toolRetryOf(policies.toolRetry, maxRetries),
    // The delay must not count as silence of the model.
    modelTimeout: { ...policies.modelTimeout, firstPartMs: firstPartMs + requestDelayMs },
    limits: { ...policies.limits, ...(maxIterations !== undefined && { turns: maxIterations }) },
  };
}
