/**
 * Carries out the slash commands of a conversation. Invariant: a command that needs another agent keeps the session, and
 * changes nothing while a request is under way.
 */
import type { Conversation } from '../../conversation/conversation.ts';
import { forkConversation } from '../../index.ts';
import { PERMISSION_MODES } from '../../permissions/verdict.ts';
import { printableLine, shortened } from '../../printable.ts';
import type { CodingAgent } from '../codingAgent.ts';
import { costText, count } from '../costTally.ts';
import { typedText } from '../interactive/conversationLines.ts';
import { contextLine, costLines, helpLines, slashCommand, unknownCommand } from '../interactive/slashCommands.ts';
import { ownLine, type TextLine } from '../interactive/textRows.ts';
import { newSessionId } from '../sessions/sessionStore.ts';
import type { CommandPort } from './commandPort.ts';
import { agentLines, serverLines, skillLines } from './equipmentLines.ts';
import { keptTodos, todoLines } from './keptPlan.ts';
import { changePermissions, permissionLines } from './permissionCommands.ts';

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
      return argument === '' ? say('plain', modelText(made)) : void (await port.remake({ model: argument }));
    case 'mode':
      return mode(argument, conversation, port);
    case 'permissions':
      return argument === '' ? terminal.commit(permissionLines(conversation, port)) : changePermissions(argument, port);
    case 'mcp':
      if (argument !== 'restart') return terminal.commit(serverLines(made.equipment));
      await port.remake({}, true);
      return;
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
    case 'fork':
      return fork(argument, conversation, port);
    case 'rename':
      return renameTo(argument, conversation, port);
    case 'init':
      return port.send(INIT);
    case 'later':
      return say('yellow', '/later takes the message: /later and then run the tests');
    default:
      if (made.equipment.commands.some((command) => command.name === name)) return port.send(text);
      terminal.commit([unknownCommand(name, made.equipment.commands)]);
  }
}

const INIT =
  'Look at this project and write AGENTS.md for agents that work on it: what it is, how it is built, tested and checked, where what lies, ' +
  'and the conventions of its code that are not obvious. Keep it short and true: try the commands that you name. If AGENTS.md exists, improve it.';

/** Opens a copy of the session, or of the part before one of the person's messages, in place of the session. */
async function fork(argument: string, conversation: Conversation, port: CommandPort): Promise<void> {
  const log = conversation.log();
  const messages = log.filter((entry) => entry.type === 'user-message');
  if (messages.length === 0) return port.say('plain', 'there is no message yet');
  const message = messages[Number(argument) - 1];
  const isNumber = message !== undefined && /^\d+$/.test(argument);
  if (argument === '' || isNumber) {
    // A copy with the beginning of a run would contain an interrupted request.
    const beginsRun = message !== undefined && log[message.seq - 1]?.type === 'run-started';
    const place = isNumber ? message.seq - (beginsRun ? 1 : 0) : undefined;
    let isCopied = false;
    await port.reopen(async () => {
      const id = newSessionId();
      await forkConversation(port.made.store, conversation.id, id, place);
      isCopied = true;
      return id;
    });
    if (isCopied && isNumber) port.terminal.fill(typedText(message.content));
    return;
  }
  port.say('yellow', 'the number of a message of yours says where the copy ends, before it:');
  for (const [index, { content }] of messages.entries())
    port.say('plain', `${index + 1}  ${shortened(printableLine(typedText(content)), MESSAGE_SHOWN)}`);
}
const MESSAGE_SHOWN = 70;

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

async function mode(argument: string, { id }: Conversation, { made, say, remake }: CommandPort): Promise<void> {
  if (argument !== '') return void (await remake({ permissionMode: argument }));
  const modes = PERMISSION_MODES.map((each) => (each === made.permissions.modeOf(id) ? `[${each}]` : each)).join(' ');
  return say('plain', `${modes} · /mode <name> changes it`);
}

function planLines(conversation: Conversation): TextLine[] {
  const lines = todoLines(keptTodos(conversation.log()));
  return lines.length > 0 ? lines : [ownLine(['plain', 'the model keeps no list in this session'])];
}

/** All changes of files in this session, in full. */
async function changesOf(conversation: Conversation, { formats }: CommandPort): Promise<TextLine[]> {
  const { changedFiles } = await formats();
  const lines = changedFiles(conversation.log());
  return lines.length > 0 ? lines : [ownLine(['plain', 'no file was changed in this session'])];
}

async function renameTo(argument: string, conversation: Conversation, { say }: CommandPort): Promise<void> {
  if (argument === '') return say('yellow', '/rename takes the title: /rename the tests of the parser');
  await conversation.rename(argument);
  say('plain', `the session is called ${printableLine(argument)}`);
}

async function exportTo(argument: string, conversation: Conversation, { say }: CommandPort): Promise<void> {
  const { exportSession } = await import('./exportSession.ts');
  say('plain', `written: ${printableLine(await exportSession(conversation, argument))}`);
}
