/** The agent of the command line: its options and configuration files, and their precedence. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import type { Policies } from '../../src/agentPolicies.ts';
import { type AgentOptions, codingAgent } from '../../src/cli/codingAgent.ts';
import { exitCodeOf, exitCodeOfError } from '../../src/cli/exitCodes.ts';
import { interactiveCommand } from '../../src/cli/interactive/interactiveCommand.ts';
import { runCommand } from '../../src/cli/runCommand.ts';
import { ServerConnections } from '../../src/cli/servers/serverConnections.ts';
import { trustCommand } from '../../src/cli/trustCommand.ts';
import { ConfigurationError, SessionBusyError } from '../../src/errors.ts';
import { isAlive, stdioServer } from '../mcp/stdioServer.ts';

let root = '';
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-agent-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'work'));
  vi.stubEnv('XDG_CONFIG_HOME', join(root, 'config'));
  vi.stubEnv('XDG_STATE_HOME', join(root, 'state'));
  vi.stubEnv('OPENAI_API_KEY', undefined);
  vi.stubEnv('OPENAI_BASE_URL', undefined);
});
afterEach(() => vi.unstubAllEnvs());

const says = async (file: string, value: object): Promise<void> => {
  await mkdir(dirname(join(root, file)), { recursive: true });
  await writeFile(join(root, file), JSON.stringify(value));
};
const saysText = async (file: string, text: string): Promise<void> => {
  await mkdir(dirname(join(root, file)), { recursive: true });
  await writeFile(join(root, file), text);
};
const userSays = (value: object = {}) =>
  says('config/runchart/config.json', { model: 'theirs', environment: { OPENAI_API_KEY: 'sk-file' }, ...value });
async function agentOf(options: AgentOptions = {}) {
  const made = await codingAgent({ cwd: join(root, 'work'), ...options });
  onTestFinished(() => made.agent.close());
  const outcome = async (command: string) => (await made.permissions.explain('Bash', { command }, made.cwd)).outcome;
  const { policies } = made.agent.profile as unknown as { policies: Policies };
  return { made, outcome, turns: policies.limits.turns };
}

test('model, key, mode and rules come from the user’s file, and options take precedence', async () => {
  await userSays({ permissions: { mode: 'plan', allow: ['bash(make *)'] }, limits: { turns: 7 } });
  const { made, outcome, turns } = await agentOf();
  expect(made.about).toMatchObject({ model: 'theirs', permissionMode: 'plan' });
  expect(turns).toBe(7);
  expect(await outcome('make x')).toBe('deny');
  const withOptions = await agentOf({
    model: 'mine',
    permissionMode: 'default',
    deny: ['bash(make all)'],
    maxTurns: '3',
  });
  expect(withOptions.made.about).toMatchObject({ model: 'mine', permissionMode: 'default' });
  expect(withOptions.turns).toBe(3);
  expect([
    await withOptions.outcome('make x'),
    await withOptions.outcome('make all'),
    await withOptions.outcome('other'),
  ]).toEqual(['allow', 'deny', 'ask']);
});

test.each([
  [undefined, 'sk-file-0123456789', 'sk-file-0123456789'],
  ['sk-process-0123456789', 'sk-file-0123456789', 'sk-process-0123456789'],
  ['sk-process-0123456789', undefined, 'sk-process-0123456789'],
  // Empty settings are ignored.
  ['', 'sk-file-0123456789', 'sk-file-0123456789'],
])('the key %j of the process takes precedence over the key %j of the user’s file', async (own, ofFile, used) => {
  vi.stubEnv('OPENAI_API_KEY', own);
  await userSays({ environment: ofFile === undefined ? {} : { OPENAI_API_KEY: ofFile } });
  expect((await agentOf()).made.model.secrets).toEqual([used]);
});

test('H-242 a project’s file can only tighten until it is trusted, and the trust command lists its effective settings', async () => {
  await userSays();
  await says('work/.runchart/config.json', { permissions: { allow: ['bash(*)'], deny: ['bash(rm *)'] } });
  const before = await agentOf();
  expect([await before.outcome('make'), await before.outcome('rm x')]).toEqual(['ask', 'deny']);
  let output = '';
  await trustCommand(join(root, 'work'), (text) => {
    output += text;
  });
  expect(output).toContain(`trusted as it is now: ${join(root, 'work', '.runchart', 'config.json')}`);
  expect(output).toContain('counts from now on:');
  expect(output).toContain('permissions.allow bash(*)');
  const after = await agentOf();
  expect([await after.outcome('make'), await after.outcome('rm x')]).toEqual(['allow', 'deny']);
});

test('agents of a trusted project are tools with their own tools and model, and rules hold for them', async () => {
  await userSays({ permissions: { deny: ['agent(planner)'] } });
  const agents = 'work/.claude/agents';
  await saysText(
    `${agents}/reviewer.md`,
    '---\ndescription: Reviews.\ntools: Read, LS, Task\nmodel: small\n---\nReview.',
  );
  await saysText(`${agents}/planner.md`, '---\ndescription: Plans.\nmodel: sonnet\n---\nPlan.');
  await saysText('work/.runchart/skills/pdf/SKILL.md', '---\ndescription: PDF files.\n---\nUse pdftotext.');
  const before = await agentOf();
  expect(before.made.about.tools).not.toContain('agent_reviewer');
  expect(before.made.equipment.untrusted).toHaveLength(3);
  let output = '';
  await trustCommand(join(root, 'work'), (text) => {
    output += text;
  });
  expect(output).toContain(`trusted as it is now: ${join(root, agents, 'reviewer.md')}`);
  const { made } = await agentOf();
  expect(made.about.tools).toEqual(expect.arrayContaining(['Read', 'Skill', 'agent_reviewer', 'agent_planner']));
  expect(made.equipment.problems).toEqual([expect.stringMatching(/reviewer\.md: there is no tool Task$/)]);
  const verdict = async (name: string) =>
    (await made.permissions.explain(name, { tasks: [{ id: 'a', task: 'b' }] }, made.cwd)).outcome;
  expect([await verdict('agent_reviewer'), await verdict('agent_planner'), await verdict('agent_other')]).toEqual([
    'allow',
    'deny',
    'ask',
  ]);
});

test('the trust command lists which MCP servers start, and why others do not', async () => {
  await userSays({ environment: { FROM_FILE: 'x' } });
  const url = 'https://search.example/sse';
  await says('work/.mcp.json', {
    mcpServers: {
      runs: { command: 'server', env: { KEY: '$' + '{FROM_FILE}' } },
      off: { command: 'server', disabled: true },
      old: { type: 'sse', url },
      unset: { command: 'server', env: { KEY: '$' + '{SURELY_NOT_SET}' } },
    },
  });
  let output = '';
  await trustCommand(join(root, 'work'), (text) => {
    output += text;
  });
  expect(output.split('\n').filter((line) => line.includes('MCP server'))).toEqual([
    '  starts from now on: the MCP server runs: server',
    '  does not start: the MCP server off: server (it is turned off by "disabled")',
    expect.stringMatching(/^ {2}does not start: the MCP server old: .* \(the transport sse is not supported/),
    '  does not start: the MCP server unset: server (it needs the variable SURELY_NOT_SET, which is not set)',
  ]);
});

test('MCP servers end with an agent that cannot be closed', async () => {
  await userSays();
  const { made } = await agentOf();
  vi.spyOn(made.agent, 'close').mockRejectedValue(new Error('the disk is full'));
  const ended = vi.spyOn(made.equipment.servers, 'close');
  const released = vi.spyOn(made.sessions, 'close');
  await expect(made.close()).rejects.toThrow('the disk is full');
  expect([ended.mock.calls.length, released.mock.calls.length]).toEqual([1, 1]);
  vi.restoreAllMocks();
  await made.agent.close();
});

test('MCP servers of a project start after it is trusted, survive another mode, and end with the agent', async () => {
  const server = stdioServer({ tools: ['echo'] });
  await userSays();
  await says('work/.mcp.json', {
    mcpServers: { near: server.options, 'not-there': { command: join(root, 'no-program') } },
  });
  const before = await agentOf();
  expect(before.made.equipment.servers.views.map(({ state }) => state.kind)).toEqual(['not started', 'not started']);
  let output = '';
  await trustCommand(join(root, 'work'), (text) => {
    output += text;
  });
  expect(output).toContain(`starts from now on: the MCP server near: ${process.execPath} -e`);
  const { made } = await agentOf();
  await made.equipment.servers.settled;
  expect(made.equipment.servers.views.map(({ state }) => state.kind)).toEqual(['connected', 'failed']);
  const next = await made.remade({ permissionMode: 'plan' });
  await made.close();
  const [pid = 0] = server.starts();
  expect(next.equipment.servers.views[0]?.state.kind).toBe('connected');
  expect(isAlive(pid)).toBe(true);
  const anew = await next.remade({}, true);
  await next.close();
  await anew.equipment.servers.settled;
  expect(server.starts()).toHaveLength(2);
  await anew.close();
  await expect.poll(() => server.starts().some(isAlive)).toBe(false);
});

test('MCP servers end with the last of the agents that share them, also where the other one is not used', async () => {
  const server = stdioServer({ tools: ['echo'] });
  await userSays();
  await says('work/.mcp.json', { mcpServers: { near: server.options } });
  await trustCommand(join(root, 'work'), () => undefined);
  const { made } = await agentOf();
  await made.equipment.servers.settled;
  const unused = await made.remade({ permissionMode: 'plan' });
  await unused.close();
  await unused.close();
  expect(server.starts().map(isAlive)).toEqual([true]);
  await expect(made.remade({ allow: ['bash('] })).rejects.toThrow(ConfigurationError);
  expect(server.starts().map(isAlive)).toEqual([true]);
  await made.close();
  await expect.poll(() => server.starts().some(isAlive)).toBe(false);
});

test('a start that fails ends the MCP servers it started, and invalid options start none', async () => {
  await userSays();
  const joined = vi.spyOn(ServerConnections.prototype, 'joinedTo');
  const closed = vi.spyOn(ServerConnections.prototype, 'close');
  onTestFinished(() => void vi.restoreAllMocks());
  for (const invalid of [{ permissionMode: 'no' }, { maxTurns: '0' }, { allow: ['bash('] }])
    await expect(agentOf(invalid)).rejects.toThrow(ConfigurationError);
  expect(joined).not.toHaveBeenCalled();
  joined.mockImplementationOnce(() => {
    throw new Error('no tools');
  });
  await expect(agentOf()).rejects.toThrow('no tools');
  expect(closed).toHaveBeenCalledOnce();
});

test('the sessions are protected in every folder of --store', async () => {
  await userSays();
  const store = join(root, 'work', 'a [store]');
  const { made } = await agentOf({ store, allow: ['edit(./**)'] });
  const outcome = async (file_path: string) =>
    (await made.permissions.explain('Write', { file_path, content: '' }, made.cwd)).outcome;
  expect([await outcome('a [store]/s.jsonl'), await outcome('a s/x')]).toEqual(['ask', 'allow']);
});

test('exit codes distinguish the ends', () => {
  const of = (reason: 'completed' | 'interrupted' | 'error' | null, subtype = 'error_during_execution') =>
    exitCodeOf({ reason, subtype: subtype as 'success' });
  expect([of('completed'), of('error'), of(null), of('interrupted')]).toEqual([0, 1, 3, 130]);
  expect([of('error', 'error_max_turns'), of('error', 'error_max_budget_usd')]).toEqual([4, 5]);
  expect([new ConfigurationError('x'), new SessionBusyError('x'), new Error('x')].map(exitCodeOfError)).toEqual([
    2, 6, 1,
  ]);
});

test('a session that is not found ends the MCP servers of the commands that would work on it', async () => {
  await userSays();
  onTestFinished(() => void vi.restoreAllMocks());
  const options = { cwd: join(root, 'work') };
  const { signal } = new AbortController();
  const form = { json: 'entries', unasked: 'denied' } as const;
  const commands = [
    () => interactiveCommand({ ...options, resume: 'nowhere' }, signal, {}),
    () => interactiveCommand({ ...options, continue: true }, signal, {}),
    () => runCommand('hi', { ...options, resume: 'nowhere' }, form, signal),
  ];
  for (const command of commands) {
    const closed = vi.spyOn(ServerConnections.prototype, 'close').mockClear();
    await expect(command()).rejects.toThrow(ConfigurationError);
    expect(closed).toHaveBeenCalledTimes(1);
  }
});
