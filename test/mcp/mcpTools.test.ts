/** MCP tools with the reference servers, over stdio and HTTP: real processes and connections. */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createAgent, type Live, type LogEntry, memoryStore } from '../../src/index.ts';
import { type McpTools, mcpTools } from '../../src/mcp/mcpTools.ts';
import { permissions } from '../../src/node.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { temporaryFolder } from '../support/temporaryFolder.ts';
import { proves } from '../support/tier.ts';

const here = createRequire(import.meta.url);
const programOf = (name: string): string => here.resolve(`@modelcontextprotocol/${name}/dist/index.js`);
const stdio = (name: string, ...args: string[]) => ({ command: process.execPath, args: [programOf(name), ...args] });

const open: McpTools[] = [];
async function connected(...servers: Parameters<typeof mcpTools>): Promise<McpTools> {
  const made = await mcpTools(...servers);
  open.push(made);
  return made;
}
afterAll(() => Promise.all(open.map((made) => made.close())));

const everything = connected({ everything: stdio('server-everything') });
const results = (log: readonly LogEntry[]) =>
  log.flatMap((entry) => (entry.type === 'tool-result' ? [{ ...entry, text: JSON.stringify(entry.content) }] : []));

describe('tools of the reference server', () => {
  it("they are listed as mcp__server__tool, with the server's description, and one that runs only as a task is skipped", async () => {
    const { tools, left } = await everything;
    const names = tools.map(({ name }) => name);
    expect(names).toContain('mcp__everything__echo');
    expect(names).not.toContain('mcp__everything__simulate-research-query');
    expect(left).toEqual([{ server: 'everything', tool: 'simulate-research-query', why: 'it runs only as a task' }]);
    const model = scripted(['done']);
    await createAgent({ model, tools }).run('hi');
    const echo = model.calls[0]?.tools.find(({ name }) => name === 'mcp__everything__echo');
    expect(echo?.parameters).toMatchObject({ type: 'object', required: ['message'] });
  });

  it('they run, return text and images, and refuse arguments that do not match their schema', async () => {
    const { tools } = await everything;
    const calls = [
      call('c1', 'mcp__everything__echo', { message: 'hi' }),
      call('c2', 'mcp__everything__get-tiny-image', {}),
      call('c3', 'mcp__everything__echo', { message: 7 }),
    ];
    const agent = createAgent({ model: scripted([calls, 'done']), tools });
    const conversation = await agent.open('c');
    await conversation.send('go').result;
    const [echo, image, wrong] = results(conversation.log()).sort((a, b) => a.callId.localeCompare(b.callId));
    expect(echo).toMatchObject({ outcome: 'succeeded', content: [{ type: 'text', text: 'Echo: hi' }] });
    expect(image?.content).toContainEqual(expect.objectContaining({ type: 'image', mediaType: 'image/png' }));
    expect(wrong).toMatchObject({ outcome: 'failed', code: 'invalid_arguments' });
    await agent.close();
  });

  it('they report their progress, and a cancel ends a call at the server at once', async () => {
    const { tools } = await everything;
    const slow = call('c1', 'mcp__everything__trigger-long-running-operation', { duration: 30, steps: 150 });
    const agent = createAgent({ model: scripted([[slow]]), tools });
    const conversation = await agent.open('c');
    const signals: Live[] = [];
    conversation.live$.subscribe((signal) => signals.push(signal));
    const run = conversation.send('go');
    const progress = () =>
      signals.filter((signal) => signal.type === 'tool-progress' && typeof signal.update === 'object');
    await expect.poll(() => progress().length).toBeGreaterThan(1);
    expect(progress()[0]).toMatchObject({ update: { progress: 1, total: 150 } });
    await run.cancel();
    expect(await run.result).toMatchObject({ termination: 'Cancelled' });
    await agent.close();
  });

  it('permission rules apply by server, and a read-only tool needs no approval', async () => {
    const { tools } = await everything;
    const rules = permissions({ deny: ['mcp__everything__get-env'] });
    const calls = ['echo', 'get-env', 'toggle-simulated-logging'].map((name, index) =>
      call(`c${index}`, `mcp__everything__${name}`, name === 'echo' ? { message: 'hi' } : {}),
    );
    const agent = createAgent({ model: scripted([calls, 'done']), tools, plugins: [rules] });
    const conversation = await agent.open('c');
    expect(await conversation.send('go').result).toMatchObject({ termination: 'Suspended' });
    expect(conversation.pending.map(({ callId }) => callId)).toEqual(['c2']);
    const ended = results(conversation.log()).map(({ callId, outcome, code }) => [callId, outcome, code]);
    expect(ended).toContainEqual(['c0', 'succeeded', undefined]);
    expect(ended).toContainEqual(['c1', 'failed', 'denied']);
    await conversation.cancel();
    await agent.close();
  });
});

/** A short server whose one tool `show` returns this content. */
const SERVER = `
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' },
  }),
  'tools/list': () => ({ tools: [{ name: 'show', inputSchema: { type: 'object' } }] }),
  'tools/call': () => ({ content: JSON.parse(process.argv[1]) }),
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method](params) }));
});`;

it('an unsupported image is named in the result, and the rest of the result is kept', async () => {
  const content = [
    { type: 'text', text: 'drawn' },
    { type: 'image', mimeType: 'image/svg+xml', data: 'aGk=' },
  ];
  const { tools } = await connected({
    s: { command: process.execPath, args: ['-e', SERVER, JSON.stringify(content)] },
  });
  const agent = createAgent({ model: scripted([[call('c1', 'mcp__s__show', {})], 'done']), tools });
  const conversation = await agent.open('c');
  await conversation.send('go').result;
  expect(results(conversation.log())).toMatchObject([
    { outcome: 'succeeded', content: [{ text: 'drawn' }, { text: expect.stringContaining('"image/svg+xml"') }] },
  ]);
  await agent.close();
});

describe('a server that asks a person', () => {
  const asking = call('c1', 'mcp__everything__trigger-elicitation-request', {});

  it('it suspends the call with the question and its schema, and continues the same call after the answer', async () => {
    const { tools } = await everything;
    const agent = createAgent({ model: scripted([[asking], 'thanks']), tools });
    const conversation = await agent.open('c');
    await conversation.send('go').result;
    expect(conversation.pending).toMatchObject([
      { callId: 'c1', reason: 'elicitation', payload: { server: 'everything', schema: { type: 'object' } } },
    ]);
    await conversation.decide({ callId: 'c1', action: 'answer', payload: { name: 'Ada', check: true } });
    expect(await conversation.resume().result).toMatchObject({ termination: 'NaturalEnd', text: 'thanks' });
    const [result] = results(conversation.log());
    expect(result).toMatchObject({ outcome: 'succeeded' });
    expect(result?.text).toContain('Name: Ada');
    await agent.close();
  });

  it.skipIf(!proves)('if the process that asked has ended, the replay asks again and receives the answer', async () => {
    const store = memoryStore();
    const first = await connected({ everything: stdio('server-everything') });
    const agent = createAgent({ model: scripted([[asking]]), tools: first.tools, store });
    const conversation = await agent.open('c');
    await conversation.send('go').result;
    await agent.close();
    await first.close();
    const second = await connected({ everything: stdio('server-everything') });
    const later = createAgent({ model: scripted(['thanks']), tools: second.tools, store });
    const reopened = await later.open('c');
    await reopened.decide({ callId: 'c1', action: 'answer', payload: { name: 'Grace' } });
    await reopened.resume().result;
    expect(results(reopened.log())[0]?.text).toContain('Name: Grace');
    await later.close();
  });
});

describe('the file server', () => {
  it('it reads inside its root and refuses outside paths, as a failed result', async () => {
    const root = temporaryFolder();
    writeFileSync(join(root, 'a.txt'), 'inside');
    const { tools } = await connected({ files: stdio('server-filesystem', root) });
    const read = (callId: string, path: string) => call(callId, 'mcp__files__read_text_file', { path });
    const write = call('c3', 'mcp__files__write_file', { path: join(root, 'b.txt'), content: 'new' });
    const calls = [read('c1', join(root, 'a.txt')), read('c2', '/etc/passwd'), write];
    const agent = createAgent({ model: scripted([calls, 'done']), tools });
    const conversation = await agent.open('c');
    await conversation.send('go').result;
    const byId = new Map(results(conversation.log()).map((result) => [result.callId, result]));
    expect(byId.get('c1')?.text).toContain('inside');
    expect(byId.get('c2')).toMatchObject({ outcome: 'failed' });
    expect(readFileSync(join(root, 'b.txt'), 'utf8')).toBe('new');
    await agent.close();
  });
});

describe('over HTTP', () => {
  it('a server is reached by its address', async () => {
    const port = await freePort();
    const env = { ...process.env, PORT: String(port) };
    const child = spawn(process.execPath, [programOf('server-everything'), 'streamableHttp'], { env, stdio: 'ignore' });
    try {
      const url = `http://127.0.0.1:${port}/mcp`;
      await expect
        .poll(() =>
          fetch(url).then(
            () => true,
            () => false,
          ),
        )
        .toBe(true);
      const { tools } = await connected({ web: { url } });
      const agent = createAgent({
        model: scripted([[call('c1', 'mcp__web__echo', { message: 'far' })], 'done']),
        tools,
      });
      const conversation = await agent.open('c');
      await conversation.send('go').result;
      expect(results(conversation.log())[0]?.text).toContain('Echo: far');
      await agent.close();
    } finally {
      child.kill();
    }
  });
});

describe('servers that cannot be connected', () => {
  it('the error names the server, and the other servers are released', async () => {
    const wrong = mcpTools({ files: stdio('server-filesystem', tmpdir()), gone: { command: '/nowhere/at-all' } });
    await expect(wrong).rejects.toMatchObject({ code: 'mcp', message: expect.stringContaining('the MCP server gone') });
    await expect(mcpTools({ 'a b': stdio('server-everything') })).rejects.toMatchObject({ code: 'configuration' });
  });

  it.skipIf(!proves)('the next call starts a server again that has ended', async () => {
    const { tools, close } = await connected({ everything: stdio('server-everything') });
    await close();
    const agent = createAgent({
      model: scripted([[call('c1', 'mcp__everything__echo', { message: 'again' })], 'done']),
      tools,
    });
    const conversation = await agent.open('c');
    await conversation.send('go').result;
    expect(results(conversation.log())[0]?.text).toContain('Echo: again');
    await agent.close();
    await close();
  });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
