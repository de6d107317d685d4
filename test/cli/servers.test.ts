/** MCP servers from files: which entries start, what the others say, and the tools that an agent has of them. */
import { expect, onTestFinished, test } from 'vitest';
import { ServerConnections } from '../../src/cli/servers/serverConnections.ts';
import { serverEntries } from '../../src/cli/servers/serverEntries.ts';
import { codingTools } from '../../src/node.ts';
import { permissions } from '../../src/permissions/permissions.ts';
import { stdioServer } from '../mcp/stdioServer.ts';
import { bench } from '../support/agentBench.ts';
import { call } from '../support/scriptedReplies.ts';

/** A variable as files write it. */
const v = (name: string): string => `\${${name}}`;
const file = (path: string, servers: unknown, isTrusted = true) => ({
  ...{ path, cut: false, name: '.mcp.json', of: 'project' as const, isTrusted },
  text: typeof servers === 'string' ? servers : JSON.stringify({ mcpServers: servers }),
});
const read = (...files: ReturnType<typeof file>[]) =>
  serverEntries(files, (name) => ({ KEY: 'secret-0123', EMPTY: '' })[name], '/work');

test('commands and addresses are read, with variables, names that fit, and a working directory', () => {
  const { entries } = read(
    file('/work/.mcp.json', {
      my_files: { type: 'stdio', command: 'npx', args: ['-y', 'a-server', v('DIR:-/srv')], env: { KEY: v('KEY') } },
      web: {
        type: 'http',
        url: `https://x.example/mcp?key=${v('KEY')}`,
        headers: { authorization: `Bearer ${v('KEY')}` },
      },
    }),
  );
  expect(entries).toEqual([
    {
      name: 'my-files',
      path: '/work/.mcp.json',
      about: `npx -y a-server ${v('DIR:-/srv')}`,
      options: { command: 'npx', args: ['-y', 'a-server', '/srv'], env: { KEY: 'secret-0123' }, cwd: '/work' },
    },
    {
      name: 'web',
      path: '/work/.mcp.json',
      about: 'https://x.example/mcp',
      options: { url: 'https://x.example/mcp?key=secret-0123', headers: { authorization: 'Bearer secret-0123' } },
    },
  ]);
});

test('an entry that cannot be used says why, and a file that is no list is named', () => {
  const { entries, problems } = read(
    file('/a', { off: { command: 'x', disabled: true }, old: { type: 'sse', url: 'https://x' } }),
    file('/b', {
      needs: { command: 'x', env: { A: `${v('NOBODY')} ${v('EMPTY')}` } },
      both: { command: 'x', url: 'y' },
      none: 3,
    }),
    file('/c', { 'a name that is much longer than it may be': { command: 'x' } }),
    file('/d', '{'),
    file('/e', '[]'),
  );
  expect(entries.map(({ name, options, why }) => [name, options, why])).toEqual([
    ['off', undefined, expect.stringContaining('turned off')],
    ['old', undefined, expect.stringContaining('sse is not supported')],
    ['needs', undefined, 'it needs the variable NOBODY, EMPTY, which is not set'],
    ['both', undefined, expect.stringContaining('needs one of the options')],
    ['none', undefined, expect.stringContaining('must be an object')],
    [expect.stringContaining('a-name'), undefined, expect.stringContaining('at most 24 letters')],
  ]);
  expect(problems).toEqual([
    expect.stringMatching(/^\/d is not used: it is no JSON/),
    expect.stringMatching(/^\/e .*mcpServers/),
  ]);
});

test('a nearer file takes the place of a server, but not before it is trusted', () => {
  const [far, near] = [{ s: { command: 'far' } }, { s: { command: 'near' }, t: { command: 'more' } }];
  const commands = (isTrusted: boolean) => {
    const { entries, untrusted } = read(file('/far', far), file('/near', near, isTrusted));
    return [...entries.map(({ name, options, about, why }) => [name, options ? about : why]), untrusted];
  };
  expect(commands(true)).toEqual([['s', 'near'], ['t', 'more'], []]);
  expect(commands(false)).toEqual([['s', 'far'], ['t', 'the project is not trusted: runchart trust'], ['/near']]);
});

test('servers start beside the agent, a request waits for them, rules hold, and one that fails has a state', async () => {
  const good = stdioServer({ tools: ['echo', { name: 'look', annotations: { readOnlyHint: true } }] });
  const bad = stdioServer({ diesAtStart: true, stderr: 'no such database' });
  const servers = new ServerConnections([
    { name: 'good', path: '/p', about: 'x', options: good.options },
    { name: 'bad', path: '/p', about: 'x', options: bad.options },
    { name: 'off', path: '/p', about: 'x', why: 'turned off' },
  ]);
  onTestFinished(() => servers.close());
  expect(servers.views.map(({ state }) => state.kind)).toEqual(['starting', 'starting', 'not started']);
  const tools = servers.joinedTo(codingTools(), (name) => !name.endsWith('look'));
  const { conversation, model } = await bench({
    tools,
    plugins: [permissions({ deny: ['mcp__good__echo'] }), servers.plugin],
    replies: [[call('c1', 'mcp__good__echo', { words: 'hi' })], 'done'],
  });
  const { termination } = await conversation.send('go').result;
  expect(termination).toBe('NaturalEnd');
  const names = (model.calls[0]?.tools ?? []).map(({ name }) => name);
  expect(names.filter((name) => name.startsWith('mcp__'))).toEqual(['mcp__good__echo']);
  expect(names).toContain('Read');
  expect(conversation.log().find((entry) => entry.type === 'tool-result')).toMatchObject({ code: 'denied' });
  expect(good.calls()).toEqual([]);
  expect(servers.views.map(({ state }) => state)).toEqual([
    { kind: 'connected', tools: ['mcp__good__echo', 'mcp__good__look'], left: [] },
    { kind: 'failed', why: expect.stringContaining('no such database') },
    { kind: 'not started', why: 'turned off' },
  ]);
  // Lists of other agents do not have these tools.
  const other = await bench({ tools: codingTools(), replies: ['done'] });
  await other.conversation.send('go').result;
  expect(JSON.stringify(other.model.calls[0]?.tools)).not.toContain('mcp__');
});

test('a server that ends after its start is shown as failed until it is connected again', async () => {
  const server = stdioServer({ tools: ['die', 'echo'] });
  const servers = new ServerConnections([{ name: 's', path: '/p', about: 'x', options: server.options }]);
  onTestFinished(() => servers.close());
  await servers.settled;
  const { conversation } = await bench({
    tools: servers.joinedTo(codingTools(), () => true),
    replies: [[call('c1', 'mcp__s__die')], 'dead', [call('c2', 'mcp__s__echo')], 'alive'],
  });
  await conversation.send('go').result;
  expect(servers.views[0]?.state).toMatchObject({ kind: 'failed', why: expect.stringContaining('has ended') });
  await conversation.send('again').result;
  expect(servers.views[0]?.state.kind).toBe('connected');
});
