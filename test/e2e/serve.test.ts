/** `runchart serve` as a process: its answers and its refusals. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { proves } from '../support/tier.ts';
import { type Program, start, startScript, storedEntries, TOOL_NAMES, temporaryDirectory } from './cli.ts';
import { modelServer } from './modelServer.ts';
import { entriesIn, explains, hangs, place, readsMainGo } from './runDirectory.ts';

interface Served {
  program: Program;
  url: string;
  token: string;
  sessions: string;
  cwd: string;
}

const head = { seq: 0, at: 1, runId: null, type: 'conversation', schema: 1, createdAt: 1 } as const;

async function serving(...scripts: Parameters<typeof modelServer>): Promise<Served> {
  const { cwd, env, sessions } = await place(await modelServer(...scripts));
  const program = start(['serve', '-m', 'm1', '--origin', 'http://page.example'], { cwd, env, input: null });
  await program.says('\n');
  return { program, sessions, cwd, ...(JSON.parse(program.stdout) as { url: string; token: string }) };
}

/** `fetch` sets Host itself, so this does not use it. */
function asked(url: string, headers: Record<string, string>): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    sent.on('error', reject).end();
  });
}

test('TRC-1 a request over HTTP is run with real tools and a real log, and its events equal the log', async () => {
  const { program, url, token, sessions } = await serving(readsMainGo, explains);
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const post = (path: string, body: unknown) =>
    fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  expect((await post('/conversations', { id: 's' })).status).toBe(201);
  expect((await post('/conversations/s/messages', { content: 'Read main.go' })).status).toBe(202);
  const events = await fetch(`${url}/conversations/s/events?token=${token}`);
  let text = '';
  for await (const chunk of events.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes('"type":"run-stop"') && text.includes('"boundary":"RunFinished"')) break;
  }
  program.process.kill('SIGTERM');
  expect(await program.ended).toEqual({ code: 0, signal: null });
  const stored = await storedEntries(sessions, 's');
  const streamedEntries = [...text.matchAll(/^event: entry\ndata: (.*)$/gm)].map(
    ([, data = '']) => JSON.parse(data) as unknown,
  );
  expect(streamedEntries).toEqual(stored);
});

test('H-301 H-302 H-303 H-304: host, origin and token are each required, on every path', async () => {
  const { url, token } = await serving();
  const authorization = `Bearer ${token}`;
  const list = `${url}/conversations`;
  const statusOf = async (headers: Record<string, string>, address = list) => (await asked(address, headers)).status;
  expect(await statusOf({ authorization })).toBe(200);
  expect(await statusOf({ authorization, origin: url })).toBe(200);
  expect(await statusOf({ authorization, origin: 'http://page.example' })).toBe(200);
  expect(await statusOf({ authorization, origin: 'https://evil.example' })).toBe(403);
  expect(await statusOf({ authorization, origin: 'null' })).toBe(403);
  expect(await statusOf({ authorization, host: 'rebind.evil.example' })).toBe(403);
  expect(await statusOf({ authorization, host: '127.0.0.1:1' })).toBe(403);
  expect(await statusOf({})).toBe(401);
  expect(await statusOf({ authorization: `Bearer ${token}x` })).toBe(401);
  const swapped = token.replace(/[a-z]/gi, (c) => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase()));
  expect(await statusOf({ authorization: `Bearer ${swapped}` })).toBe(401);
  expect(await statusOf({ authorization: `Bearer ${'x'.repeat(8000)}` })).toBe(401);
  expect(await statusOf({}, `${list}?token=${token}`)).toBe(401);
  expect(await statusOf({}, `${list}/nope/events?token=${token}`)).toBe(404);
});

test('a session of another directory is neither listed nor opened', async () => {
  const { program, url, token, sessions, cwd } = await serving();
  const elsewhere = await jsonlStore(sessions).open('other');
  await elsewhere.append([{ ...head, conversationId: 'other', cwd: `${cwd}/else` }], 0);
  await elsewhere.close();
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  expect(await (await fetch(`${url}/conversations`, { headers })).json()).toEqual([]);
  expect((await fetch(`${url}/conversations/other`, { headers })).status).toBe(404);
  const opened = await fetch(`${url}/conversations`, { method: 'POST', headers, body: '{"id":"other"}' });
  expect([opened.status, ((await opened.json()) as { code: string }).code]).toEqual([400, 'configuration']);
  expect(program.stderr).toBe('');
});

test('its sessions are listed in pages, by their status', async () => {
  const { url, token } = await serving();
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const post = (path: string, body: object) =>
    fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  for (const id of ['a', 'b', 'c']) expect((await post('/conversations', { id })).status).toBe(201);
  const listed = async (query: string) =>
    (await (await fetch(`${url}/conversations${query}`, { headers })).json()) as { id: string; cursor: string }[];
  const pages: string[][] = [];
  for (let cursor = ''; pages.length < 4; ) {
    const rows = await listed(`?limit=2${cursor}`);
    pages.push(rows.map(({ id }) => id));
    const last = rows.at(-1)?.cursor;
    if (last === undefined || rows.length < 2) break;
    cursor = `&cursor=${encodeURIComponent(last)}`;
  }
  expect(pages.map(({ length }) => length)).toEqual([2, 1]);
  expect(pages.flat().sort()).toEqual(['a', 'b', 'c']);
  expect(await listed('?status=waiting')).toEqual([]);
});

test('a signal ends the run as interrupted, durably', async () => {
  const { program, url, token, sessions } = await serving(hangs);
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  await fetch(`${url}/conversations`, { method: 'POST', headers, body: '{"id":"s"}' });
  await fetch(`${url}/conversations/s/messages`, { method: 'POST', headers, body: '{"content":"go"}' });
  program.process.kill('SIGINT');
  expect((await program.ended).code).toBe(0);
  const stored = await storedEntries(sessions, 's');
  expect(stored.find(({ type }) => type === 'run-stop')).toMatchObject({ reason: 'interrupted' });
});

test('TRC-1 --stdio: requests and events are JSON lines, and the end of the input ends it after the turn is reported', async () => {
  const { cwd, env, sessions } = await place(await modelServer(readsMainGo, explains));
  const lines = [
    { type: 'user-message', conversation: 's', content: 'Read main.go', requestId: 'r1' },
    { type: 'nonsense', requestId: 'r2' },
  ];
  const input = `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`;
  const program = start(['serve', '--stdio', '-m', 'm1'], { cwd, env, input });
  expect(await program.ended).toEqual({ code: 0, signal: null });
  const outgoing = entriesIn(program.stdout) as { type: string; [key: string]: unknown }[];
  const of = (type: string) => outgoing.filter((each) => each.type === type);
  expect(of('system-init')).toMatchObject([{ version: 1, conversation: 's', cwd, model: 'm1' }]);
  expect(of('entry').map(({ entry }) => entry)).toEqual(await storedEntries(sessions, 's'));
  expect(of('error')).toMatchObject([{ requestId: 'r2', code: 'malformed' }]);
  expect(of('answer')).toMatchObject([{ requestId: 'r1', value: { conversation: 's' } }]);
  expect(outgoing.at(-1)).toMatchObject({ type: 'turn-result', result: { subtype: 'success', turns: 2 } });
});

test('--stdio: rules and limits come from the configuration files, as far as the project is trusted', async () => {
  const command = JSON.stringify({ command: 'touch made' });
  const { cwd, env, root } = await place(
    await modelServer(
      (reply) => {
        reply.call('c1', 'Read', '{"file_path":"notes.txt"}');
        reply.finish('tool_calls');
      },
      (reply) => {
        reply.call('c2', 'Bash', command);
        reply.finish('tool_calls');
      },
    ),
  );
  const says = async (path: string, content: object): Promise<void> => {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, JSON.stringify(content));
  };
  await says(join(root, 'config/runchart/config.json'), { model: 'm1', permissions: { mode: 'acceptEdits' } });
  const hooks = { PreToolUse: [{ command: 'touch hooked' }] };
  const project = { permissions: { allow: ['bash(*)'], deny: ['read(notes.txt)'], mode: 'bypass' }, hooks };
  await says(join(cwd, '.runchart/config.json'), project);
  const input = `${JSON.stringify({ type: 'user-message', conversation: 's', content: 'go' })}\n`;
  const program = start(['serve', '--stdio'], { cwd, env: { ...env, XDG_CONFIG_HOME: join(root, 'config') }, input });
  expect(await program.ended).toEqual({ code: 0, signal: null });
  const outgoing = entriesIn(program.stdout) as { type: string; [key: string]: unknown }[];
  expect(outgoing[0]).toMatchObject({ type: 'system-init', model: 'm1', permissionMode: 'acceptEdits' });
  expect(outgoing[0]?.tools).toEqual(TOOL_NAMES);
  const log = outgoing.flatMap((each) =>
    each.type === 'entry' ? [each.entry as { type: string; code?: string }] : [],
  );
  expect(log.filter(({ type }) => type === 'tool-result')).toMatchObject([{ callId: 'c1', code: 'denied' }]);
  expect(log.filter(({ code }) => code === 'configuration_ignored')).toHaveLength(1);
  expect(outgoing.at(-1)).toMatchObject({
    type: 'turn-result',
    result: { subtype: 'suspended', pending: [{ callId: 'c2' }] },
  });
  expect(await readdir(cwd)).not.toContain('made');
  expect(await readdir(cwd)).not.toContain('hooked');
});

test('--stdio: a signal ends the run as interrupted, durably, with 130', async () => {
  const { cwd, env, sessions } = await place(await modelServer(hangs));
  const program = start(['serve', '--stdio', '-m', 'm1'], { cwd, env, input: null });
  program.process.stdin?.write('{"type":"user-message","conversation":"s","content":"go"}\n');
  await program.says('Let me think');
  program.process.kill('SIGTERM');
  expect((await program.ended).code).toBe(130);
  const stored = await storedEntries(sessions, 's');
  expect(stored.find(({ type }) => type === 'run-stop')).toMatchObject({ reason: 'interrupted' });
});

test.runIf(proves)(
  '10,000 sessions are listed and 200 of them are open at once, within 1,024 descriptors',
  async () => {
    const directory = await temporaryDirectory();
    const program = startScript(
      `
    import { readdir } from 'node:fs/promises';
    import { createAgent } from 'runchart';
    import { jsonlStore } from 'runchart/node';
    import { sessions } from 'runchart/transports';
    const model = {
      id: 'm',
      async *stream() {
        yield { type: 'text-delta', text: 'a' };
        yield { type: 'finish', reason: 'stop' };
      },
    };
    const agent = createAgent({ model, store: jsonlStore(${JSON.stringify(directory)}) });
    const shared = sessions(agent, { openMax: 200, waitMs: Infinity });
    const descriptors = async () => (await readdir('/proc/self/fd')).length;
    let next = 0;
    let most = 0;
    const ask = async () => {
      next += 1;
      const conversation = await shared.acquire('c' + next);
      await conversation.send('hi').result;
      if (next % 20 === 0) most = Math.max(most, await descriptors());
      return conversation;
    };
    const open = await Promise.all(Array.from({ length: 200 }, ask));
    const held = await descriptors();
    for (const each of open) shared.release(each);
    const visitor = async () => {
      while (next < 10_000) shared.release(await ask());
    };
    await Promise.all(Array.from({ length: 300 }, visitor));
    const listed = (await agent.list()).length;
    await shared.close();
    console.log(JSON.stringify({ listed, held, most, left: await descriptors() }));
    `,
      1_024,
    );
    expect(await program.ended, program.stderr).toEqual({ code: 0, signal: null });
    const { listed, held, most, left } = JSON.parse(program.stdout) as { [name: string]: number };
    expect(listed).toBe(10_000);
    // Each open session keeps its file open, and a closed one keeps none.
    expect(held).toBeGreaterThan(200);
    expect(most).toBeLessThan(1_024);
    expect(left).toBeLessThan(50);
  },
);
