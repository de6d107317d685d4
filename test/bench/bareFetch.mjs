/** The lower limit: fetch, events and JSON, tool calls, and nothing else; no client, no history, no accumulator. */
import { createParser } from 'eventsource-parser';
import { scriptedFetch } from './scripts.mjs';

const echo = async ({ text }) => `echo: ${text}`;

export function makeContender(scenario) {
  const request = scriptedFetch(scenario);
  const { earlier = [], state } = scenario;
  const before = JSON.stringify(state ?? earlier).slice(1, -1);
  return async function run() {
    let messages = before;
    for (;;) {
      const { body } = await request('http://bench.local/v1/chat/completions', { body: `{"messages":[${messages}]}` });
      const decoder = new TextDecoder();
      let text = '';
      const pieces = [];
      const parser = createParser({
        onEvent({ data }) {
          if (data === '[DONE]') return;
          const delta = JSON.parse(data).choices[0]?.delta;
          if (delta?.content) text += delta.content;
          for (const call of delta?.tool_calls ?? []) {
            pieces[call.index] = (pieces[call.index] ?? '') + (call.function.arguments ?? '');
          }
        },
      });
      for await (const chunk of body) parser.feed(decoder.decode(chunk, { stream: true }));
      if (pieces.length === 0) return { characters: text.length, bytes: 0 };
      await Promise.all(pieces.map((piece) => echo(JSON.parse(piece))));
      messages += ',{"role":"assistant"}';
    }
  };
}
