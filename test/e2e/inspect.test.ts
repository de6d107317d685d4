/** The inspector's commands, as processes. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { Watcher } from '../inspect/pageWatcher.ts';
import { proves } from '../support/tier.ts';
import { hasTerminals, type Program, start, startOnTerminal, temporaryDirectory } from './cli.ts';
import { modelServer } from './modelServer.ts';
import { place } from './runDirectory.ts';

async function watching(program: Program): Promise<Watcher> {
  await program.says('?token=');
  const output = stripVTControlCharacters(program.stdout + program.stderr);
  const [url = ''] = /http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]+/.exec(output) ?? [];
  const page = await Watcher.open(url);
  onTestFinished(() => page.close());
  return page;
}

const decision = { callId: 'call_2', suspension: 1, action: 'approve' } as const;
const approve = { type: 'decide', conversation: 'demo', decision } as const;

test('--inspect shows a run while it moves, and without --control the page cannot decide', async () => {
  let goOn = (): void => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const server = await modelServer(async (reply) => {
    reply.text('first words');
    await held;
    reply.finish('stop');
  });
  const { cwd, env } = await place(server);
  const program = start(['run', 'hello', '-m', 'm1', '--new', '--session', 's', '--inspect'], { cwd, env });
  const page = await watching(program);
  expect(program.stdout).not.toContain('token=');
  await page.see('live', ({ signal }) => signal.type === 'text-delta');
  expect(await page.ask({ type: 'cancel', conversation: 's' })).toMatchObject({ code: 'read_only' });
  goOn();
  expect((await program.ended).code).toBe(0);
  expect(page.all('status').map(({ status }) => status)).toContain('active');
});

test('runchart inspect shows the readable entries of a log, reports the others, and ends with Ctrl-C', async () => {
  const directory = await temporaryDirectory();
  const demo = start(['demo'], { cwd: directory, env: { TMPDIR: directory } });
  expect((await demo.ended).code).toBe(0);
  const [, log = ''] = /^log\s+(\S+\.jsonl)/m.exec(stripVTControlCharacters(demo.stdout)) ?? [];
  await writeFile(log, 'torn', { flag: 'a' });
  const program = start(['inspect', log], { cwd: directory });
  const page = await watching(program);
  const conversation = await page.see('conversation');
  expect(conversation).toMatchObject({ of: 'file', conversation: 'demo.jsonl' });
  expect(conversation.unread).toHaveLength(1);
  await page.see('entry', ({ entry }) => entry.seq === 38);
  expect(page.all('entry').map(({ entry }) => entry.seq)).toEqual(Array.from({ length: 39 }, (_, seq) => seq));
  expect(page.all('hello')[0]).toMatchObject({ control: false });
  program.process.kill('SIGINT');
  expect(await program.ended).toEqual({ code: 0, signal: null });
  const nothing = start(['inspect', join(directory, 'nothing.jsonl')], { cwd: directory });
  expect((await nothing.ended).code).toBe(2);
});

test.skipIf(!proves)('the demo with --inspect leaves the decision to the page, and keeps running', async () => {
  const directory = await temporaryDirectory();
  const program = start(['demo', '--inspect'], { cwd: directory, env: { TMPDIR: directory }, input: null });
  const page = await watching(program);
  await page.see('entry', ({ entry }) => entry.type === 'run-suspended');
  await program.says('decide in the page');
  expect(await page.ask(approve)).toMatchObject({ type: 'answer', value: { receipt: 'applied' } });
  await program.says('The page stays open until Ctrl-C');
  expect(program.stdout).toContain('Read succeeded, WriteNote succeeded');
  program.process.kill('SIGINT');
  expect(await program.ended).toEqual({ code: 0, signal: null });
});

test.skipIf(!proves || !hasTerminals)('on a terminal the page may be the first to decide and to resume', async () => {
  const directory = await temporaryDirectory();
  const program = startOnTerminal(['demo'], { cwd: directory, env: { TMPDIR: directory } });
  const page = await watching(program);
  await program.says('approve? [y]es, [n]o');
  expect(await page.ask(approve)).toMatchObject({ type: 'answer', value: { receipt: 'applied' } });
  await page.ask({ type: 'resume', conversation: 'demo' });
  await program.says('The page stays open until you press Enter');
  expect(program.stdout).toContain('it was decided in the page');
  expect(program.stdout).toContain('Read succeeded, WriteNote succeeded');
  program.process.stdin?.write('\n');
  expect((await program.ended).code).toBe(0);
});
