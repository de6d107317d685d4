/**
 * Carries out the slash commands of a conversation. Invariant: a command that needs another agent keeps the session, and
 * changes nothing while a request is under way.
 */
import type { Conversation } from '../../conversation/conversation.ts';
import type { Run } from '../../conversation/run.ts';
import { PERMISSION_MODES } from '../../permissions/verdict.ts';
import { printableLine } from '../../printable.ts';
import type { AgentOptions, CodingAgent } from '../codingAgent.ts';
import { costText, count } from '../costTally.ts';
import type { TextFormats } from '../formatted/textFormats.ts';
import type { ConversationTerminal } from '../interactive/conversationTerminal.ts';
import { contextLine, costLines, helpLines, slashCommand, unknownCommand } from '../interactive/slashCommands.ts';
import { ownLine, type TextLine } from '../interactive/textRows.ts';
import type { Style } from '../screen.ts';
import { agentLines, serverLines, skillLines } from './equipmentLines.ts';
import { keptTodos, todoLines } from './keptPlan.ts';

/** The conversation's side of a command. */
export interface CommandPort {
  readonly made: CodingAgent;
  readonly terminal: ConversationTerminal;
  /** The rules that the person has saved since the start. */
  readonly remembered: readonly string[];
  say(style: Style, text: string): void;
  watch(run: Run): void;
  formats(): Promise<TextFormats>;
  list(): Promise<void>;
  /** Takes back files, the conversation or both. */
  undo(name: 'undo' | 'rewind', argument: string): Promise<void>;
  /** Opens another session, or a new one. */
  swap(choice: string | undefined): Promise<void>;
  /** Opens the same session with another agent. */
  remake(changes: AgentOptions, restartsServers?: boolean): Promise<void>;
  /** Sends a message, or steers the request under way. */
  send(text: string): Promise<void>;
}

export async function performCommand(text: string, conversation: Conversation, port: CommandPort): Promise<void> {
  const { name, argument } = slashCommand(text);
  const { terminal, made, say } = port;
  switch (name) {
    case 'help':
      return terminal.commit(helpLines(made.equipment.commands));
    case 'cost':
      return terminal.commit(costLines(conversation.log()));
    case 'context':
      return terminal.commit([contextLine(conversation.log(), made.model.contextWindow)]);
    case 'compact':
      return compact(argument, port);
    case 'go':
      return goOn(conversation, port);
    case 'new':
      return port.swap(undefined);
    case 'resume':
      return argument === '' ? port.list() : port.swap(argument);
    case 'model':
      return argument === '' ? say('plain', modelText(made)) : port.remake({ model: argument });
    case 'mode':
      return mode(argument, conversation, port);
    case 'permissions':
      return terminal.commit(permissionLines(conversation, port));
    case 'mcp':
      return argument === 'restart' ? port.remake({}, true) : terminal.commit(serverLines(made.equipment));
    case 'agents':
      return terminal.commit(agentLines(made.equipment));
    case 'skills':
      return terminal.commit(skillLines(made.equipment));
    case 'diff':
      return terminal.commit(await changesOf(conversation, port));
    case 'todos':
      return terminal.commit(planLines(conversation));
    case 'export':
      return exportTo(argument, conversation, port);
    case 'undo':
    case 'rewind':
      return port.undo(name, argument);
    case 'later':
      return say('yellow', '/later takes the message: /later and then run the tests');
    default:
      if (made.equipment.commands.some((command) => command.name === name)) return port.send(text);
      terminal.commit([unknownCommand(name, made.equipment.commands)]);
  }
}

function compact(instructions: string, { made, say }: CommandPort): void {
  if (made.model.contextWindow === undefined) {
    return say('yellow', 'how many tokens the model takes is not known, so nothing is summed up');
  }
  made.compactNext(instructions);
  say('plain', 'earlier messages are summed up before the next request');
}

function goOn(conversation: Conversation, { watch, say }: CommandPort): void {
  const before = conversation.log().length;
  const run = conversation.resume();
  watch(run);
  void run.result.then(() => {
    if (conversation.log().length === before) say('plain', 'nothing waits and nothing was interrupted');
  });
}

function modelText({ model }: CodingAgent): string {
  const window = model.contextWindow === undefined ? 'window unknown' : count(model.contextWindow, 'token');
  const priceOf = (usd: number): string => costText({ turns: 1, inputTokens: 0, outputTokens: 0, costUsd: usd });
  const prices =
    model.prices === undefined
      ? 'prices unknown'
      : `${priceOf(model.prices.input)} in, ${priceOf(model.prices.output)} out for a million tokens`;
  return `${printableLine(model.id)} · ${window} · ${prices} · /model <name> selects another one`;
}

function mode(argument: string, { id }: Conversation, { made, say, remake }: CommandPort): void | Promise<void> {
  if (argument !== '') return remake({ permissionMode: argument });
  const modes = PERMISSION_MODES.map((each) => (each === made.permissions.modeOf(id) ? `[${each}]` : each)).join(' ');
  return say('plain', `${modes} · /mode <name> changes it`);
}

function permissionLines(conversation: Conversation, { made, remembered }: CommandPort): TextLine[] {
  const lines = [ownLine(['bold', 'mode  '], ['plain', made.permissions.modeOf(conversation.id)])];
  for (const { name, trusted, ...rules } of made.layers) {
    for (const what of ['deny', 'ask', 'allow'] as const) {
      const isIgnored = what === 'allow' && trusted !== true;
      for (const rule of rules[what] ?? [])
        lines.push(
          ownLine(
            ['bold', `${what}  `],
            ['plain', printableLine(rule)],
            ['dim', `  ${printableLine(name)}${isIgnored ? ', not trusted' : ''}`],
          ),
        );
    }
  }
  for (const rule of remembered)
    lines.push(ownLine(['bold', 'allow  '], ['plain', printableLine(rule)], ['dim', '  until the program ends']));
  const last = conversation
    .log()
    .filter((entry) => entry.type === 'tool-allowed')
    .at(-1);
  if (last) lines.push(ownLine(['dim', `the last call was allowed by: ${printableLine(last.by)}`]));
  return lines;
}

function planLines(conversation: Conversation): TextLine[] {
  const lines = todoLines(keptTodos(conversation.log()));
  return lines.length > 0 ? lines : [ownLine(['plain', 'the model keeps no list in this session'])];
}

/** The changes of files in this session, whole. */
async function changesOf(conversation: Conversation, { formats }: CommandPort): Promise<TextLine[]> {
  const { changedFiles } = await formats();
  const lines = changedFiles(conversation.log());
  return lines.length > 0 ? lines : [ownLine(['plain', 'no file was changed in this session'])];
}

async function exportTo(argument: string, conversation: Conversation, { say }: CommandPort): Promise<void> {
  const { exportSession } = await import('./exportSession.ts');
  say('plain', `written: ${printableLine(await exportSession(conversation, argument))}`);
}
