/**
 * Records the messages of the inspector's server to a page for real runs. `node test/inspect/recorder.mjs <folder>`
 * writes a file a run, one message a line. `readFrame` of src/inspect/wire.ts reads them when joined by commas. Needs a
 * build.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';
import * as z from 'zod';
import { createAgent, defineTool, subAgents } from '../../dist/src/index.js';
import { startInspector } from '../../dist/src/inspect/index.js';

const usage = { inputTokens: 803, outputTokens: 27 };
const call = (callId, name, args) => ({ type: 'tool-call', callId, name, args: JSON.stringify(args) });
const text = (words) => words.match(/\S+\s?/g).map((piece) => ({ type: 'text-delta', text: piece }));
const reply = (...parts) => [
  ...parts.flat(),
  { type: 'finish', reason: parts.flat().some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop', usage },
];

/** Returns one reply after the other, a piece every few milliseconds; sub-agents have a separate model. */
const scripted = (replies) => {
  let turn = 0;
  return {
    id: 'scripted',
    prices: { input: 2, output: 8 },
    async *stream({ tools }) {
      const isChild = tools.some(({ name }) => name === 'submit_result');
      const parts = isChild
        ? reply(call(`done-${++turn}`, 'submit_result', { result: 'It counts words.' }))
        : replies.shift();
      for (const part of parts) {
        await pause(4);
        yield part;
      }
    },
  };
};

const read = defineTool({
  name: 'Read',
  description: 'Reads a file.',
  parameters: z.object({ file_path: z.string() }),
  group: 'read-group',
  readOnly: true,
  async execute({ file_path }) {
    await pause(20);
    return `package main // ${file_path}`;
  },
});
const writeNote = defineTool({
  name: 'WriteNote',
  description: 'Writes a note.',
  parameters: z.object({ file_name: z.string(), text: z.string() }),
  group: 'write-group',
  needsApproval: true,
  execute: ({ file_name }) => `${file_name} was written`,
});

/** The runs that a page must be able to show. */
const RUNS = {
  demo: {
    replies: () => [
      reply(text("I'll read the file."), call('call_1', 'Read', { file_path: 'main.go' })),
      reply(text('This is a Go program in package main. It counts the words of its standard input.')),
      reply(
        text("I'll write the summary down."),
        call('call_2', 'WriteNote', { file_name: 'SUMMARY.md', text: 'It counts words.\n' }),
      ),
      reply(text('Done. SUMMARY.md was written.')),
    ],
    async act(conversation) {
      await conversation.send('Read main.go and tell me what it does').result;
      await conversation.send('Write that down in SUMMARY.md').result;
      await pause(300);
      await conversation.decide({ callId: 'call_2', suspension: 1, action: 'approve', by: 'ada' });
      await conversation.resume().result;
    },
  },
  waiting: {
    replies: () => [reply(text("I'll write it."), call('call_1', 'WriteNote', { file_name: 'A.md', text: 'a\nb\n' }))],
    act: (conversation) => conversation.send('Write it down').result,
  },
  parallel: {
    replies: () => [
      reply(
        text('Five at once.'),
        ...['a', 'b', 'c', 'd'].map((name) => call(`read_${name}`, 'Read', { file_path: `${name}.go` })),
        call('write_1', 'WriteNote', { file_name: 'B.md', text: 'x' }),
      ),
    ],
    act: (conversation) => conversation.send('Read all of them').result,
  },
  cancelled: {
    replies: () => [reply(text('A long answer that nobody waits for. '.repeat(20)))],
    async act(conversation) {
      const run = conversation.send('Tell me everything');
      await pause(80);
      await conversation.cancel();
      await run.result;
    },
  },
  subAgent: {
    replies: () => [
      reply(
        text('Two look at it.'),
        call('spawn_1', 'spawn_agents', {
          tasks: [
            { id: 'one', task: 'Look at main.go' },
            { id: 'two', task: 'Look at go.mod' },
          ],
        }),
      ),
      reply(text('Both say that it counts words.')),
    ],
    act: (conversation) => conversation.send('Have it looked at').result,
  },
};

async function recorded({ replies, act }) {
  const inspector = await startInspector({ control: true });
  const agent = createAgent({
    model: scripted(replies()),
    tools: [read, writeNote, subAgents()],
    inspect: inspector.observe,
  });
  const socket = new WebSocket(inspector.url.replace('http', 'ws').replace('/?', '/ws?'));
  const messages = [];
  try {
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    socket.on('message', (frame) => messages.push(...JSON.parse(String(frame))));
    socket.send(JSON.stringify({ type: 'subscribe', from: 0 }));
    const conversation = await agent.open('recorded');
    await act(conversation);
    await pause(200);
    return messages;
  } finally {
    socket.terminate();
    await agent.close();
    await inspector.close();
  }
}

const [folder = 'recordings'] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
for (const [name, run] of Object.entries(RUNS)) {
  const messages = await recorded(run);
  writeFileSync(join(folder, `${name}.jsonl`), messages.map((message) => `${JSON.stringify(message)}\n`).join(''));
  console.log(`${name}: ${messages.length} messages`);
}
