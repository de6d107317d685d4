/** runchart with its own adapter on the same fetch. The run is iterated to its end, as in a user interface. */
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import { createAgent, defineTool, memoryStore } from '../../dist/src/index.js';
import { openai } from '../../dist/src/models/openai/openai.js';
import { scriptedFetch } from './scripts.mjs';

const echo = defineTool({
  name: 'echo',
  description: 'Returns its text.',
  parameters: z.object({ text: z.string() }),
  execute: async ({ text }) => `echo: ${text}`,
});
const limits = { turns: 1000, identicalCalls: 1000 };

async function* parsed(lines) {
  for (const line of lines) yield JSON.parse(line);
}

/** Keeps the log as lines of JSON in an array, like a host that moves it elsewhere. */
function arrayStore(lines) {
  return {
    open: async () => ({
      read: () => parsed(lines),
      async append(entries) {
        for (const entry of entries) lines.push(`${JSON.stringify(entry)}\n`);
      },
      close: async () => {},
    }),
    list: async () => [],
    delete: async () => {},
  };
}
const messagesOf = (list) =>
  list.map(({ role, content }) => {
    const parts = [{ type: 'text', text: content }];
    return role === 'user' ? { role, content: parts } : { role, content: parts, toolCalls: [] };
  });

async function turn(conversation) {
  const handle = conversation.send('Go.');
  let text = '';
  for await (const item of handle) if (item.type === 'text-delta') text += item.text;
  const result = await handle.result;
  if (result.termination !== 'NaturalEnd') throw new Error(JSON.stringify(result));
  return text;
}

/** The content of the file store after one run. */
export async function storedBytes(scenario) {
  const { jsonlStore } = await import('../../dist/src/node.js');
  const directory = await mkdtemp(join(tmpdir(), 'runchart-bench-'));
  try {
    const model = openai('bench', {
      apiKey: 'bench',
      baseURL: 'http://bench.local/v1',
      fetch: scriptedFetch(scenario),
    });
    const agent = createAgent({ model, tools: [echo], policies: { limits }, store: jsonlStore(directory) });
    await turn(await agent.open('bench'));
    await agent.close();
    return (await stat(join(directory, 'bench.jsonl'))).size;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

export function makeContender(scenario) {
  const { earlier, state, log, isOpen } = scenario;
  const model = openai('bench', { apiKey: 'bench', baseURL: 'http://bench.local/v1', fetch: scriptedFetch(scenario) });
  const made = (store) => createAgent({ model, tools: [echo], policies: { limits }, ...(store && { store }) });
  const history = earlier && messagesOf(earlier);
  if (!state && !log) {
    const store = memoryStore();
    const agent = made(store);
    const opened = () => agent.open(undefined, history && { history });
    if (isOpen) {
      const open = opened();
      return async () => ({ characters: (await turn(await open)).length, bytes: 0 });
    }
    return async function run() {
      const conversation = await opened();
      const text = await turn(conversation);
      await conversation.close();
      // The loop drops its messages as well.
      await store.delete(conversation.id);
      return { characters: text.length, bytes: 0 };
    };
  }
  let stored;
  return async function run() {
    if (state && !stored) {
      stored = [];
      const seeded = await made(arrayStore(stored)).open('bench', { history: messagesOf(state) });
      await seeded.close();
    }
    const lines = state ? [...stored] : [];
    const agent = made(arrayStore(lines));
    const conversation = await agent.open('bench');
    const text = await turn(conversation);
    await conversation.close();
    await agent.close();
    return { characters: text.length, bytes: lines.join('').length };
  };
}
