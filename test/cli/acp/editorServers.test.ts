/** MCP servers that an editor names for a session: real servers, the SDK's own client, a scripted model. */
import type { McpServer } from '@agentclientprotocol/sdk';
import { describe, expect, onTestFinished, test } from 'vitest';
import { editorServers } from '../../../src/cli/acp/editorServers.ts';
import { HttpServer } from '../../mcp/httpServer.ts';
import { isGone, stdioServer } from '../../mcp/stdioServer.ts';
import { call, type Reply, scripted } from '../../support/scriptedReplies.ts';
import { agentMaker, choose, type EditorOptions, editorOf, temporaryRoot, textIn, updatesOf } from './acpClient.ts';

const named = (name: string, server: ReturnType<typeof stdioServer>): McpServer => ({
  ...{ name, command: server.options.command, args: server.options.args },
  env: [{ name: 'KEY', value: 'k-0123456789' }],
});

async function editorWith(mcpServers: McpServer[], replies: readonly Reply[], options: Partial<EditorOptions> = {}) {
  const root = await temporaryRoot();
  const model = scripted([...replies]);
  const makeAgent = agentMaker(root, model);
  const editor = await editorOf(makeAgent, { answer: choose('once'), ...options, root });
  const { sessionId } = await editor.agent.request('session/new', { cwd: root, mcpServers });
  const prompt = (text: string) =>
    editor.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
  const offered = (): string[] =>
    (model.calls.at(-1)?.tools ?? []).map(({ name }) => name).filter((name) => name.startsWith('mcp__'));
  return { ...editor, root, model, sessionId, prompt, offered };
}

describe('MCP servers of an editor', () => {
  test('a command and an address are connected for their session, under the rules, and end with it', async () => {
    const [notes, other] = [stdioServer(), stdioServer()];
    const web = new HttpServer();
    web.tools = [{ name: 'look' }];
    web.token = 't-1';
    await web.start();
    onTestFinished(() => web.stop());
    const address: McpServer = {
      ...{ type: 'http', name: 'web', url: web.url },
      headers: [{ name: 'authorization', value: 'Bearer t-1' }],
    };
    const replies: Reply[] = [
      [call('c1', 'mcp__my-notes__echo', { words: 'hi' }), call('c2', 'mcp__web__look')],
      'done',
      'still here',
    ];
    const { agent, asked, updates, prompt, offered, root, sessionId } = await editorWith(
      [named('my notes', notes), address],
      replies,
    );
    const second = await agent.request('session/new', { cwd: root, mcpServers: [named('other', other)] });
    await expect.poll(() => other.starts().length).toBe(1);
    await prompt('go');
    expect(offered()).toEqual(['mcp__my-notes__echo', 'mcp__my-notes__pid', 'mcp__web__look']);
    expect(asked.map(({ toolCall }) => toolCall.title)).toEqual(['mcp__my-notes__echo', 'mcp__web__look']);
    expect(JSON.stringify(updatesOf(updates, 'c1').at(-1))).toContain('echo hi');
    expect(JSON.stringify(updatesOf(updates, 'c2').at(-1))).toContain('look in session');
    await agent.request('session/close', { sessionId });
    expect(notes.starts().map(isGone)).toEqual([true]);
    expect(other.starts().map(isGone)).toEqual([false]);
    const { sessionId: rest } = second;
    await agent.request('session/prompt', { sessionId: rest, prompt: [{ type: 'text', text: 'and you?' }] });
    expect(offered()).toEqual(['mcp__other__echo', 'mcp__other__pid']);
  });

  test('a load connects the servers that it names, and starts those of the session anew', async () => {
    const notes = stdioServer();
    const { agent, root, sessionId, prompt, offered } = await editorWith([named('notes', notes)], ['one', 'two']);
    await prompt('go');
    await agent.request('session/load', { sessionId, cwd: root, mcpServers: [named('again', notes)] });
    await prompt('go on');
    expect(offered()).toEqual(['mcp__again__echo', 'mcp__again__pid']);
    expect(notes.starts().map(isGone)).toEqual([true, false]);
  });

  test.each([
    [{ session: { notices: {} } }, 'notice'],
    [{}, 'agent_thought_chunk'],
  ])('one that fails does not stop the session, and is reported once (%j)', async (capabilities, kind) => {
    const bad = stdioServer({ diesAtStart: true, stderr: 'no such database' });
    const { updates, prompt, offered } = await editorWith([named('db', bad)], ['one', 'two'], { capabilities });
    expect(await prompt('go')).toEqual({ stopReason: 'end_turn' });
    expect(await prompt('again')).toEqual({ stopReason: 'end_turn' });
    const notes = updates.filter(({ sessionUpdate }) => sessionUpdate === kind);
    expect(notes).toHaveLength(1);
    expect(JSON.stringify(notes)).toContain('no such database');
    expect(JSON.stringify(notes)).not.toContain('k-0123456789');
    expect(textIn(updates)).toBe('onetwo');
    expect(offered()).toEqual([]);
  });
});

test('names fit the names of tools, what cannot work has a reason, and no command starts in the project', () => {
  const stdio = { command: '/bin/server', args: ['-v'], env: [] };
  const entries = editorServers(
    [
      { name: 'My Notes!', ...stdio },
      { name: 'my_notes', ...stdio },
      { name: 'my notes', ...stdio },
      { name: '日本', ...stdio },
      { name: 'a name that is much longer than it may be', ...stdio },
      { type: 'sse', name: 'old', url: 'https://x.example/sse', headers: [] },
      { type: 'http', name: 'ftp', url: 'ftp://x.example', headers: [] },
      { type: 'http', name: 'web', url: 'https://x.example/mcp?key=k-1', headers: [{ name: 'a', value: 'b' }] },
    ],
    '/home/u',
  );
  expect(entries.map(({ name }) => name)).toEqual([
    'My-Notes-',
    'my-notes',
    'my-notes-2',
    '-',
    'a-name-that-is-much-long',
    'old',
    'ftp',
    'web',
  ]);
  expect(entries[0]?.options).toEqual({ command: '/bin/server', args: ['-v'], env: {}, cwd: '/home/u' });
  expect(entries.at(-1)).toMatchObject({
    about: 'https://x.example/mcp',
    options: { url: 'https://x.example/mcp?key=k-1', headers: { a: 'b' } },
  });
  expect(entries.map(({ why }) => why)).toEqual([
    ...Array.from({ length: 5 }, () => undefined),
    expect.stringContaining('sse is not supported'),
    expect.stringContaining('an http or https address'),
    undefined,
  ]);
});

test('long names that become the same get numbers within the length of a name, and all of them are used', () => {
  const long = 'the documentation of the project';
  const servers = Array.from({ length: 11 }, () => ({ name: long, command: '/bin/server', args: [], env: [] }));
  const entries = editorServers(servers, '/home/u');
  expect(entries.map(({ name }) => name)).toEqual([
    'the-documentation-of-the',
    ...[2, 3, 4, 5, 6, 7, 8, 9].map((number) => `the-documentation-of-t-${number}`),
    'the-documentation-of--10',
    'the-documentation-of--11',
  ]);
  expect(entries.every(({ options, why }) => options !== undefined && why === undefined)).toBe(true);
});
