/** Agents, commands and skills from Markdown files: accepted files, refused files, and the files of an untrusted project. */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { definitionFiles } from '../../../src/cli/definitions/definitionFiles.ts';
import { commandText, loadDefinitions } from '../../../src/cli/definitions/definitions.ts';
import { markdownParts } from '../../../src/cli/definitions/frontMatter.ts';
import { trustFiles } from '../../../src/session/trust.ts';

/** `work/` is a repository; files begin with `work/` or `user/`. */
async function place(files: { [path: string]: string }, trusts = true) {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-definitions-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'work/.git'), { recursive: true });
  await mkdir(join(root, 'work/web'), { recursive: true });
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  };
  for (const [path, text] of Object.entries(files)) await write(path, text);
  const at = { cwd: join(root, 'work/web'), userDirectory: join(root, 'user') };
  const trust = async (): Promise<void> => {
    for (const kind of ['agents', 'commands', 'skills'] as const)
      await trustFiles(await definitionFiles(kind, at), at.userDirectory);
  };
  if (trusts) await trust();
  return { root, write, trust, at, load: () => loadDefinitions(at) };
}

const agent = (fields: string, body = 'You review.') => `---\n${fields}\n---\n${body}\n`;

describe('front matter', () => {
  test('it is YAML between two lines, and the text stands after it', async () => {
    expect(await markdownParts('---\r\nname: a\r\ntools: [Read, Grep]\r\n---\r\n\r\n# Title\r\n')).toEqual({
      fields: { name: 'a', tools: ['Read', 'Grep'] },
      body: '# Title',
    });
    expect(await markdownParts('no front\n---\nmatter')).toEqual({ fields: {}, body: 'no front\n---\nmatter' });
    expect(await markdownParts('---\n---\nx')).toEqual({ fields: {}, body: 'x' });
  });

  test('a description with a colon and without quotes is read as the line that it is', async () => {
    const { fields } = await markdownParts(
      '---\nname: a\ndescription: Use it: for example: <example>\\nuser: "x"\n---\nx',
    );
    expect(fields).toEqual({ name: 'a', description: 'Use it: for example: <example>\\nuser: "x"' });
  });

  test.each([
    ['---\nname: a', /has no end/],
    ['---\nname: [a\n---\nx', /is no YAML: .*line 2/],
    ['---\n- a\n- b\n---\nx', /must be names and values/],
    ['---\na: &x 1\nb: *x\n---\nx', /is no YAML/],
  ])('%j is refused', async (text, why) => {
    await expect(markdownParts(text)).rejects.toThrow(why);
  });
});

describe('files of the project and the user', () => {
  test('agents, commands and skills have a name, a description and their text', async () => {
    const { root, load } = await place({
      'work/.runchart/agents/reviewer.md': agent('description: Reviews.\ntools: Read, mcp__git__*\nmodel: gpt-5-mini'),
      'work/.claude/agents/deep/planner.md': agent('name: planner\ndescription: Plans.\nmodel: inherit\ncolor: red'),
      'work/.claude/commands/web/fix.md': '---\nargument-hint: [file]\n---\n# Fix a file\n\nFix $1.',
      'work/.runchart/skills/pdf/SKILL.md': '---\nname: pdf\ndescription: Reads PDF files.\n---\nUse pdftotext.',
      'user/agents/helper.md': agent('description: Helps.'),
    });
    const { agents, commands, skills, problems, untrusted } = await load();
    expect([problems, untrusted]).toEqual([[], []]);
    expect(agents).toEqual([
      expect.objectContaining({ name: 'helper', tools: undefined, path: join(root, 'user/agents/helper.md') }),
      expect.objectContaining({ name: 'planner', model: undefined, instructions: 'You review.' }),
      expect.objectContaining({ name: 'reviewer', tools: ['Read', 'mcp__git__*'], model: 'gpt-5-mini' }),
    ]);
    expect(commands).toMatchObject([{ name: 'web:fix', description: 'Fix a file', hint: '[file]' }]);
    expect(skills).toMatchObject([{ name: 'pdf', description: 'Reads PDF files.', body: 'Use pdftotext.' }]);
  });

  test('of two with one name the nearer counts, and .runchart before .claude', async () => {
    const { load } = await place({
      'user/agents/a.md': agent('description: user'),
      'work/.runchart/agents/a.md': agent('description: root'),
      'work/web/.runchart/agents/a.md': agent('description: near'),
      'work/web/.claude/agents/a.md': agent('description: other'),
    });
    expect((await load()).agents.map(({ description }) => description)).toEqual(['near']);
  });

  test('a file that cannot be used is named with the reason, and the others work', async () => {
    const { root, load } = await place({
      'work/.runchart/agents/a.md': agent('description: Good.'),
      'work/.runchart/agents/b.md': agent('tools: Read'),
      'work/.runchart/agents/c.md': agent('description: x', ''),
      'work/.runchart/agents/d.md': agent('description: x\ntools: 3'),
      'work/.runchart/agents/e.md': agent('description: x\nname: my agent'),
      'work/.runchart/commands/f.md': '---\ndescription: x\n---\n',
      'work/.runchart/skills/g/SKILL.md': '---\nname: [\n---\nx',
      'work/.runchart/skills/h/SKILL.md': `---\nname: h\ndescription: x\n---\n${'x'.repeat(70_000)}`,
    });
    const { agents, problems } = await load();
    expect(agents.map(({ name }) => name)).toEqual(['a']);
    const named = (file: string, why: string) => `${join(root, 'work/.runchart', file)} is not used: ${why}`;
    expect(problems).toEqual([
      expect.stringContaining(named('agents/b.md', 'it has no description')),
      expect.stringContaining(named('agents/c.md', 'it has no instructions')),
      expect.stringContaining(named('agents/d.md', 'tools must be a list of names')),
      expect.stringContaining(named('agents/e.md', 'its name must be at most 48 letters')),
      expect.stringContaining(named('commands/f.md', 'it has no text to send')),
      expect.stringContaining(named('skills/g/SKILL.md', 'its front matter is no YAML')),
      expect.stringContaining(named('skills/h/SKILL.md', 'it is larger than 65536 bytes')),
    ]);
  });

  test('files of a project count only while the user trusts their content, and files of the user always', async () => {
    const file = 'work/.runchart/agents/a.md';
    const { root, write, trust, load } = await place(
      { [file]: agent('description: first'), 'user/commands/mine.md': 'Do it.' },
      false,
    );
    expect(await load()).toMatchObject({ agents: [], commands: [{ name: 'mine' }], untrusted: [join(root, file)] });
    await trust();
    expect(await load()).toMatchObject({ agents: [{ description: 'first' }], untrusted: [] });
    await write(file, agent('description: changed'));
    expect(await load()).toMatchObject({ agents: [], untrusted: [join(root, file)] });
  });

  test('a link that leads out of the project is not followed', async () => {
    const { root, load } = await place({ 'outside/a.md': agent('description: x') }, false);
    await mkdir(join(root, 'work/.runchart'), { recursive: true });
    await symlink(join(root, 'outside'), join(root, 'work/.runchart/agents'));
    expect(await load()).toMatchObject({ agents: [], untrusted: [] });
  });
});

test('$ARGUMENTS is all that follows a command, $1 its first word, and arguments without a place follow the text', () => {
  const text = (body: string, argument: string) =>
    commandText({ name: 'c', description: '', path: '', hint: '', body }, argument);
  expect(text('Fix $ARGUMENTS.', 'a  b')).toBe('Fix a  b.');
  expect(text('Fix $2 of $1, costs $10.', 'a b')).toBe('Fix b of a, costs $10.');
  expect(text('Fix it.', 'now')).toBe('Fix it.\n\nnow');
  expect(text('Fix it.', 'now  and\nthen')).toBe('Fix it.\n\nnow  and\nthen');
  expect(text('Fix $1.', '12 and be quick')).toBe('Fix 12.\n\nand be quick');
  expect(text('Fix $2.', 'a b c')).toBe('Fix b.\n\na c');
  expect(text('Fix $1.', '')).toBe('Fix .');
  expect(text('Fix $1.', '$ARGUMENTS')).toBe('Fix $ARGUMENTS.');
  // Patterns of JavaScript's `replace` stay as the person wrote them.
  for (const argument of ['$$', '$&', "$'", '$`', '$1 $2', 'pay $$5 & $<a>'])
    expect(text('<$ARGUMENTS> of $1', argument)).toBe(`<${argument}> of ${argument.split(' ')[0]}`);
});
