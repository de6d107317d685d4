/**
 * What a model must be to be called. Rule: a number that cannot be one is refused at start; a price that is unknown is
 * left out, never written as something else, so that a cost is a number or is said to be unknown.
 */

import { imageLimitsOf } from '../content/imageFormat.ts';
import { ConfigurationError } from '../errors.ts';
import { check, type Form, number, object, span, strings, word } from '../validation.ts';
import type { Model } from './model.ts';

/** USD per million tokens. */
const price: Form = { ...number(0), wanted: 'a finite number of USD of at least 0' };
/** What else a model and its prices hold is their own affair. */
const open = { refuses: () => false };
export const modelForm = object({ id: word, contextWindow: span(0), maxOutputTokens: span(0), secrets: strings }, open);
export const priceForm = object({ input: price, output: price, cachedInput: price, cacheWrite: price }, open);

/** Throws ConfigurationError for a model that cannot be called, or whose cost could not be told. */
export function checkModel(model: Model): void {
  const { id, prices } = model;
  if (id === undefined) throw new ConfigurationError('a model needs an id: it names the model in the log');
  const name = `the model ${String(id)}: `;
  check(name, model, modelForm, name);
  imageLimitsOf(model);
  if (prices === undefined) return;
  check(`${name}prices`, prices, priceForm);
  if (prices.input === undefined || prices.output === undefined) {
    throw new ConfigurationError(`${name}prices must hold input and output; leave prices out where they are not known`);
  }
}
