/** A conversation on a terminal that is a list of lines: real charts, real rules, a scripted model. */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { SimulatedClock } from 'xstate';
import * as z from 'zod';
import { type AgentChanges, type CodingAgent, summaryOnDemand } from '../../../src/cli/codingAgent.ts';
import type { Equipment } from '../../../src/cli/definitions/agentEquipment.ts';
import type { ConversationTerminal, TerminalSource } from '../../../src/cli/interactive/conversationTerminal.ts';
import { InteractiveSession } from '../../../src/cli/interactive/interactiveSession.ts';
import { QUESTION_MS } from '../../../src/cli/interactive/prompt.machine.ts';
import { rowsOf, rowText } from '../../../src/cli/interactive/textRows.ts';
import { countingStore } from '../../../src/cli/renderLog.ts';
import { ServerConnections } from '../../../src/cli/servers/serverConnections.ts';
import { sessionPlace } from '../../../src/cli/sessions/sessionPlace.ts';
import { FileHistory } from '../../../src/cli/undo/fileHistory.ts';
import { createAgent, defineTool, presets } from '../../../src/index.ts';
import { permissions } from '../../../src/permissions/permissions.ts';
import { allowAlways, forgetAllowed } from '../../../src/session/configuration.ts';
import { jsonlStore } from '../../../src/stores/jsonl/jsonlStore.ts';
import { call, type Reply, scripted } from '../../support/scriptedReplies.ts';

export class ListTerminal implements ConversationTerminal {
  text = '';
  readonly rows = 24;
  readonly lines: string[] = [];
  readonly source: TerminalSource;
  constructor(source: TerminalSource) {
    this.source = source;
  }
  commit: ConversationTerminal['commit'] = (lines) => {
    this.lines.push(...lines.flatMap((line) => rowsOf(line, 400).map((row) => rowText(row).trimEnd())));
  };
  fill(text: string): void {
    this.text = text;
  }
  changed(): void {}
  close(): void {}
}

/** The equipment of a user and a project that add nothing. */
export const noEquipment = (): Equipment => ({
  ...{ tools: [], layers: [], agents: [], commands: [], skills: [], problems: [], untrusted: [] },
  servers: new ServerConnections([]),
});

/** The agent of the command line, with one tool that requires approval. `at`: the place of an earlier agent. */
export async function agentOf(
  replies: readonly Reply[],
  at?: string,
  window: object = {},
  more: Partial<Equipment> = {},
  toolName = 'Deploy',
) {
  const root = at ?? (await realpath(await mkdtemp(join(tmpdir(), 'runchart-talk-'))));
  if (at === undefined) onTestFinished(() => rm(root, { recursive: true, force: true }));
  const ran: unknown[] = [];
  const changes: AgentChanges[] = [];
  const deploy = defineTool({
    name: toolName,
    description: 'Deploys.',
    parameters: z.object({ to: z.string() }),
    execute: ({ to }) => {
      ran.push(to);
      return `deployed to ${to}`;
    },
  });
  const model = scripted([...replies], window);
  const { plugin, compactNext } = summaryOnDemand();
  const rules = permissions();
  const store = countingStore(jsonlStore(join(root, 'sessions')));
  const policies = { ...presets.coding, onPartialSuspend: 'wait' as const };
  const agentOptions = { model, tools: [deploy], plugins: [rules, plugin], policies, cwd: root };
  const agent = createAgent({ ...agentOptions, store });
  onTestFinished(() => agent.close());
  const about = { model: 'm', tools: ['Deploy'], permissionMode: 'default' as const };
  const made: CodingAgent = {
    agent,
    model,
    permissions: rules,
    cwd: root,
    sessions: await sessionPlace(join(root, 'sessions')),
    store,
    history: new FileHistory(join(root, 'history')),
    close: () => agent.close(),
    keep: (rules) => allowAlways(rules, { cwd: root, userDirectory: join(root, 'user') }),
    compactNext,
    layers: [{ name: 'user', allow: ['bash(ls *)'] }],
    unkeep: (rule) => forgetAllowed(rule, { cwd: root, userDirectory: join(root, 'user') }),
    remade: async (change) => {
      if (change.model === 'none') throw new Error('no such model');
      changes.push(change);
      return {
        ...made,
        about: { ...about, model: change.model ?? 'm' },
        agent: createAgent({ ...agentOptions, store }),
      };
    },
    about,
    equipment: { ...noEquipment(), ...more },
  };
  return { made, model, ran, changes };
}

export const talk = async (...replies: Reply[]) => talkWith(await agentOf(replies), undefined);

export async function talkWith(
  { made, model, ran, changes }: Awaited<ReturnType<typeof agentOf>>,
  id: string | undefined,
) {
  const clock = new SimulatedClock();
  let terminal: ListTerminal | undefined;
  const session = new InteractiveSession(made, (source) => (terminal = new ListTerminal(source)), clock);
  await session.open(id);
  if (!terminal) throw new Error('no terminal was made');
  const { lines, source } = terminal;
  const shows = (text: string) => expect.poll(() => lines.join('\n'), { interval: 5 }).toContain(text);
  const asks = async (name: string) => {
    await expect.poll(() => source.view().question[1], { interval: 5 }).toContain(name);
    clock.increment(QUESTION_MS);
  };
  const isIdle = () =>
    expect.poll(() => source.view().question[1] === '>' && !source.isTurning(), { interval: 5 }).toBe(true);
  return { made, changes, session, terminal, source, lines, ran, model, clock, shows, asks, isIdle };
}

export const deploys = (to: string, id = 'c1', name = 'Deploy'): Reply => [call(id, name, { to })];

/** An output that keeps the written text. */
export function keptOutput(columns: number | undefined) {
  const kept = { text: '' };
  const output = {
    write(text: string) {
      kept.text += text;
    },
    styled: false,
    columns,
  };
  return { output, written: () => kept.text };
}
