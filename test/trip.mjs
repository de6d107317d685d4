/**
 * Counts the files of the library that one message enters: one `send()` with one tool call, up to its result, and one
 * `view()` (`npm run trip`). Invariant: V8's precise coverage measures the executed code, starting after `open()`. The
 * load-time code of modules is not counted. Fails where more than `MOST` files are entered.
 */
import { Session } from 'node:inspector/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { createAgent, defineTool } from '../dist/src/index.js';

const MOST = 55;
const dist = fileURLToPath(new URL('../dist/', import.meta.url));

let turn = 0;
const model = {
  id: 'scripted',
  async *stream() {
    turn += 1;
    if (turn === 1) {
      yield { type: 'tool-call', callId: 'call-1', name: 'add', args: '{"a":1,"b":2}' };
      yield { type: 'finish', reason: 'tool-calls', usage: { inputTokens: 10, outputTokens: 5 } };
    } else {
      yield { type: 'text-delta', text: 'The sum is 3.' };
      yield { type: 'finish', reason: 'stop', usage: { inputTokens: 20, outputTokens: 5 } };
    }
  },
};
const add = defineTool({
  name: 'add',
  description: 'Adds two numbers.',
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => String(a + b),
});

/** The functions that were entered, by file. */
async function entered(work) {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  await session.post('Profiler.stopPreciseCoverage');
  session.disconnect();
  const files = new Map();
  for (const { url, functions } of result) {
    if (!url.startsWith('file:') || !fileURLToPath(url).startsWith(dist)) continue;
    const names = functions
      .filter(({ ranges }) => ranges[0].count > 0)
      .map(({ functionName }) => functionName || '(anonymous)');
    if (names.length > 0) files.set(relative(dist, fileURLToPath(url)).replace(/\.js$/, '.ts'), names);
  }
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

const agent = createAgent({ model, tools: [add] });
const conversation = await agent.open();
let view;
let result;
const files = await entered(async () => {
  result = await conversation.send('What is 1 + 2?').result;
  view = conversation.view();
});
await agent.close();
if (result.text !== 'The sum is 3.' || result.calls.length !== 1 || view.cycles.length !== 1) {
  throw new Error(`expected one call and its answer, got ${JSON.stringify(result)}`);
}

let functions = 0;
for (const [file, names] of files) {
  functions += names.length;
  console.log(`${file}  ${names.length}  ${process.argv.includes('--names') ? names.join(' ') : ''}`.trimEnd());
}
console.log(
  `\none send() with one tool call and one view() enter ${files.size} files and ${functions} functions; at most ${MOST} files are allowed`,
);
if (files.size > MOST) process.exitCode = 1;
