/**
 * The options that every adapter has, and the model that it makes of them. Invariant: a model shows no secret when it
 * is printed, inspected or written as JSON.
 */
import { type ImageLimits, imageLimitsOf } from '../../content/imageFormat.ts';
import { isObject, type Validator } from '../../validation.ts';
import type { Model, Prices } from '../model.ts';

export interface VendorModelOptions {
  /** The most tokens of input and output in one call. */
  contextWindow?: number;
  /** The output limit if a request names none. */
  maxOutputTokens?: number;
  prices?: Prices;
  /** Limits for images. Default: 2,000 pixels on the longer side and 4.5 MiB encoded. */
  imageLimits?: ImageLimits;
}

const tokens: Validator = {
  expected: 'a positive whole number of tokens',
  test: (value) => Number.isInteger(value) && Number(value) > 0,
};
/** The fields are validated when the model is made. */
const group: Validator = { expected: 'an object', test: isObject };
/** The validator of each option. */
export const vendorModelValidators = {
  contextWindow: tokens,
  maxOutputTokens: tokens,
  prices: group,
  imageLimits: group,
};

/** Node's `util.inspect` uses this key to ask an object for its printed form. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** Throws ConfigurationError for impossible limits of images. */
export function vendorModel(
  id: string,
  { contextWindow, maxOutputTokens, prices, imageLimits }: VendorModelOptions,
  secrets: readonly string[],
  stream: Model['stream'],
): Model {
  if (imageLimits) imageLimitsOf({ id, imageLimits });
  const shown = {
    id,
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(prices && { prices }),
    ...(imageLimits && { imageLimits }),
  };
  const show = { value: () => shown };
  const model: Model = { ...shown, stream };
  return Object.defineProperties(model, { secrets: { value: secrets }, toJSON: show, [INSPECT]: show });
}
