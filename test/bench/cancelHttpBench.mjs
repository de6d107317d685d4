/**
 * The delay of a cancel while a server hangs: in a conversation, at the socket of its request, and in a program that
 * receives a signal. Invariant: a separate server on the loopback sends nothing, or some words and no more.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createAgent } from '../../dist/src/index.js';
import { openai } from '../../dist/src/models/openai/openai.js';

const MAIN = fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url));
const WORDS = { choices: [{ index: 0, delta: { content: 'Let me think' }, finish_reason: null }] };
const CHUNK = `data: ${JSON.stringify({ id: 'r', object: 'chat.completion.chunk', created: 1, ...WORDS })}\n\n`;

/** One request at a time: `asked` and `closed` belong to the next one. */
async function hangingServer(speaks) {
  const server = createServer((request, response) => {
    request.resume();
    next.asked.resolve();
    response.on('close', next.closed.resolve);
    if (!speaks) return;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(CHUNK);
  });
  const signal = () => {
    let resolve;
    const promise = new Promise((give) => {
      resolve = give;
    });
    return { promise, resolve };
  };
  const anew = () => ({ asked: signal(), closed: signal() });
  let next = anew();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    baseURL: `http://127.0.0.1:${server.address().port}/v1`,
    request() {
      next = anew();
      return next;
    },
    end() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Milliseconds until a cancelled conversation is idle, and until its socket is closed. */
export async function conversations(trials, speaks) {
  const server = await hangingServer(speaks);
  const results = [];
  for (let trial = 0; trial < trials; trial += 1) {
    const { asked, closed } = server.request();
    const agent = createAgent({ model: openai('m', { baseURL: server.baseURL, apiKey: 'none' }) });
    const conversation = await agent.open('c');
    const firstSignal = speaks && new Promise((resolve) => conversation.live$.subscribe(resolve));
    conversation.send('hi');
    await asked.promise;
    await firstSignal;
    const since = performance.now();
    await conversation.cancel();
    const idle = performance.now() - since;
    await closed.promise;
    results.push({ idle, socket: performance.now() - since });
    await agent.close();
  }
  server.end();
  return results;
}

/** Milliseconds from a signal until the program has ended with a durable stop. */
export async function programs(trials) {
  const server = await hangingServer(true);
  const place = mkdtempSync(join(tmpdir(), 'runchart-signal-'));
  const env = {
    PATH: process.env.PATH,
    OPENAI_API_KEY: 'none',
    OPENAI_BASE_URL: server.baseURL,
    XDG_STATE_HOME: place,
  };
  const results = [];
  for (let trial = 0; trial < trials; trial += 1) {
    server.request();
    const child = spawn(process.execPath, [MAIN, 'run', 'hello', '-m', 'm1'], {
      env,
      cwd: place,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false }))
      if (text.includes('think')) break;
    const since = performance.now();
    child.kill(['SIGINT', 'SIGTERM', 'SIGHUP'][trial % 3]);
    const [code] = await once(child, 'exit');
    if (code !== 130) throw new Error(`expected 130, the program ended with ${code}`);
    results.push({ idle: performance.now() - since });
  }
  server.end();
  rmSync(place, { recursive: true, force: true });
  return results;
}
