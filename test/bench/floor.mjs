/** The floor: a loop that a careful person writes by hand on the vendor's client, with its stream and its accumulator. */
import OpenAI from 'openai';
import { scriptedFetch, toolSpec } from './scripts.mjs';

const tools = [
  { type: 'function', function: { name: 'echo', description: 'Returns its text.', parameters: toolSpec } },
];
const echo = async ({ text }) => `echo: ${text}`;

export function makeContender(replies) {
  const client = new OpenAI({
    apiKey: 'bench',
    baseURL: 'http://bench.local/v1',
    maxRetries: 0,
    fetch: scriptedFetch(replies),
  });
  return async function run() {
    const messages = [{ role: 'user', content: 'Go.' }];
    for (;;) {
      const stream = await client.chat.completions.create({
        model: 'bench',
        messages,
        tools,
        stream: true,
        stream_options: { include_usage: true },
      });
      let text = '';
      const calls = [];
      for await (const part of stream) {
        const choice = part.choices[0];
        if (!choice) continue;
        if (choice.delta.content) text += choice.delta.content;
        for (const delta of choice.delta.tool_calls ?? []) {
          calls[delta.index] ??= {
            id: delta.id,
            type: 'function',
            function: { name: delta.function.name, arguments: '' },
          };
          calls[delta.index].function.arguments += delta.function?.arguments ?? '';
        }
      }
      if (calls.length === 0) return text;
      messages.push({ role: 'assistant', content: text || null, tool_calls: calls });
      const results = await Promise.all(calls.map((call) => echo(JSON.parse(call.function.arguments))));
      calls.forEach((call, index) => {
        messages.push({ role: 'tool', tool_call_id: call.id, content: results[index] });
      });
    }
  };
}
