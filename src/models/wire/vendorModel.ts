/**
 * The options that every adapter has, and the model that it makes of them. The media types besides text that the model accepts, such as
 * `image/*`, in place of the adapter's default.
 */
import { type ImageLimits, imageLimitsOf } from '../../content/imageFormat.ts';
import { isObject, type Validator } from '../../validation.ts';
import type { Model, Prices } from '../model.ts';

/** The options of every adapter that a run reads. */
export interface VendorModelOptions {
  /** The most tokens of input and output in one call. */
  contextWindow?: number;
  /** The output limit if a request names none. */
  maxOutputTokens?: number;
  /** Prices in USD per million tokens. Without them costs are unknown. */
  prices?: Prices;
  /** Limits for images. Default: 2,000 pixels on the longer side and 4.5 MiB encoded. */
  imageLimits?: ImageLimits;
  /** The media types besides text that the model accepts, such as `image/*`, in place of those that the adapter knows. */
  accepts?: readonly string[];
}

const tokens: Validator = {
  expected: 'a positive whole number of tokens',
  test: (value) => Number.isInteger(value) && Number(value) > 0,
};
/** The fields are validated when the model is made. */
const group: Validator = { expected: 'an object', test: isObject };
const mediaTypes: Validator = {
  expected: "a list of media types such as 'application/pdf' and 'image/*'",
  test: (value) =>
    Array.isArray(value) &&
    value.every((each) => typeof each === 'string' && /^(\*|[\w.+-]+)\/(\*|[\w.+-]+)$/.test(each)),
};
/** The validator of each option. */
export const vendorModelValidators = {
  contextWindow: tokens,
  maxOutputTokens: tokens,
  prices: group,
  imageLimits: group,
  accepts: mediaTypes,
};

/** Node's `util.inspect` uses this key to ask an object for its printed form. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

const isNoImage = (mediaType: string): boolean => !mediaType.startsWith('image/');

/** `known`: the media types that the model accepts by default. Throws ConfigurationError for impossible limits of images. */
export function vendorModel(
  id: string,
  { contextWindow, maxOutputTokens, prices, imageLimits, accepts }: VendorModelOptions,
  secrets: readonly string[],
  stream: Model['stream'],
  {
    nativeOutput = true,
    provider,
    defaultAccepts,
  }: { nativeOutput?: boolean; provider: string; defaultAccepts: readonly string[] },
): Model {
  if (imageLimits) imageLimitsOf({ id, imageLimits });
  const shown = {
    ...{ id, provider },
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(prices && { prices }),
    ...(imageLimits && { imageLimits }),
    accepts: accepts ?? (imageLimits?.mediaTypes?.length === 0 ? defaultAccepts.filter(isNoImage) : defaultAccepts),
    ...(nativeOutput && { nativeOutput }),
  };
  const show = { value: () => shown };
  const model: Model = { ...shown, stream };
  return Object.defineProperties(model, { secrets: { value: secrets }, toJSON: show, [INSPECT]: show });
}
