/** Files of the user and the project in a conversation on a terminal: commands, agents, skills and MCP servers. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NAME_WIDTH } from '../../../src/cli/interactive/slashCommands.ts';
import { ServerConnections } from '../../../src/cli/servers/serverConnections.ts';
import { agentOf, deploys, talkWith } from './talkBench.ts';

const definition = { description: 'Fixes a file', path: '/w/.runchart/commands/fix.md' };
const fix = { ...definition, name: 'web:fix', hint: '[file]', body: 'Fix $1 with care.' };

test('a command of a file is in the menu, sends its text with the arguments, and steers or waits like any message', async () => {
  const made = await agentOf(['fixed', deploys('a'), 'ok', 'fixed'], undefined, {}, { commands: [fix] });
  const { source, model, isIdle, asks, lines, shows } = await talkWith(made, undefined);
  expect(source.completed('/we')).toBe('/web:fix ');
  source.submit('/help', false);
  await shows(`${'/web:fix [file]'.padEnd(NAME_WIDTH)} Fixes a file`);
  const calls = (amount: number) => expect.poll(() => model.calls.length, { interval: 5 }).toBe(amount);
  source.submit('/web:fix main.go', false);
  await calls(1);
  await isIdle();
  const textOf = (index: number) => model.calls[index]?.messages.map(({ content }) => JSON.stringify(content)).join();
  expect(textOf(0)).toContain('Fix main.go with care.');
  expect(lines).toContain('> /web:fix main.go');
  source.submit('go', false);
  await asks('run it?');
  source.submit('y', false);
  await calls(3);
  await isIdle();
  source.submit('/later /web:fix b.go', false);
  await calls(4);
  await isIdle();
  expect(JSON.stringify(model.calls.at(-1)?.messages.at(-1))).toContain('Fix b.go with care.');
  source.submit('/web:fx', false);
  await shows('there is no /web:fx: did you mean /web:fix?');
});

test('/mcp, /agents and /skills show what there is, with its state and what is wrong', async () => {
  const servers = new ServerConnections([
    { name: 'db', path: '/w/.mcp.json', about: 'npx db', why: 'it is turned off' },
  ]);
  const agent = { ...definition, name: 'reviewer', tools: ['Read'], withoutTools: [], model: 'm2', instructions: 'x' };
  const skill = { ...definition, name: 'pdf', body: 'x' };
  const problems = ['/w/a.md is not used: it has no description'];
  const made = await agentOf(
    [],
    undefined,
    {},
    {
      ...{ servers, agents: [agent], skills: [skill], problems },
      untrusted: ['/w/b.md', '/w/c.md'],
    },
  );
  const { source, session, lines, shows } = await talkWith(made, undefined);
  session.reportEquipment();
  await shows('2 files of this project do not count before you trust them: runchart trust');
  expect(lines).toContain('/w/a.md is not used: it has no description');
  source.submit('/mcp', false);
  await shows('- db  not started  npx db  /w/.mcp.json\n  it is turned off');
  source.submit('/agents', false);
  await shows('agent_reviewer  Fixes a file\n  /w/.runchart/commands/fix.md  Read  model m2');
  source.submit('/skills', false);
  await shows('pdf  Fixes a file');
});

test('files that a command names with @ are attached', async () => {
  const made = await agentOf(['ok'], undefined, {}, { commands: [{ ...fix, body: 'Read @notes.md first.' }] });
  await mkdir(made.made.cwd, { recursive: true });
  await writeFile(join(made.made.cwd, 'notes.md'), 'be careful');
  const { source, model, isIdle } = await talkWith(made, undefined);
  source.submit('/web:fix', false);
  await expect.poll(() => model.calls.length, { interval: 5 }).toBe(1);
  await isIdle();
  expect(JSON.stringify(model.calls[0]?.messages)).toContain('be careful');
});
