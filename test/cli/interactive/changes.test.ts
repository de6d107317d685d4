/** Commands that change a conversation on a terminal: forks, rules, wider rules, and a request that was too long. */
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { FileMenu, listedFiles, matchingFiles } from '../../../src/cli/commands/fileMenu.ts';
import { ModelError } from '../../../src/index.ts';
import { during } from '../../support/scriptedReplies.ts';
import { agentOf, deploys, talk, talkWith } from './talkBench.ts';

test('/fork goes on in a copy, or before a message of the person, whose text comes back into the line', async () => {
  const { source, session, model, lines, shows, isIdle, terminal } = await talk('a', 'b', 'c', 'd');
  const sends = async (text: string, calls: number) => {
    source.submit(text, false);
    await expect.poll(() => model.calls.length, { interval: 5 }).toBe(calls);
    await isIdle();
  };
  await sends('one', 1);
  await sends('two', 2);
  const first = session.id;
  source.submit('/fork', false);
  await sends('three', 3);
  expect(JSON.stringify(model.calls[2]?.messages)).toMatch(/one.*two.*three/);
  source.submit('/fork 9', false);
  await shows('2  two');
  const second = session.id;
  source.submit('/fork 2', false);
  await expect.poll(() => terminal.text, { interval: 5 }).toBe('two');
  expect([first, second]).not.toContain(session.id);
  await sends('other', 4);
  expect(JSON.stringify(model.calls[3]?.messages)).not.toContain('two');
  expect(lines.filter((line) => line.includes('· session '))).toHaveLength(3);
});

test('/permissions adds and removes rules, and names the rule that decided the last call', async () => {
  const { source, asks, shows, isIdle, changes } = await talk(deploys('x'), 'ok');
  source.submit('go', false);
  await asks('run it?');
  source.submit('n, not now', false);
  await shows('ok');
  await isIdle();
  source.submit('/permissions', false);
  await shows('the last call, Deploy, was ');
  source.submit('/permissions deny deploy', false);
  await shows('deny deploy: until the program ends');
  expect(changes).toEqual([{ permissionMode: 'default', allow: [], deny: ['deploy'] }]);
  source.submit('/permissions keep bash(make *)', false);
  await shows('kept for this directory in');
  source.submit('/permissions remove bash(make *)', false);
  await shows('removed: bash(make *)');
  source.submit('/permissions remove bash(nothing)', false);
  await shows('no rule bash(nothing) was added here');
  source.submit('/permissions alow x', false);
  await shows('expected allow, ask, deny, keep or remove and a rule');
});

const BUSY = 'a request is under way: Escape stops it';
const gate = () => {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
};

test('while a request is under way /permissions changes nothing, and reports that', async () => {
  const { open, opened } = gate();
  const { source, model, lines, isIdle, changes, shows } = await talk(during(() => opened, 'ok'));
  source.submit('go', false);
  await expect.poll(() => model.calls.length, { interval: 5 }).toBe(1);
  const commands = ['keep bash(make *)', 'deny deploy', 'ask deploy', 'allow deploy', 'remove bash(make *)'];
  for (const command of commands) source.submit(`/permissions ${command}`, false);
  await expect.poll(() => lines.filter((line) => line.includes(BUSY)).length, { interval: 5 }).toBe(commands.length);
  open();
  await isIdle();
  source.submit('/permissions remove bash(make *)', false);
  await shows('no rule bash(make *) was added here');
  expect(lines.join('\n')).not.toMatch(/until the program ends|kept for this|removed:/);
  expect(changes).toEqual([]);
});

test('a message that arrives while another agent is made keeps its agent, and the other one is closed', async () => {
  const [reply, making] = [gate(), gate()];
  const bench = await agentOf([during(() => reply.opened, 'ok')]);
  const closed: string[] = [];
  const made = {
    ...bench.made,
    close: async () => void closed.push('old'),
    remade: async (change: object) => {
      const next = await bench.made.remade(change);
      await making.opened;
      return { ...next, close: async () => void closed.push('new') };
    },
  };
  const { source, model, lines, shows, isIdle, session } = await talkWith({ ...bench, made }, undefined);
  source.submit('/permissions deny deploy', false);
  await expect.poll(() => bench.changes.length, { interval: 5 }).toBe(1);
  source.submit('go', false);
  await expect.poll(() => model.calls.length, { interval: 5 }).toBe(1);
  making.open();
  await shows(BUSY);
  await expect.poll(() => closed, { interval: 5 }).toEqual(['new']);
  reply.open();
  await isIdle();
  expect(lines.join('\n')).not.toContain('until the program ends');
  await session.closeAgent();
  expect(closed).toEqual(['new', 'old']);
});

test('a question offers wider rules where there are some, and aa saves them', async () => {
  const { source, asks, shows, isIdle, made, lines } = await talkWith(
    await agentOf([deploys('x', 'c1', 'mcp__shop__deploy'), 'ok'], undefined, {}, {}, 'mcp__shop__deploy'),
    undefined,
  );
  source.submit('go', false);
  await asks('run it?');
  await shows('aa would allow      mcp__shop__*');
  source.submit('aa', false);
  await isIdle();
  expect(lines).toContain('· allowed from now on: mcp__shop__*');
  expect((await made.permissions.explain('mcp__shop__other', {}, made.cwd)).outcome).toBe('allow');
});

test('a request that is too long for the model goes on with a summary, once', async () => {
  const tooLong = () =>
    new ModelError({ code: 'bad-request', message: "This model's maximum context length is 90000 tokens." });
  const window = { contextWindow: 100_000 };
  const made = await agentOf(['a', tooLong(), 'the summary', tooLong()], undefined, window);
  const { source, model, shows, isIdle } = await talkWith(made, undefined);
  source.submit('one', false);
  await isIdle();
  source.submit('two', false);
  await shows('it takes 90,000 tokens: earlier messages are summed up, and the request goes on');
  await expect.poll(() => model.calls.length, { interval: 5 }).toBe(4);
  await isIdle();
  expect(made.changes).toEqual([{ permissionMode: 'default', allow: [], contextWindow: '90000' }]);
  expect(JSON.stringify(model.calls[3]?.messages)).toMatch(/the summary.*Go on with what was asked last/);
  expect(model.calls).toHaveLength(4);
});

test('@ lists files whose names or paths fit, and ignored ones last', async () => {
  const { made } = await agentOf([]);
  const { cwd } = made;
  await mkdir(join(cwd, 'src/dist'), { recursive: true });
  await mkdir(join(cwd, '.git'), { recursive: true });
  await mkdir(join(cwd, 'node_modules/a'), { recursive: true });
  for (const file of ['main.ts', 'src/main.go', 'src/domain.ts', 'src/dist/main.js', '.git/main', 'a b.ts', 'main.log'])
    await writeFile(join(cwd, file), 'x');
  await writeFile(join(cwd, '.gitignore'), 'node_modules/\n*.log\n');
  await writeFile(join(cwd, 'src/.gitignore'), '/dist\n');
  const files = await listedFiles(cwd);
  const paths = (part: string) => matchingFiles(files, part).map(({ path }) => path);
  expect(paths('main')).toEqual(['main.ts', 'src/main.go', 'src/domain.ts', 'main.log']);
  expect(paths('MAIN.TS')).toEqual(['main.ts', 'src/domain.ts']);
  expect(paths('node')).toEqual(['node_modules/']);
  expect(paths('dist')).toEqual(['src/dist/']);
  const { source, terminal } = await talkWith({ ...(await agentOf([])), made }, undefined);
  terminal.text = 'read @mai';
  await expect.poll(() => source.view().lines.length, { interval: 5 }).toBe(4);
  expect(source.completed('read @mai')).toBe('read @main.ts ');
  expect(source.moveInMenu('read @mai', 1)).toBe(true);
  expect(source.completed('read @mai')).toBe('read @src/main.go ');
  expect(await readFile(join(cwd, 'main.ts'), 'utf8')).toBe('x');
});

test('@ reads no .gitignore through a link or beyond its bound, and one list at a time', async () => {
  const { made } = await agentOf([]);
  const { cwd } = made;
  await mkdir(join(cwd, 'large'));
  for (const file of ['a.log', 'large/b.log']) await writeFile(join(cwd, file), 'x');
  await writeFile(join(cwd, 'rules'), '*.log\n');
  await symlink('rules', join(cwd, '.gitignore'));
  await writeFile(join(cwd, 'large/.gitignore'), `*.log\n#${'x'.repeat(64 * 1_024)}`);
  const logs = (await listedFiles(cwd)).filter(({ path }) => path.endsWith('.log'));
  expect(logs.map(({ isIgnored }) => isIgnored)).toEqual([false, false]);
  let lists = 0;
  const changed = vi.fn();
  const cwdOf = (): string => {
    lists += 1;
    return cwd;
  };
  const menu = new FileMenu(cwdOf, changed);
  const now = vi.spyOn(performance, 'now').mockReturnValue(1_000_000);
  onTestFinished(() => now.mockRestore());
  menu.lines('@a');
  now.mockReturnValue(2_000_000);
  menu.lines('@a');
  expect(lists).toBe(1);
  now.mockRestore();
  await expect.poll(() => changed.mock.calls.length, { interval: 5 }).toBe(1);
  expect(menu.completed('@a.l')).toBe('@a.log ');
});
