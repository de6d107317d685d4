/**
 * The additions of the user and the project to the agent together: problems, files without trust, servers of an editor, and a failed
 * start.
 */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { type EquipmentOptions, equipmentOf, trustEquipment } from '../../../src/cli/definitions/agentEquipment.ts';
import type { ServerEntry } from '../../../src/cli/servers/serverEntries.ts';
import { codingTools } from '../../../src/node.ts';
import { isAlive, stdioServer } from '../../mcp/stdioServer.ts';

afterEach(() => vi.unstubAllEnvs());

async function place(files: { [path: string]: string }) {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-equipment-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'work/.git'), { recursive: true });
  vi.stubEnv('XDG_CONFIG_HOME', join(root, 'config'));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  const equip = async (more: Partial<EquipmentOptions> = {}) => {
    const equipment = await equipmentOf({
      cwd: join(root, 'work'),
      codingTools: () => codingTools(),
      variableOf: () => undefined,
      modelOf: async () => undefined,
      ...more,
    });
    onTestFinished(() => equipment.servers.close());
    return equipment;
  };
  return { root, equip };
}
const USER = 'config/runchart';
const serverList = (servers: object): string => JSON.stringify({ mcpServers: servers });
const off = (name: string, why: string): ServerEntry => ({ name, path: 'editor', about: 'x', why });

test('every kind of file without trust is named, and after trust none is', async () => {
  const files = ['.runchart/agents/a.md', '.claude/commands/c.md', '.runchart/skills/s/SKILL.md', '.mcp.json'];
  const text = '---\ndescription: x\n---\nDo it.';
  const { root, equip } = await place({
    ...Object.fromEntries(files.slice(0, 3).map((file) => [`work/${file}`, text])),
    'work/.mcp.json': serverList({ near: { command: 'x', disabled: true } }),
    [`${USER}/commands/mine.md`]: 'Do it.',
  });
  const paths = files.map((file) => join(root, 'work', file)).sort();
  const before = await equip();
  expect([...before.untrusted].sort()).toEqual(paths);
  expect([before.agents, before.skills, before.layers, before.commands.map(({ name }) => name)]).toEqual([
    ...[[], [], [], ['mine']],
  ]);
  expect((await trustEquipment(join(root, 'work'))).map(({ path }) => path).sort()).toEqual(paths);
  const after = await equip();
  expect(after.untrusted).toEqual([]);
  expect(after.commands.map(({ name }) => name).sort()).toEqual(['c', 'mine']);
  expect(after.layers).toEqual([{ name: 'agents', trusted: true, allow: ['agent_a'] }]);
  expect(after.tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['Read', 'Skill', 'agent_a']));
});

test('a command with the name of one of the program is a problem and no command, and so is each file that cannot be used', async () => {
  const { root, equip } = await place({
    [`${USER}/commands/help.md`]: 'Do it.',
    [`${USER}/commands/own.md`]: 'Do it.',
    [`${USER}/agents/bad.md`]: 'no description',
    [`${USER}/agents/odd.md`]: '---\ndescription: x\ntools: Nothing\n---\nDo it.',
    [`${USER}/mcp.json`]: '{',
  });
  const { commands, problems } = await equip({
    moreServers: [off('editor', 'no SSE'), { ...off('fine', ''), why: undefined } as never],
  });
  expect(commands.map(({ name }) => name)).toEqual(['own']);
  const at = (file: string) => join(root, USER, file);
  expect(problems).toEqual([
    expect.stringContaining(`${at('agents/bad.md')} is not used: it has no description`),
    `${at('commands/help.md')} is not used: /help is a command of the program`,
    expect.stringContaining(`${at('mcp.json')} is not used: it is no JSON`),
    `${at('agents/odd.md')}: there is no tool Nothing`,
    'the MCP server editor is not used: no SSE',
  ]);
});

test('a server of an editor takes the place of one with its name, and the others stay', async () => {
  const { equip } = await place({
    [`${USER}/mcp.json`]: serverList({ one: { command: 'x', disabled: true }, two: { command: 'y', disabled: true } }),
  });
  const { servers } = await equip({ moreServers: [off('one', 'of the editor'), off('three', 'new')] });
  expect(servers.views.map(({ name, path, state }) => [name, path === 'editor', state])).toEqual([
    ['one', true, { kind: 'not started', why: 'of the editor' }],
    ['two', false, { kind: 'not started', why: expect.stringContaining('turned off') }],
    ['three', true, { kind: 'not started', why: 'new' }],
  ]);
});

test('a start that fails ends its servers, and connections that are shared stay with their other agents', async () => {
  const server = stdioServer();
  const { equip } = await place({ [`${USER}/mcp.json`]: serverList({ s: server.options }) });
  const broken = {
    codingTools: () => {
      throw new Error('no tools');
    },
  };
  await expect(equip(broken)).rejects.toThrow('no tools');
  await expect.poll(() => server.starts().some(isAlive)).toBe(false);
  const first = await equip();
  await first.servers.settled;
  await expect(equip({ ...broken, servers: first.servers })).rejects.toThrow('no tools');
  const second = await equip({ servers: first.servers });
  expect(second.servers).toBe(first.servers);
  await first.servers.close();
  expect(server.starts().filter(isAlive)).toHaveLength(1);
  await second.servers.close();
  await expect.poll(() => server.starts().some(isAlive)).toBe(false);
});
