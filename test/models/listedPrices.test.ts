/**
 * Every form of a price in every field of a list: absent, 0, a price, a price by the length of the prompt. The package with
 * the lists is replaced, because its lists change and have few of these forms. Invariant: a price of 0 is a price, and an
 * absent one stays absent, whatever the other fields hold.
 */
import { describe, expect, it, vi } from 'vitest';

const list = vi.hoisted(() => ({ prices: {} as object }));
vi.mock('@pydantic/genai-prices', () => ({ calcPrice: () => ({ model_price: list.prices, model: {} }) }));

import { knownModel } from '../../src/models/prices.ts';

/** The possible values of a field in a list, with the price that each means. */
const FORMS: readonly (readonly [listed: number | object | undefined, price: number | undefined])[] = [
  [undefined, undefined],
  [0, 0],
  [3, 3],
  [{ base: 0, tiers: [{ start: 200_000, price: 4 }] }, 0],
  [{ base: 2, tiers: [{ start: 200_000, price: 4 }] }, 2],
];
const FIELDS = {
  input: 'input_mtok',
  output: 'output_mtok',
  cachedInput: 'cache_read_mtok',
  cacheWrite: 'cache_write_mtok',
};

const withForms = (lists: object[], field: string, at: 0 | 1): object[] =>
  lists.flatMap((each) => FORMS.map((form) => (form[at] === undefined ? { ...each } : { ...each, [field]: form[at] })));

/** The lists of all forms, and in the same order the meaning of each. */
const LISTS = Object.values(FIELDS).reduce((lists, field) => withForms(lists, field, 0), [{}] as object[]);
const PRICES = Object.keys(FIELDS).reduce((lists, field) => withForms(lists, field, 1), [{}] as object[]);

describe('the prices of a list', () => {
  it('of a model with a price of the input and of the output are exactly the listed ones', () => {
    const expected = PRICES.map((prices) => ('input' in prices && 'output' in prices ? { prices } : {}));
    const results = LISTS.map((prices) => {
      list.prices = prices;
      return knownModel('any');
    });
    expect(results).toHaveLength(FORMS.length ** 4);
    expect(results).toEqual(expected);
  });
});
