/**
 * The parts of a reply that arrive in every order. Invariant: the data that a message keeps for its provider has the order of the
 * provider's own numbers, in any order of the events.
 */
import { expect, it } from 'vitest';
import { openaiResponses } from '../../src/models/openai/responses.ts';
import { call, type Event, ended, playEvents, text, thinking } from './anthropicServer.ts';
import { finishIn, KEY, play, served } from './scriptedFetch.ts';

function permutations<T>(list: readonly T[]): T[][] {
  if (list.length < 2) return [[...list]];
  return list.flatMap((first, at) =>
    permutations(list.filter((_, index) => index !== at)).map((rest) => [first, ...rest]),
  );
}

const ITEMS: readonly object[] = [
  { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'sealed' },
  { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } },
  { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'hi', annotations: [] }] },
  { type: 'function_call', id: 'fc_1', call_id: 'call_a', name: 'look', arguments: '{}' },
];

it('Responses API: items that end in any order go back in the order of their numbers', async () => {
  const kept = new Set<string>();
  const orders = permutations([...ITEMS.entries()]);
  for (const order of orders) {
    const done = order.map(([output_index, item]) => ({ type: 'response.output_item.done', output_index, item }));
    const end = { type: 'response.completed', response: { object: 'response', status: 'completed', output: ITEMS } };
    const reply = [...done, end].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    const model = openaiResponses('gpt-5', {
      apiKey: KEY,
      baseURL: 'http://m.test/v1',
      fetch: async () => served([reply]),
    });
    const { parts, error } = await play(model);
    expect(error).toBeUndefined();
    kept.add(JSON.stringify(finishIn(parts)));
  }
  expect(orders).toHaveLength(24);
  expect(kept.size).toBe(1);
  expect([...kept][0]).toMatch(/rs_1.*ws_1.*msg_1.*call/);
});

it('Messages API: blocks that stream in any order go back in the order of their numbers', async () => {
  const blocks: readonly Event[][] = [thinking(0, 'why', 'signed'), text(1, 'hi'), call(2, 'toolu_a', '{}')];
  const kept = new Set<string>();
  for (const order of permutations(blocks)) {
    const { parts, error } = await playEvents(...order.flat(), ...ended('tool_use'));
    expect(error).toBeUndefined();
    kept.add(JSON.stringify(finishIn(parts)));
  }
  expect(kept.size).toBe(1);
  expect([...kept][0]).toMatch(/signed.*text.*call/);
});
