/** Shared by the tests of undo: an agent with real files, its history beside them, and the input of a person. */
import { lstat, mkdir, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { FileHistory } from '../../../src/cli/undo/fileHistory.ts';
import { recordedTools } from '../../../src/cli/undo/recordedTools.ts';
import { UndoCommands } from '../../../src/cli/undo/undoCommands.ts';
import { createAgent, type Json, type ModelPart } from '../../../src/index.ts';
import { jsonlStore } from '../../../src/stores/jsonl/jsonlStore.ts';
import { codingTools, EXTRA_TOOLS } from '../../../src/tools/coding/index.ts';
import { call, type Reply, scripted } from '../../support/scriptedReplies.ts';

interface Options {
  readonly root?: string;
  readonly id?: string;
  readonly limits?: ConstructorParameters<typeof FileHistory>[1];
}

/** The agent in `root/work`, with its sessions and its history beside it. */
export async function undoing(replies: readonly Reply[], { root: existingRoot, id = 's', limits }: Options = {}) {
  const root = existingRoot ?? (await realpath(await mkdtemp(join(tmpdir(), 'runchart-undo-'))));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const cwd = join(root, 'work');
  await mkdir(cwd, { recursive: true });
  const history = new FileHistory(join(root, 'sessions', 'history'), limits);
  const tools = recordedTools(codingTools({ sandbox: 'off', extra: [...EXTRA_TOOLS] }), history);
  const model = scripted([...replies]);
  const agent = createAgent({ model, tools, cwd, store: jsonlStore(join(root, 'sessions')) });
  onTestFinished(() => agent.close());
  const conversation = await agent.open(id);
  const lines: string[] = [];
  const notes: string[] = [];
  const line = { text: '' };
  const commands = new UndoCommands({
    made: () => ({ history }),
    terminal: {
      fill: (text) => {
        line.text = text;
      },
    },
    say: (_style, text) => void lines.push(text),
    note: (text) => void notes.push(text),
  });
  /** Types a text for the person, with the meaning of a short answer. */
  const types = async (typed: string): Promise<string> => {
    lines.length = 0;
    const [, name = '', argument = ''] = /^\/(\w+) ?(.*)$/.exec(commands.take(typed) ?? typed) ?? [];
    if (name === 'undo' || name === 'rewind') await commands[name](argument, conversation);
    return lines.join('\n');
  };
  const ask = async (text: string): Promise<void> => void (await conversation.send(text).result);
  const at = (name: string): string => join(cwd, name);
  const textOf = (name: string): Promise<string> => readFile(at(name), 'utf8');
  const users = (): string[] =>
    conversation.messages().flatMap(({ role, content: [part] }) => {
      return role === 'user' && part?.type === 'text' ? [part.text] : [];
    });
  return {
    root,
    cwd,
    history,
    agent,
    conversation,
    commands,
    line,
    lines,
    notes,
    types,
    ask,
    at,
    textOf,
    users,
    model,
  };
}

export const read = (path: string, id = 'r'): Reply => [call(id, 'Read', { file_path: path })];
export const edit = (path: string, from: string, to: string, id = 'e'): readonly ModelPart[] => [
  call(id, 'Edit', { file_path: path, old_string: from, new_string: to }),
];
export const write = (path: string, content: string, id = 'w'): readonly ModelPart[] => [
  call(id, 'Write', { file_path: path, content } as Json),
];
export const exists = async (path: string): Promise<boolean> =>
  (await lstat(path).catch(() => undefined)) !== undefined;
