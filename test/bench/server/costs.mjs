/**
 * The cost of runchart in one process, compared with the least possible work: opening a long log, the first answers, many tools in one
 * round, and many conversations on disk.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import { createAgent, defineTool, memoryStore } from '../../../dist/src/index.js';
import { jsonlStore } from '../../../dist/src/node.js';
import { createHandlers, sessions } from '../../../dist/src/transports/index.js';
import { repeatedLog } from '../longLog.mjs';
import { makeLogs } from '../manyLogs.mjs';
import { serve } from './remote.mjs';
import { lookup, scriptedReply, TOOL } from './scriptedReply.mjs';

const tool = defineTool({
  name: TOOL,
  description: 'Looks up a key.',
  parameters: z.object({ key: z.string() }),
  execute: lookup,
});
const model = {
  id: 'bench',
  stream({ messages }, { signal }) {
    const prompt = messages.findLast(({ role }) => role === 'user').content[0].text;
    return scriptedReply({ prompt, isAfterTools: messages.at(-1).role === 'tool', signal });
  },
};
const policies = { limits: { turns: 10_000, identicalCalls: 100_000, toolCallsPerTurn: 10_000 } };
const agentOf = (store) => createAgent({ model, tools: [tool], policies, store });

const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
async function cpuOf(act) {
  const since = cpuMs();
  await act();
  return cpuMs() - since;
}
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

async function inDirectory(act) {
  const directory = mkdtempSync(join(tmpdir(), 'runchart-costs-'));
  try {
    return await act(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Reads events until the last entry has come. */
async function readEvents(handler, id, entries) {
  const response = await handler(new Request(`http://h/conversations/${id}/events`));
  const last = Buffer.from(`id: ${entries - 1}\n`);
  const reader = response.body.getReader();
  for (;;) {
    const { value } = await reader.read();
    if (Buffer.from(value).includes(last)) break;
  }
  await reader.cancel();
}

async function answersOf(directory, id) {
  const text = readFileSync(join(directory, `${id}.jsonl`), 'utf8');
  const costs = {};
  let parsed;
  costs.parse = await cpuOf(() => {
    parsed = text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  });
  costs.stringify = await cpuOf(() => JSON.stringify(parsed));
  const agent = agentOf(jsonlStore(directory));
  const shared = sessions(agent);
  const handler = createHandlers(agent, { authorize: () => true, sessions: shared });
  let conversation;
  costs.open = await cpuOf(async () => {
    conversation = await shared.acquire(id);
  });
  const entries = conversation.log().length;
  costs.show = await cpuOf(async () => (await handler(new Request(`http://h/conversations/${id}`))).text());
  costs.events = await cpuOf(() => readEvents(handler, id, entries));
  shared.release(conversation);
  await agent.close();
  return costs;
}

async function roundOf(store, tools) {
  const agent = agentOf(store);
  const conversation = await agent.open('c');
  const costs = [];
  for (let time = 0; time < 10; time++) costs.push(await cpuOf(() => conversation.send(`tools ${tools}`).result));
  await agent.close();
  // V8 compiles the executed code in the first rounds.
  return (median(costs.slice(3)) * 1000) / tools;
}

serve({
  /** CPU in milliseconds: medians over some openings of a log. */
  longLog: ({ entries, times }) =>
    inDirectory(async (directory) => {
      const agent = agentOf(jsonlStore(directory));
      const conversation = await agent.open('growth');
      for (let turn = 0; turn < 20; turn++) await conversation.send(`tools ${1 + (turn % 4)}`).result;
      await agent.close();
      const id = await repeatedLog(directory, entries);
      const all = [];
      for (let time = 0; time < times; time++) all.push(await answersOf(directory, id));
      return Object.fromEntries(Object.keys(all[0]).map((name) => [name, median(all.map((costs) => costs[name]))]));
    }),
  /** Microseconds of CPU for each tool of one round. */
  tools: ({ count, isStored }) =>
    isStored ? inDirectory((directory) => roundOf(jsonlStore(directory), count)) : roundOf(memoryStore(), count),
  /** Milliseconds on the clock, of a directory that was listed before the start of the process. */
  manyLogs: ({ count }) =>
    inDirectory(async (directory) => {
      makeLogs(directory, count);
      const timed = async (act) => {
        const since = performance.now();
        await act();
        return performance.now() - since;
      };
      const first = await timed(() => jsonlStore(directory).list({ limit: 100 }));
      const agent = agentOf(jsonlStore(directory));
      const start = await timed(() => agent.list({ limit: 100 }));
      const list = [];
      for (let time = 0; time < 20; time++) list.push(await timed(() => agent.list({ limit: 100 })));
      const open = [];
      for (let index = 0; index < 50; index++) open.push(await timed(() => agent.open(`c${index}`)));
      await agent.close();
      return { first, start, list: median(list), open: median(open) };
    }),
});
