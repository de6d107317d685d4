/** Commands in the background as the program shows them. */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import type { CodingAgent } from '../../../src/cli/codingAgent.ts';
import {
  endedLine,
  goneCommands,
  goneLine,
  goneNote,
  runningLines,
} from '../../../src/cli/interactive/backgroundLines.ts';
import type { ConversationTerminal, TerminalSource } from '../../../src/cli/interactive/conversationTerminal.ts';
import { InteractiveSession } from '../../../src/cli/interactive/interactiveSession.ts';
import { rowsOf, rowText } from '../../../src/cli/interactive/textRows.ts';
import { createAgent } from '../../../src/index.ts';
import { permissions } from '../../../src/permissions/permissions.ts';
import { jsonlStore } from '../../../src/stores/jsonl/jsonlStore.ts';
import {
  type BackgroundCommand,
  type BackgroundCommands,
  backgroundCommandsOf,
} from '../../../src/tools/coding/commands/backgroundCommands.ts';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { call, type Reply, scripted } from '../../support/scriptedReplies.ts';
import { noEquipment } from './talkBench.ts';

const ID = 'bash_0000abcd';
const text = (words: string) => [{ type: 'text' as const, text: words }];
let callCount = 0;
const called = (name: string, args: object, answer: string): LogEntry[] => {
  callCount += 1;
  const callId = `c${callCount}`;
  return [
    { type: 'agent-output', item: { type: 'tool-call', callId, name, args } },
    { type: 'tool-result', callId, outcome: 'succeeded', content: text(answer) },
  ] as unknown as LogEntry[];
};
const started = called(
  'Bash',
  { command: 'npm run dev', run_in_background: true },
  `Started in the background as ${ID}. Read`,
);
const asked = (words: string) => ({ type: 'user-message', content: text(words) }) as unknown as LogEntry;
const shown = (lines: Parameters<typeof rowsOf>[0][]): string[] =>
  lines.flatMap((line) => rowsOf(line, 200).map((row) => rowText(row).trimEnd()));

test('a command that was started and not seen to end is gone after a restart, and is reported once', () => {
  const running = called('BashOutput', { bash_id: ID }, 'up\n[still running after 1.0 s]');
  const [gone, ...others] = goneCommands([...started, ...running]);
  expect([gone, others]).toEqual([{ id: ID, command: 'npm run dev' }, []]);
  if (!gone) throw new Error('nothing is gone');
  expect(shown([goneLine(gone)])).toEqual([`! ${ID} npm run dev: it ended when its session was closed`]);
  expect(goneCommands([...started, asked(`hi\n${goneNote(gone)}`)])).toEqual([]);
});

test('a command whose end was read, or that KillBash ended, is not gone', () => {
  expect(goneCommands([...started, ...called('BashOutput', { bash_id: ID }, '[ended: exit code 0]')])).toEqual([]);
  expect(goneCommands([...started, ...called('KillBash', { bash_id: ID }, 'x\n[ended: it was stopped]')])).toEqual([]);
});

test('a text that looks like a start and is not from Bash starts nothing', () => {
  expect(goneCommands(called('Read', { command: 'x' }, `Started in the background as ${ID}. Read`))).toEqual([]);
  expect(goneCommands(called('Bash', { command: 'cat x' }, `ok\nStarted in the background as ${ID}. Read`))).toEqual(
    [],
  );
});

test('commands that run are shown with id and command, and the end of one is a line', () => {
  const command = { id: ID, command: 'npm run\x1b[2J dev', timeoutMs: 1 } as BackgroundCommand;
  const commands = { running: (id: string) => (id === 's' ? [command] : []) } as BackgroundCommands;
  expect(shown(runningLines(commands, 's'))).toEqual([`◌ in the background ${ID}  npm run\\x1b[2J dev`]);
  expect(shown(runningLines(commands, 'other'))).toEqual([]);
  expect(shown(runningLines(undefined, 's'))).toEqual([]);
  const ended = { ...command, end: { kind: 'exited', code: 1, leftRunning: false } } as BackgroundCommand;
  expect(shown([endedLine(ended)])).toEqual([`· ${ID} npm run\\x1b[2J dev: exit code 1`]);
});

/** The program in a directory: `lines` receives its output. */
async function program(root: string, replies: readonly Reply[]) {
  const tools = codingTools({ sandbox: 'off', extra: ['Background'] });
  const model = scripted(replies);
  const rules = permissions();
  const agent = createAgent({ model, tools, plugins: [rules], cwd: root, store: jsonlStore(join(root, 'sessions')) });
  const made = {
    ...{ agent, model, permissions: rules, cwd: root, background: backgroundCommandsOf(tools), layers: [] },
    ...{ remade: async () => made, close: async () => undefined },
    equipment: noEquipment(),
    about: { model: 'm', tools: [], permissionMode: 'default' as const },
  } as unknown as CodingAgent;
  const lines: string[] = [];
  const terminal = {
    ...{ text: '', rows: 24, fill: () => undefined, changed: () => undefined, close: () => undefined },
    commit: (each: readonly Parameters<typeof rowsOf>[0][]) => void lines.push(...shown([...each])),
  } satisfies Partial<ConversationTerminal>;
  let source: TerminalSource | undefined;
  const session = new InteractiveSession(made, (terminalSource) => {
    source = terminalSource;
    return terminal as unknown as ConversationTerminal;
  });
  onTestFinished(async () => {
    session.close();
    await agent.close();
  });
  await session.open('s');
  const shows = (words: string) => expect.poll(() => lines.join('\n'), { interval: 5 }).toContain(words);
  return { agent, session, model, lines, shows, foot: () => shown([...(source?.view().lines ?? [])]) };
}

test('a command is shown while it runs, and as gone in the next program, whose next request contains that', async () => {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-background-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const first = await program(root, [
    [call('c1', 'Bash', { command: 'sleep 1000', run_in_background: true })],
    'started',
  ]);
  first.session.submit('go', false);
  await first.shows('■ completed');
  expect(first.foot()).toContainEqual(expect.stringMatching(/^◌ in the background bash_\w+ {2}sleep 1000$/));
  first.session.close();
  await first.agent.close();
  const next = await program(root, ['ok']);
  await next.shows('sleep 1000: it ended when its session was closed');
  expect(next.foot()).toEqual([]);
  next.session.submit('again', false);
  await next.shows('  ok');
  expect(JSON.stringify(next.model.calls[0]?.messages.at(-1))).toContain('(sleep 1000) is gone: it ended when');
});

test('before another model, mode or rule ends the commands in the background, each is named, once', async () => {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-background-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const { session, shows, lines, foot } = await program(root, [
    [call('c1', 'Bash', { command: 'sleep 1000', run_in_background: true })],
    'started',
  ]);
  session.submit('go', false);
  await shows('■ completed');
  session.submit('/mode plan', false);
  await expect.poll(() => lines.filter((line) => line.startsWith('runchart ·')).length, { interval: 5 }).toBe(2);
  const warnings = lines.filter((line) => line.startsWith('! ') && line.includes('sleep 1000'));
  expect(warnings).toEqual([
    expect.stringMatching(/^! bash_\w+ sleep 1000: it ends now, because the session is closed and opened again$/),
  ]);
  expect(foot()).toEqual([]);
});
