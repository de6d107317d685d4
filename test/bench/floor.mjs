/** The baseline: a careful hand-written loop on the vendor's client, with its stream and its accumulator. */
import OpenAI from 'openai';
import { scriptedFetch, toolSpec } from './scripts.mjs';

const tools = [
  { type: 'function', function: { name: 'echo', description: 'Returns its text.', parameters: toolSpec } },
];
const echo = async ({ text }) => `echo: ${text}`;

async function turn(client, messages) {
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
      calls[delta.index] ??= { id: delta.id, type: 'function', function: { name: delta.function.name, arguments: '' } };
      calls[delta.index].function.arguments += delta.function?.arguments ?? '';
    }
  }
  return { text, calls };
}

export function makeContender(scenario) {
  const { earlier = [], state, log, isOpen } = scenario;
  const client = new OpenAI({
    apiKey: 'bench',
    baseURL: 'http://bench.local/v1',
    maxRetries: 0,
    fetch: scriptedFetch(scenario),
  });
  const stored = state && JSON.stringify(state);
  const open = isOpen && [...earlier];
  return async function run() {
    const messages = open || [...(stored ? JSON.parse(stored) : earlier)];
    messages.push({ role: 'user', content: 'Go.' });
    const lines = [];
    const keep = (...added) => {
      messages.push(...added);
      if (log) lines.push(...added.map((message) => `${JSON.stringify(message)}\n`));
    };
    for (;;) {
      const { text, calls } = await turn(client, messages);
      if (calls.length === 0) {
        keep({ role: 'assistant', content: text });
        const bytes = stored ? JSON.stringify(messages).length : lines.join('').length;
        return { characters: text.length, bytes };
      }
      keep({ role: 'assistant', content: text || null, tool_calls: calls });
      const results = await Promise.all(calls.map((call) => echo(JSON.parse(call.function.arguments))));
      keep(...calls.map((call, index) => ({ role: 'tool', tool_call_id: call.id, content: results[index] })));
    }
  };
}
