/**
 * A Messages server without a network: a `fetch` with the events of a test. Invariant: the events are plain data of the
 * test, not made by the tested code.
 */
import { type AnthropicOptions, anthropic } from '../../src/models/anthropic/anthropic.ts';
import type { ModelRequest } from '../../src/models/model.ts';
import { KEY, type Played, play, request, served } from './scriptedFetch.ts';

export interface Event {
  type: string;
  [field: string]: unknown;
}
export const sse = (...events: readonly Event[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');

export const began = (usage: object = { input_tokens: 10, output_tokens: 1 }): Event => ({
  type: 'message_start',
  message: { type: 'message', role: 'assistant', content: [], stop_reason: null, usage },
});
export const started = (index: number, content_block: object): Event => ({
  type: 'content_block_start',
  index,
  content_block,
});
export const added = (index: number, type: string, fields: object): Event => ({
  type: 'content_block_delta',
  index,
  delta: { type, ...fields },
});
export const stopped = (index: number): Event => ({ type: 'content_block_stop', index });
export const ended = (stop_reason: string, fields: object = {}): Event[] => [
  { type: 'message_delta', delta: { stop_reason, ...fields }, usage: { output_tokens: 12 } },
  { type: 'message_stop' },
];

export const text = (index: number, ...pieces: string[]): Event[] => [
  started(index, { type: 'text', text: '' }),
  ...pieces.map((piece) => added(index, 'text_delta', { text: piece })),
  stopped(index),
];
export const thinking = (index: number, words: string, signature = 'sealed'): Event[] => [
  started(index, { type: 'thinking', thinking: '', signature: '' }),
  added(index, 'thinking_delta', { thinking: words }),
  ...(signature === '' ? [] : [added(index, 'signature_delta', { signature })]),
  stopped(index),
];
export const call = (index: number, id: string, ...pieces: string[]): Event[] => [
  started(index, { type: 'tool_use', id, name: 'look', input: {} }),
  ...pieces.map((piece) => added(index, 'input_json_delta', { partial_json: piece })),
  stopped(index),
];

type Options = AnthropicOptions & { name?: string };
export interface Sent {
  url: string;
  headers: Headers;
  body: Record<string, unknown>;
}

/** Returns the server's requests, and the model with its scripted answers. The last one is repeated. */
export function modelOf(replies: readonly (string | Response)[], options: Options = {}) {
  const sent: Sent[] = [];
  const { name = 'claude-sonnet-4-6', ...rest } = options;
  const model = anthropic(name, {
    apiKey: KEY,
    baseURL: 'http://model.test',
    fetch: async (url, init) => {
      const reply = replies[Math.min(sent.length, replies.length - 1)] ?? '';
      sent.push({ url: String(url), headers: new Headers(init?.headers), body: JSON.parse(String(init?.body)) });
      return typeof reply === 'string' ? served([reply]) : reply;
    },
    ...rest,
  });
  return { model, sent };
}
export const playEvents = (...events: readonly Event[]): Promise<Played> =>
  play(modelOf([sse(began(), ...events)]).model);

export const plainReply = sse(began(), ...text(0, 'ok'), ...ended('end_turn'));
export async function bodyOf(fields: Partial<ModelRequest>, options: Options = {}) {
  const { model, sent } = modelOf([plainReply], options);
  await play(model, request(fields));
  return sent[0]?.body ?? {};
}
