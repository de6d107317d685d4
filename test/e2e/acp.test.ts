/** `runchart acp` as a process that an editor starts, with the SDK's own client. */
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { client, type McpServer, ndJsonStream, type SessionUpdate } from '@agentclientprotocol/sdk';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { isAlive, stdioServer } from '../mcp/stdioServer.ts';
import { mainWithPackages, start, storedEntries } from './cli.ts';
import { modelServer, type Script } from './modelServer.ts';
import { explains, hangs, place, readsMainGo } from './runDirectory.ts';

const main = (): string => join(inject('packageRoot'), 'dist', 'src', 'cli', 'main.js');

/** An editor with the program as its agent. `raw`: every byte that came on standard output. */
async function editor(env: Record<string, string>, cwd: string, program = main()) {
  const child = spawn(process.execPath, [program, 'acp', '-m', 'm'], {
    cwd,
    env: { PATH: process.env.PATH ?? '', HOME: '/nonexistent', LANG: 'C.UTF-8', ...env },
    stdio: 'pipe',
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let raw = '';
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdout.on('data', (bytes: Buffer) => {
    raw += bytes.toString('utf8');
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const updates: SessionUpdate[] = [];
  const app = client({ name: 'editor' })
    .onNotification('session/update', ({ params }) => void updates.push(params.update))
    .onRequest('session/request_permission', () => ({ outcome: { outcome: 'selected', optionId: 'once' } }));
  const output = Writable.toWeb(child.stdin) as WritableStream<Uint8Array>;
  const input = Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>;
  const { agent } = app.connect(ndJsonStream(output, input));
  await agent.request('initialize', { protocolVersion: 1 });
  const shows = (text: string) => expect.poll(() => JSON.stringify(updates), { interval: 10 }).toContain(text);
  return {
    agent,
    updates,
    child,
    ended,
    shows,
    get raw() {
      return raw;
    },
    get stderr() {
      return stderr;
    },
  };
}

const touches: Script = (reply) => {
  reply.call('call_1', 'Bash', JSON.stringify({ command: 'echo once >> made.txt; echo noise >&2' }));
  reply.finish('tool_calls');
};
const sleeps: Script = (reply) => {
  reply.call('call_1', 'Bash', JSON.stringify({ command: 'echo once >> made.txt; sleep 60' }));
  reply.finish('tool_calls');
};
const asks = (text: string) => [{ type: 'text' as const, text }];

describe('runchart acp', () => {
  test('serves an editor from initialize to the end of its input, with nothing else on standard output', async () => {
    const server = await modelServer(readsMainGo, explains, touches, explains);
    const { cwd, env } = await place(server);
    const served = await editor(env, cwd);
    const { agent, updates } = served;
    const { sessionId } = await agent.request('session/new', { cwd, mcpServers: [] });
    expect(await agent.request('session/prompt', { sessionId, prompt: asks('Read main.go') })).toEqual({
      stopReason: 'end_turn',
    });
    await agent.request('session/prompt', { sessionId, prompt: asks('touch it') });
    expect(await readFile(join(cwd, 'made.txt'), 'utf8')).toBe('once\n');
    expect(updates.map(({ sessionUpdate }) => sessionUpdate)).toContain('tool_call');
    served.child.stdin.end();
    expect(await served.ended).toBe(0);
    const lines = served.raw.split('\n').filter((line) => line !== '');
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' });
    expect(served.raw.endsWith('\n')).toBe(true);
    expect(served.stderr).not.toContain('Error');
  });

  test('killed in the middle of a call: a load shows the whole history, and nothing runs twice', async () => {
    const server = await modelServer(sleeps, explains);
    const { cwd, env, sessions } = await place(server);
    const first = await editor(env, cwd);
    const { sessionId } = await first.agent.request('session/new', { cwd, mcpServers: [] });
    first.agent.request('session/prompt', { sessionId, prompt: asks('touch it') }).catch(() => undefined);
    const made = (): Promise<string> => readFile(join(cwd, 'made.txt'), 'utf8').catch(() => '');
    await expect.poll(made, { interval: 10 }).toBe('once\n');
    first.child.kill('SIGKILL');
    await first.ended;
    const second = await editor(env, cwd);
    const listed = await second.agent.request('session/list', { cwd });
    expect(listed.sessions).toMatchObject([{ sessionId, title: 'touch it' }]);
    await second.agent.request('session/load', { sessionId, cwd, mcpServers: [] });
    await second.shows('touch it');
    const calls = second.updates.filter((update) => 'toolCallId' in update && update.toolCallId === 'call_1');
    expect(calls.at(0)).toMatchObject({ sessionUpdate: 'tool_call', kind: 'execute' });
    expect(calls.at(-1)).toMatchObject({ status: 'failed' });
    expect(await second.agent.request('session/prompt', { sessionId, prompt: asks('and now?') })).toEqual({
      stopReason: 'end_turn',
    });
    expect(await made()).toBe('once\n');
    second.child.stdin.end();
    await second.ended;
    const entries = await storedEntries(sessions, sessionId);
    expect(entries.filter(({ type }) => type === 'tool-started')).toHaveLength(1);
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index));
  });

  test('connects the MCP servers that the editor names, also in a project that is not trusted, and ends them', async () => {
    const notes = stdioServer({ tools: ['echo'] });
    const callsEcho: Script = (reply) => {
      reply.call('call_1', 'mcp__my-notes__echo', '{"words":"hi"}');
      reply.finish('tool_calls');
    };
    const server = await modelServer(callsEcho, explains);
    const { cwd, env, root } = await place(server);
    await writeFile(join(cwd, '.mcp.json'), '{"mcpServers":{"theirs":{"command":"there-is-no-such-program"}}}');
    const program = await mainWithPackages(root, ['@modelcontextprotocol/client']);
    const { agent, updates, child, ended } = await editor(env, cwd, program);
    const mcpServers: McpServer[] = [{ name: 'my notes', ...notes.options, env: [] }];
    const { sessionId } = await agent.request('session/new', { cwd, mcpServers });
    await agent.request('session/prompt', { sessionId, prompt: asks('echo it') });
    expect(JSON.stringify(server.asked[1]?.messages.at(-1))).toContain('echo hi');
    expect(JSON.stringify(updates)).toContain('runchart trust');
    expect(JSON.stringify(updates)).not.toContain('there-is-no-such-program');
    child.stdin.end();
    expect(await ended).toBe(0);
    expect(notes.starts().map(isAlive)).toEqual([false]);
  });

  test('an editor that closes the input in the middle of a reply stops it', async () => {
    const server = await modelServer(hangs);
    const { cwd, env, sessions } = await place(server);
    const { agent, child, ended, shows } = await editor(env, cwd);
    const { sessionId } = await agent.request('session/new', { cwd, mcpServers: [] });
    agent.request('session/prompt', { sessionId, prompt: asks('think') }).catch(() => undefined);
    await shows('Let me think');
    child.stdin.end();
    expect(await ended).toBe(0);
    const stop = (await storedEntries(sessions, sessionId)).find(({ type }) => type === 'run-stop');
    expect(stop).toMatchObject({ reason: 'interrupted' });
  });

  test('without a key a session needs authentication, and the process lives on', async () => {
    const server = await modelServer();
    const { cwd, env: environment } = await place(server);
    const { OPENAI_API_KEY: _, ...env } = environment;
    const { agent } = await editor(env, cwd);
    const begin = agent.request('session/new', { cwd, mcpServers: [] });
    await expect(begin).rejects.toMatchObject({ code: -32000, message: expect.stringContaining('OPENAI_API_KEY') });
    const authenticated = agent.request('authenticate', { methodId: 'environment' });
    await expect(authenticated).rejects.toMatchObject({ code: -32000 });
    expect(await agent.request('session/list', {})).toEqual({ sessions: [] });
  });

  test('an option that it has no use for is refused', async () => {
    const program = start(['acp', '--cwd', '/tmp']);
    expect(await program.ended).toEqual({ code: 2, signal: null });
    expect(program.stderr).toContain('an editor names the directory');
    expect(program.stdout).toBe('');
  });
});
