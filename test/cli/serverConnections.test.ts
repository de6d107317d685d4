/** The connections of the program to MCP servers: their end in every state, the waits of a request, and the lists of tools. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ServerConnections } from '../../src/cli/servers/serverConnections.ts';
import type { ServerEntry } from '../../src/cli/servers/serverEntries.ts';
import { codingTools } from '../../src/node.ts';
import { changesOf, type Tool } from '../../src/tools/tool.ts';
import { isAlive, stdioServer } from '../mcp/stdioServer.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const entryOf = (name: string, more: Partial<ServerEntry>): ServerEntry => ({ name, path: '/p', about: 'x', ...more });
/** A server that never answers. */
const silent = { command: process.execPath, args: ['-e', 'setInterval(() => {}, 1000)'] };

function connecting(entries: readonly ServerEntry[], clock = new VirtualClock()) {
  const servers = new ServerConnections(entries, clock);
  onTestFinished(() => servers.close());
  return servers;
}
/** A request of an agent, which the plugin makes wait. */
const started = (servers: ServerConnections, signal = new AbortController().signal): Promise<void> =>
  Promise.resolve(servers.plugin.runStart?.({ signal } as never)).then(() => undefined);
/** The list that an agent reads from the joined tools, as often as it is called. */
function listOf(tools: readonly Tool[]): () => readonly Tool[] {
  let read = (): readonly Tool[] => tools;
  for (const tool of tools) read = changesOf(tool)?.(read) ?? read;
  return read;
}
const namesOf = (tools: readonly Tool[]): string[] => tools.map(({ name }) => name);
const ofServers = (tools: readonly Tool[]): string[] => namesOf(tools).filter((name) => name.startsWith('mcp__'));
const [Ls, Bash] = ['Ls', 'Bash'].map((name) => codingTools().find((tool) => tool.name === name)) as [Tool, Tool];

describe('a request', () => {
  test('waits ten seconds for a server that does not start, and leaves no timer', async () => {
    const clock = new VirtualClock();
    const servers = connecting([entryOf('slow', { options: silent })], clock);
    expect(await clock.until(started(servers), 20_000)).toBe(10_000);
    expect(servers.views[0]?.state).toEqual({ kind: 'starting' });
  });

  test('goes on as soon as all servers are there or have failed, and leaves no timer', async () => {
    const clock = new VirtualClock();
    let timers = 0;
    const setTimer = (ms: number, fire: () => void): (() => void) => {
      timers += 1;
      const stop = clock.setTimer(ms, fire);
      return () => {
        timers -= 1;
        stop();
      };
    };
    const servers = new ServerConnections([entryOf('off', { why: 'turned off' })], { setTimer });
    await started(servers);
    expect(timers).toBe(0);
  });

  test('that is cancelled, before or meanwhile, does not wait', async () => {
    const servers = connecting([entryOf('slow', { options: silent })]);
    await started(servers, AbortSignal.abort());
    const abort = new AbortController();
    const waiting = started(servers, abort.signal);
    abort.abort();
    await waiting;
  });
});

describe('a server', () => {
  test('that is still starting when its connections are closed ends too', async () => {
    const server = stdioServer();
    const servers = connecting([entryOf('s', { options: server.options })]);
    await servers.close();
    await servers.settled;
    await expect.poll(() => server.starts().some(isAlive)).toBe(false);
    expect(servers.tools).toEqual([]);
  });

  test('that never answers ends when its connections are closed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'runchart-silent-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, 'pid');
    const args = ['-e', `require('fs').writeFileSync(process.argv[1], String(process.pid)); ${silent.args[1]}`, file];
    const servers = connecting([entryOf('s', { options: { ...silent, args } })]);
    const pidOf = () => readFile(file, 'utf8').catch(() => '');
    await expect.poll(pidOf).not.toBe('');
    await servers.close();
    expect(isAlive(Number(await pidOf()))).toBe(false);
    await servers.settled;
    expect(servers.views[0]?.state).toEqual({ kind: 'starting' });
  });

  test('ends with the last of the agents that share it, not before', async () => {
    const server = stdioServer();
    const servers = connecting([entryOf('s', { options: server.options })]);
    await servers.settled;
    const [pid = 0] = server.starts();
    expect(servers.shared()).toBe(servers);
    servers.shared();
    for (const _ of [1, 2]) {
      await servers.close();
      expect(isAlive(pid)).toBe(true);
    }
    await servers.close();
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  test.each<[string, Partial<ServerEntry>, object]>([
    ['without options and reason', {}, { kind: 'not started', why: 'it has no options' }],
    ['that is not started', { why: 'turned off' }, { kind: 'not started', why: 'turned off' }],
    [
      'whose program does not exist',
      { options: { command: '/no/such/program' } },
      { kind: 'failed', why: expect.stringContaining('/no/such/program') },
    ],
  ])('%s has a state with that reason, and no tools', async (_, more, state) => {
    const servers = connecting([entryOf('s', more)]);
    await servers.settled;
    expect(servers.views).toEqual([{ name: 's', path: '/p', about: 'x', state }]);
    expect(servers.tools).toEqual([]);
  });

  test('is shown with its tools, and with those that a model cannot use', async () => {
    const server = stdioServer({ tools: ['echo', { name: 'long', execution: { taskSupport: 'required' } }] });
    const servers = connecting([entryOf('s', { options: server.options })]);
    await servers.settled;
    const [view] = servers.views;
    expect(view?.state).toMatchObject({ kind: 'connected', tools: ['mcp__s__echo'] });
    expect(view?.state).toMatchObject({ left: ['long: it runs only as a task'] });
  });
});

describe('the tools of servers', () => {
  test('follow those of the program, of a server that is not there yet too, and one list stays the same list', async () => {
    const server = stdioServer({ tools: ['echo', 'pid'] });
    const servers = connecting([entryOf('s', { options: server.options }), entryOf('off', { why: 'off' })]);
    const joined = servers.joinedTo([Bash, Ls], (name) => name !== 'mcp__s__pid');
    expect(namesOf(joined)).toEqual(['Bash', 'Ls']);
    const read = listOf(joined);
    expect(namesOf(read())).toEqual(['Bash', 'Ls']);
    expect(read()).toBe(read());
    await servers.settled;
    expect(namesOf(read())).toEqual(['Bash', 'Ls', 'mcp__s__echo']);
    expect(read()).toBe(read());
    expect(servers.tools).toBe(servers.tools);
    server.replan({ tools: ['pid', 'echo', 'hang'] });
    process.kill(server.starts()[0] ?? 0, 'SIGUSR2');
    await expect.poll(() => ofServers(read())).toContain('mcp__s__hang');
    expect(ofServers(read())).toEqual(namesOf(servers.tools).filter((name) => name !== 'mcp__s__pid'));
    server.replan({ tools: ['echo'] });
    process.kill(server.starts()[0] ?? 0, 'SIGUSR2');
    await expect.poll(() => ofServers(read())).toEqual(['mcp__s__echo']);
    server.replan({ tools: [] });
    process.kill(server.starts()[0] ?? 0, 'SIGUSR2');
    await expect.poll(() => ofServers(read())).toEqual([]);
  });

  test('never make a copy of Bash, which would run outside of the sandbox, and never mark a shared tool', () => {
    const servers = connecting([entryOf('off', { why: 'off' })]);
    for (const tools of [[Bash, Ls], [Ls, Bash], [Bash]]) {
      const joined = servers.joinedTo(tools, () => true);
      expect(namesOf(joined)).toEqual(namesOf(tools));
      expect(joined.filter(({ name }) => name === 'Bash')).toEqual([expect.toSatisfy((tool) => tool === Bash)]);
      expect(joined.filter((tool) => changesOf(tool) !== undefined)).toHaveLength(1);
    }
    expect(changesOf(Ls)).toBeUndefined();
  });

  test('follow whatever list they are joined to, also when that one changes', async () => {
    const server = stdioServer({ tools: ['echo'] });
    const servers = connecting([entryOf('s', { options: server.options })]);
    await servers.settled;
    const [marked] = servers.joinedTo([Ls], () => true);
    let base: readonly Tool[] = [Ls];
    const read = marked && changesOf(marked)?.(() => base);
    expect(namesOf(read?.() ?? [])).toEqual(['Ls', 'mcp__s__echo']);
    base = [Bash, Ls];
    expect(namesOf(read?.() ?? [])).toEqual(['Bash', 'Ls', 'mcp__s__echo']);
  });

  test('change nothing where there is no tool or no server', () => {
    const tools = [Ls];
    expect(connecting([]).joinedTo(tools, () => true)).toBe(tools);
    const none: Tool[] = [];
    expect(connecting([entryOf('off', { why: 'off' })]).joinedTo(none, () => true)).toBe(none);
  });
});
