/**
 * What a model must be to be called. Rule: a number that cannot be one is refused at start; a price that is unknown is
 * left out, never written as something else, so that a cost is a number or is said to be unknown.
 */
import { ConfigurationError } from '../errors.ts';
import { checkObject, checkValues, type Form, type Forms, isList, number, span, word } from '../form.ts';
import { imageLimitsOf } from '../images/limits.ts';
import type { Model } from './model.ts';

const secrets: Form = {
  wanted: 'a list of strings',
  takes: (value) => isList(value) && value.every((each) => typeof each === 'string'),
  secret: true,
};
export const modelForms: Forms = new Map([
  ['id', word],
  ['contextWindow', span(0)],
  ['maxOutputTokens', span(0)],
  ['secrets', secrets],
]);

/** USD per million tokens. */
const price: Form = { ...number(0), wanted: 'a finite number of USD of at least 0' };
export const priceForms: Forms = new Map([
  ['input', price],
  ['output', price],
  ['cachedInput', price],
  ['cacheWrite', price],
]);

/** Throws ConfigurationError for a model that cannot be called, or whose cost could not be told. */
export function checkModel(model: Model): void {
  const { id, prices } = model;
  if (id === undefined) throw new ConfigurationError('a model needs an id: it names the model in the log');
  checkValues(`the model ${String(id)}: `, model, modelForms);
  imageLimitsOf(model);
  if (prices === undefined) return;
  const name = `the model ${id}: prices`;
  checkObject(name, prices);
  if (prices.input === undefined || prices.output === undefined) {
    throw new ConfigurationError(`${name} must hold input and output; leave prices out where they are not known`);
  }
  checkValues(`${name}.`, prices, priceForms);
}
