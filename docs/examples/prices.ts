/** What a model costs and how much it can be given: by hand, or by its name from a list. */
import { openai } from 'runchart/openai';
import { knownModel } from 'runchart/prices';

const apiKey = 'sk-none-is-called-here';

// #region prices
const listed = openai('gpt-4o', { apiKey, ...knownModel('gpt-4o') });
const own = openai('house-model', {
  apiKey,
  baseURL: 'http://127.0.0.1:8080/v1',
  prices: { input: 0.2, output: 0.8, cachedInput: 0.05 },
  contextWindow: 32_768,
});
// #endregion

for (const { id, prices, contextWindow } of [listed, own]) {
  console.log(`${id}: ${prices ? 'priced' : 'no prices'}, ${contextWindow ?? 'unknown'} tokens`);
}
console.log(`house-model in the list: ${JSON.stringify(knownModel('house-model'))}`);
