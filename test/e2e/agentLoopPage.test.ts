/**
 * `docs/examples/agentLoopPage.ts` as a process that uses a model server: the events of its page, and the abort by a
 * closed page.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { transform } from 'esbuild';
import { beforeAll, expect, inject, test } from 'vitest';
import { start } from './cli.ts';
import { modelServer, type Script } from './modelServer.ts';
import { entriesIn, KEY } from './runDirectory.ts';

const main = (): string => join(inject('packageRoot'), 'docs', 'examples', 'agentLoopPage.mjs');

beforeAll(async () => {
  const source = await readFile(new URL('../../docs/examples/agentLoopPage.ts', import.meta.url), 'utf8');
  const { code } = await transform(source, { loader: 'ts', format: 'esm', target: 'es2022' });
  await writeFile(main(), code);
});

test('the page shows a request with its tool, and a closed page ends its request at the server', async () => {
  let gone: Promise<void> | undefined;
  const looks: Script = (reply) => {
    reply.text('I look.');
    reply.call('call_1', 'weather', '{"city":"Lisbon"}');
    reply.finish('tool_calls');
  };
  const says: Script = (reply) => {
    reply.text('Dry.');
    reply.finish('stop');
  };
  const hangs: Script = (reply) => {
    reply.text('Let me think');
    gone = reply.gone;
  };
  const server = await modelServer(looks, says, hangs);
  const env = { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: server.baseURL, OPENAI_MODEL: 'm1' };
  const program = start([], { env, main: main(), input: null });
  await program.says('http://');
  const url = program.stdout.trim();
  expect(await (await fetch(url)).text()).toContain('<form>');
  expect((await fetch(`${url}/ask`, { method: 'POST', body: 'question=1' })).status).toBe(415);

  const ask = (question: string) =>
    fetch(`${url}/ask`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ question }),
    });
  expect(entriesIn(await (await ask('Is it dry?')).text())).toEqual([
    { kind: 'text', text: 'I look.' },
    { kind: 'tools', text: 'weather …' },
    { kind: 'tools', text: 'weather {"city":"Lisbon"} completed: 18 °C and dry in Lisbon' },
    { kind: 'text', text: 'Dry.' },
    { kind: 'end', text: '2 model calls, 240 tokens so far' },
  ]);

  const { body } = await ask('And now?');
  const reader = body?.getReader();
  expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('Let me think');
  await reader?.cancel();
  await gone;
  expect(server.asked.map(({ messages }) => messages.length)).toEqual([2, 4, 6]);
});
