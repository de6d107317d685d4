/** Agents, commands and skills of files: folders, names, limits, fields and patterns, each at its edge. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { agentTools, skillTool } from '../../../src/cli/definitions/agentTools.ts';
import { definitionFiles, isServerFile, serverFiles } from '../../../src/cli/definitions/definitionFiles.ts';
import { type CommandDefinition, commandIn, loadDefinitions } from '../../../src/cli/definitions/definitions.ts';
import { listField, markdownParts, textField } from '../../../src/cli/definitions/frontMatter.ts';
import { ServerConnections } from '../../../src/cli/servers/serverConnections.ts';
import { serverEntries } from '../../../src/cli/servers/serverEntries.ts';
import { codingTools } from '../../../src/node.ts';
import { definitionOf } from '../../../src/tools/tool.ts';
import { bench } from '../../support/agentBench.ts';
import { call } from '../../support/scriptedReplies.ts';

/** The user's own files below `user/`, which need no trust. */
async function user(files: { [path: string]: string }) {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-limits-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'work/.git'), { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  const at = { cwd: join(root, 'work'), userDirectory: join(root, 'user') };
  return { root, at, load: () => loadDefinitions(at) };
}
const agent = (fields: string) => `---\n${fields}\n---\nDo it.\n`;
const namesOf = (list: readonly { name: string }[]) => list.map(({ name }) => name);

describe('files', () => {
  test('lie in at most three folders below theirs, end with .md in letters of any case, and come in the order of their names', async () => {
    const { load } = await user({
      'user/commands/b.md': 'B',
      'user/commands/a.MD': 'A',
      'user/commands/x/y/z/deep.md': 'three',
      'user/commands/x/y/z/w/deeper.md': 'four',
      'user/commands/.md': 'no name',
      'user/commands/c.markdown': 'other',
      'user/commands/c.md.bak': 'other',
    });
    expect(namesOf((await load()).commands)).toEqual(['a', 'b', 'x:y:z:deep']);
  });

  test('are at most 200 of a kind', async () => {
    const files = Array.from({ length: 201 }, (_, index) => [`user/commands/c${1_000 + index}.md`, 'Do it.']);
    const { commands } = await (await user(Object.fromEntries(files))).load();
    expect([commands.length, commands.at(-1)?.name]).toEqual([200, 'c1199']);
  });

  test('of skills are named by their folder, and other files beside them are none', async () => {
    const { load, root } = await user({
      'user/skills/pdf/SKILL.md': '---\ndescription: x\n---\nbody',
      'user/skills/pdf/other.md': 'x',
      'user/skills/loose.md': '---\ndescription: x\n---\nbody',
      'user/skills/empty/readme.txt': 'x',
    });
    const { skills, problems } = await load();
    expect(skills.map(({ name, path }) => [name, path])).toEqual([['pdf', join(root, 'user/skills/pdf/SKILL.md')]]);
    expect(problems).toEqual([]);
  });

  test.each([
    [65_536, true],
    [65_537, false],
  ])('of %i bytes are used: %s', async (bytes, isUsed) => {
    const { load } = await user({ 'user/commands/c.md': 'x'.repeat(bytes) });
    const { commands, problems } = await load();
    expect([commands.length, problems.length]).toEqual(isUsed ? [1, 0] : [0, 1]);
  });
});

describe('a list of MCP servers', () => {
  const listed = (bytes: number): string => {
    const list = { mcpServers: { s: { command: 'x', args: [''] } } };
    return JSON.stringify(list).replace('[""]', `["${'y'.repeat(bytes - JSON.stringify(list).length)}"]`);
  };

  test.each([
    [70_000, undefined],
    [262_144, undefined],
    [262_145, 'it is too large'],
  ])('of %i bytes is used, or not with the reason %s', async (bytes, why) => {
    const { at } = await user({ 'user/mcp.json': listed(bytes), 'work/.mcp.json': listed(bytes) });
    const files = await serverFiles(at);
    expect(files.map(({ of, isTrusted, text }) => [of, isTrusted, text.length])).toEqual([
      ['user', true, Math.min(bytes, 262_144)],
      ['project', false, Math.min(bytes, 262_144)],
    ]);
    expect(files.map(isServerFile)).toEqual([false, true]);
    const { entries, problems, untrusted } = serverEntries(files, () => undefined, at.cwd);
    expect(entries.length).toBe(why === undefined ? 1 : 0);
    expect(problems).toEqual(why === undefined ? [] : files.map(({ path }) => `${path} is not used: ${why}`));
    expect(untrusted).toEqual([join(at.cwd, '.mcp.json')]);
  });

  test('of the user has another name than that of a project, and is no file of a project', async () => {
    const { at } = await user({ 'user/.mcp.json': listed(200), 'work/mcp.json': listed(200) });
    expect(await serverFiles(at)).toEqual([]);
    expect(await definitionFiles('agents', at)).toEqual([]);
  });
});

describe('a name', () => {
  const skill = (name: string) => `---\nname: ${name}\ndescription: x\n---\nbody`;
  test.each<[string, number]>([
    ['agents', 48],
    ['skills', 64],
  ])('of %s has at most %i characters', async (kind, most) => {
    const fileOf = (name: string) =>
      kind === 'skills' ? `user/skills/${name.length}/SKILL.md` : `user/agents/${name.length}.md`;
    const names = [most, most + 1].map((length) => 'n'.repeat(length));
    const { load } = await user(Object.fromEntries(names.map((name) => [fileOf(name), skill(name)])));
    const loaded = await load();
    expect(namesOf([...loaded.agents, ...loaded.skills])).toEqual(names.slice(0, 1));
    expect(loaded.problems).toEqual([expect.stringContaining(`at most ${most} letters`)]);
  });

  test('of a command has at most 64 characters, with its folders', async () => {
    const [fits, long] = [`a/${'n'.repeat(62)}`, `b/${'n'.repeat(63)}`];
    const { load } = await user({ [`user/commands/${fits}.md`]: 'Do it.', [`user/commands/${long}.md`]: 'Do it.' });
    const { commands, problems } = await load();
    expect(namesOf(commands)).toEqual([fits.replace('/', ':')]);
    expect(problems).toEqual([expect.stringContaining('at most 64 letters')]);
  });

  test.each(['-a', '_a', ':a', 'ü', 'a.b', 'a/b', '""'])(
    '%s is refused for an agent, or replaced by that of its file',
    async (name) => {
      const { load } = await user({ 'user/agents/team/own.md': agent(`name: ${name}\ndescription: x`) });
      const { agents, problems } = await load();
      expect([namesOf(agents), problems.length]).toEqual(name === '""' ? [['own'], 0] : [[], 1]);
    },
  );

  test('of an agent in a folder is that of its file alone', async () => {
    const { load } = await user({ 'user/agents/team/web/reviewer.md': agent('description: x') });
    expect(namesOf((await load()).agents)).toEqual(['reviewer']);
  });
});

describe('a field', () => {
  test('may be a number or a yes, has no line ends, and is absent when it is empty', async () => {
    const parts = await markdownParts('---\na: 1.5\nb: true\nc: "x\\n  y"\nd: ""\ne:\nf: [1]\ng: false\n---\nx');
    expect(['a', 'b', 'c', 'd', 'e', 'g', 'none'].map((name) => textField(parts, name))).toEqual([
      ...['1.5', 'true', 'x y', undefined, undefined, 'false', undefined],
    ]);
    expect(() => textField(parts, 'f')).toThrow('f must be a text');
  });

  test.each<[string, string[] | undefined]>([
    ['Read, Grep', ['Read', 'Grep']],
    [' Read ,, ', ['Read']],
    ['""', []],
    ['[Read, " Ls "]', ['Read', 'Ls']],
    ['[]', []],
    ['', undefined],
  ])('that lists names may be %j', async (written, names) => {
    expect(listField(await markdownParts(`---\ntools: ${written}\n---\nx`), 'tools')).toEqual(names);
  });

  test.each(['{a: 1}', '[1]', '[[a]]'])('that lists names may not be %j', async (written) => {
    const parts = await markdownParts(`---\ntools: ${written}\n---\nx`);
    expect(() => listField(parts, 'tools')).toThrow('tools must be a list of names');
  });

  test('is read after a byte order mark, with spaces after the marks, and in front matter of comments only', async () => {
    expect(await markdownParts('\ufeff--- \na: x\n---\t\nbody')).toEqual({ fields: { a: 'x' }, body: 'body' });
    expect(await markdownParts('---\n# nothing\n---\nbody')).toEqual({ fields: {}, body: 'body' });
    expect(await markdownParts('----\na: x\n---\nbody')).toMatchObject({ fields: {} });
  });

  test.each([
    ['inherit', undefined],
    ['default', undefined],
    ['Default', 'Default'],
    ['gpt-5', 'gpt-5'],
  ])('model: %s is the model %j', async (written, model) => {
    const { load } = await user({ 'user/agents/a.md': agent(`description: x\nmodel: ${written}`) });
    expect((await load()).agents[0]?.model).toBe(model);
  });

  test('description has at most 1,024 characters, of each kind', async () => {
    const long = 'd'.repeat(1_025);
    const { load } = await user({
      'user/agents/a.md': agent(`description: ${long}`),
      'user/commands/a.md': `---\ndescription: ${long}\n---\nDo it.`,
      'user/commands/b.md': `${long}\nDo it.`,
      'user/skills/a/SKILL.md': agent(`description: ${long}`),
    });
    const { agents, commands, skills } = await load();
    const all = [...agents, ...commands, ...skills];
    expect(all.map(({ description }) => description.length)).toEqual([1_024, 1_024, 1_024, 1_024]);
  });

  test('description that is cut has no half of a character at its end', async () => {
    const whole = 'd'.repeat(1_023);
    const { load } = await user({
      'user/agents/a.md': agent(`description: ${whole}🎉`),
      'user/commands/a.md': `${whole}🎉\nDo it.`,
    });
    const { agents, commands } = await load();
    expect([...agents, ...commands].map(({ description }) => description)).toEqual([whole, whole]);
  });

  test.each([
    ['[file, line]', '[file, line]'],
    ['"<path>"', '<path>'],
    ['', ''],
  ])('argument-hint: %s is shown as %j', async (written, hint) => {
    const { load } = await user({ 'user/commands/a.md': `---\nargument-hint: ${written}\n---\n## Title\nDo it.` });
    expect((await load()).commands).toMatchObject([{ hint, description: 'Title' }]);
  });
});

describe('a message that begins with a command', () => {
  const made = (name: string, body: string): CommandDefinition => ({ name, body, description: '', hint: '', path: '' });
  const commands = [made('fix', 'Fix $1 and $2.'), made('web:fix', 'Web.'), made('all', '<$ARGUMENTS>')];

  test.each<[string, string | undefined]>([
    ['/fix a b', 'Fix a and b.'],
    ['  /fix a b  ', 'Fix a and b.'],
    ['/fix a', 'Fix a and .'],
    ['/fix', 'Fix  and .'],
    ['/all one\ntwo\n', '<one\ntwo>'],
    ['/web:fix now\nplease', 'Web.\n\nnow\nplease'],
    ['/web:fix', 'Web.'],
    ['/Fix a', undefined],
    ['/fixed a', undefined],
    ['see /fix a', undefined],
    ['/', undefined],
    ['', undefined],
  ])('%j is %j', (message, text) => {
    expect(commandIn(message, commands)?.text).toBe(text);
  });
});

describe('the tools of an agent', () => {
  const own = { name: 'a', description: 'x', path: '/a.md', model: undefined, instructions: 'Do it.' };
  async function toolsOf(tools: string[] | undefined, withoutTools: string[] = []) {
    const servers = new ServerConnections([]);
    const parts = { servers, programTools: () => codingTools(), modelOf: async () => undefined };
    const made = await agentTools([{ ...own, tools, withoutTools }], parts);
    const { conversation, model } = await bench({
      tools: made.tools,
      replies: [[call('c', 'agent_a', { tasks: [{ id: 't', task: 'x' }] })], 'done', 'done'],
    });
    await conversation.send('go').result;
    const names = namesOf(model.calls[1]?.tools ?? []).filter((name) => name !== 'submit_result');
    return { names, problems: made.problems };
  }

  test('match names and patterns in any case, and names without a tool are problems', async () => {
    expect(await toolsOf(['read', 'GREP', 'L*'])).toEqual({ names: ['Read', 'Ls', 'Grep'], problems: [] });
    expect((await toolsOf(['Rea', 'ead', 'R.ad', 'Ls'])).problems).toEqual(['/a.md: there is no tool Rea, ead, R.ad']);
    expect((await toolsOf(undefined, ['*'])).names).toEqual(['Ls']);
    expect((await toolsOf(['*'], ['write', 'ED*', 'bash'])).names).not.toContain('Edit');
  });

  test('are Ls and those of servers if no tool of the program fits', async () => {
    expect(await toolsOf(['mcp__git', 'MCP__x__y'])).toEqual({ names: ['Ls'], problems: [] });
    expect(await toolsOf([])).toEqual({ names: ['Ls'], problems: [] });
  });

  test.each<[string, string[]]>([
    ['mcp__git', ['mcp__git__log', 'mcp__git__show']],
    ['MCP__GIT', ['mcp__git__log', 'mcp__git__show']],
    ['mcp__git__log', ['mcp__git__log']],
    ['mcp__git__*', ['mcp__git__log', 'mcp__git__show']],
    ['mcp__*', ['mcp__git__log', 'mcp__git__show', 'mcp__git2__log', 'mcp__gitx__a']],
    ['mcp__git__', []],
    ['git', []],
  ])('of servers fit %s: %j', async (pattern, expected) => {
    let fits = (_name: string): boolean => false;
    const joinedTo = (tools: unknown, judge: typeof fits): unknown => {
      fits = judge;
      return tools;
    };
    const servers = { joinedTo } as never;
    const parts = { servers, programTools: () => codingTools(), modelOf: async () => undefined };
    await agentTools([{ ...own, tools: [pattern], withoutTools: [] }], parts);
    const all = ['mcp__git__log', 'mcp__git__show', 'mcp__git2__log', 'mcp__gitx__a'];
    expect(all.filter((name) => fits(name))).toEqual(expected);
  });
});

test('a tool for skills lists as many as fit into 16,384 characters, in their order', async () => {
  const skills = Array.from({ length: 20 }, (_, index) => ({
    ...{ name: `s${10 + index}`, path: '/s/SKILL.md', body: 'x' },
    description: 'd'.repeat(1_018),
  }));
  const { description = '', readOnly, idempotent } = definitionOf(skillTool(skills)) ?? {};
  // Each line has 1,024 characters and an end.
  expect(description.match(/^- s\d+/gm)).toEqual(skills.slice(0, 15).map(({ name }) => `- ${name}`));
  expect([readOnly, idempotent]).toEqual([true, true]);
});
